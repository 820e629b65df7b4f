"""Actions on the changes of a job: merge its pull request, and bring them into your repository."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions.action import (
    TEXTS,
    About,
    ActionResult,
    Arguments,
    Call,
    RefusedWithData,
    Subject,
    action,
)
from draftsman.agent_runs.changes.diff_reader import changed_files
from draftsman.agent_runs.changes.user_repository import (
    PublishedWork,
    UserRepository,
    apply_patch,
    check_out,
)
from draftsman.errors import CommandHint, Refused
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name, question_name
from draftsman.jobs.job import TERMINAL
from draftsman.people.policy import Verb

if TYPE_CHECKING:
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.runtime import Runtime

MERGE_TYPE: Final = "merge_pull_request"
MAX_CONFLICTS: Final = 5
"""Conflicting files that a text names."""


# The merge of a pull request.


async def published_pull_request(rt: Runtime, number: int) -> tuple[int, str]:
    """Return the pull request of a job, and the follow-up or job that published its newest work.

    Raises Refused for a job without a pull request, and after its end.
    """
    from draftsman.forges.pull_request import recorded

    name = job_name(number)
    opened = recorded(await rt.checkpoints.steps(number))
    if opened is None or "url" not in opened:
        problem = "it opened none on a forge of [forges]" if opened is None else opened["problem"]
        raise Refused(
            f"{name} has no pull request to merge: {problem}", hint=CommandHint("show", name)
        )
    family = await rt.forge_events.follow_ups.family(number)
    if family is not None and family.pull.state != "open":
        is_merged = family.pull.state == "merged"
        state = "is merged already" if is_merged else "is closed: open it again on the forge first"
        raise Refused(f"{opened['url']} {state}", hint=CommandHint("show", name))
    for later in reversed(family.jobs if family is not None else ()):
        newer = recorded(await rt.checkpoints.steps(later))
        if later > number and newer is not None and newer.get("url") == opened["url"]:
            return later, str(opened["url"])
    return number, str(opened["url"])


async def mergeable(call: Call, job: int, **_: object) -> Subject:
    """Return the pull request of a job; raises Refused."""
    number, url = await published_pull_request(call.rt, job)
    note = f"{url}: an approval is asked for once its checks have passed."
    return Subject(job_name(number), note)


@action(
    About.JOB,
    right=Verb.SUBMIT,
    question="Merge the pull request of {}?",
    consequence="An approval is asked for once its checks have passed.",
    check=mergeable,
    undo="cancel",
    surfaces=TEXTS,
)
async def merge(call: Call, job: int) -> ActionResult[SubmittedJob]:
    """Merge the pull request of a job, after an approval."""
    from draftsman.deliveries.target import Target
    from draftsman.jobs.requests.service.submissions import invocation

    rt = call.rt
    number, url = await published_pull_request(rt, job)
    name = job_name(number)
    targets = await rt.outbox.targets(number)
    request = invocation(
        type=MERGE_TYPE,
        payload={"job": number},
        queue=(await rt.read_model.job(number)).queue,
        title=f"Merge the pull request of {name}",
        url=url,
        subject_key=f"{MERGE_TYPE}:{name}",
        notify=tuple(Target(row.channel, row.target, row.thread).name for row in targets),
    )
    await rt.request_checks.check(request, chats=False)
    submitted = await rt.submissions.submit(request, call.actor)
    says = f"asks for the merge of {url} once its checks have passed"
    data = as_data(submitted) | {"pr_url": url}
    return ActionResult(says, submitted, data=data, subject=submitted.name)


# The changes of a job in the repository of a person.


async def no_diff_reason(rt: Runtime, name: str, number: int, missing: bool) -> str:
    """Explain why a job or a question has no diff; `missing`: it has no patch at all.

    A question without a patch is of a handler that saves none.
    """
    if "/" in name and missing:
        return f"{name} has no diff; only jobs that change a repository have one"
    is_over = "/" not in name and (await rt.read_model.version(number)).status in TERMINAL
    return f"{name} has no changes{'' if is_over else ' so far'}"


async def patch_of(rt: Runtime, number: int, ordinal: int | None) -> bytes:
    """Return the patch of a job, or of the run that asked a question; raises Refused."""
    name = job_name(number)
    run = None
    if ordinal is not None:
        name = question_name(number, ordinal)
        run = (await rt.questions.get(number, ordinal)).run
    patch = await rt.changes.patch(number, run)
    if patch is None or patch.size == 0:
        raise Refused(await no_diff_reason(rt, name, number, patch is None))
    return await rt.checkpoints.content(patch)


async def published_work(rt: Runtime, number: int) -> PublishedWork:
    """Return the published work of a job; raises Refused."""
    job = await rt.read_model.job(number)
    runs = await rt.read_model.runs(number)
    result: dict[str, Any] = job.result or {}
    sources = [run.params_snapshot["repo"] for run in runs if "repo" in run.params_snapshot]
    branch = result.get("branch")
    commit = result.get("commit")
    if not isinstance(branch, str) or not isinstance(commit, str) or not sources:
        patch = await rt.changes.patch(number)
        if patch is None or patch.size == 0:
            raise Refused(await no_diff_reason(rt, job.name, number, missing=False))
        text = f"{job.name} has no published branch; to use its changes: draftsman apply {job.name}"
        raise Refused(text)
    return PublishedWork(job.name, branch, commit, str(sources[-1]))


def parse_folder(text: str) -> dict[str, Path]:
    """Parse a folder of the repository; default: the current one."""
    return {"folder": Path(text.strip() or ".").expanduser()}


async def checked_out(call: Call, job: int, folder: Path, **_: object) -> Subject:
    """Return the branch and the repository of a checkout; raises Refused, UsageError."""
    work = await published_work(call.rt, job)
    return Subject(work.branch, f"In {UserRepository.at(folder).top}.")


@action(
    About.JOB,
    takes=Arguments("[DIRECTORY]", parse_folder),
    question="Check out {}?",
    check=checked_out,
)
async def checkout(
    call: Call,
    job: int,
    folder: Path,
    *,
    detach: bool = False,
    worktree: bool = False,
    path: Path | None = None,
) -> ActionResult[Path]:
    """Check out the branch of a job in your own repository."""
    work = await published_work(call.rt, job)
    place = await asyncio.to_thread(
        check_out,
        UserRepository.at(folder),
        work,
        detach=detach,
        worktree=worktree,
        path=path,
    )
    head = UserRepository(place).git("rev-parse", "HEAD")
    says = f"{'detached' if detach else f'branch {work.branch}'} at {head[:12]}"
    branch = None if detach else work.branch
    data = {"job": work.job, "branch": branch, "commit": head, "path": str(place)}
    return ActionResult(says, place, data=data, subject=f"{place}:")


async def applied(call: Call, job: int, folder: Path, **_: object) -> Subject:
    """Return the changes and the repository; raises Refused, UsageError."""
    await patch_of(call.rt, job, None)
    return Subject(note=f"In {UserRepository.at(folder).top}.")


@action(
    About.JOB,
    takes=Arguments("[DIRECTORY]", parse_folder),
    question="Apply the changes of {}?",
    check=applied,
)
async def apply(
    call: Call,
    job: int,
    folder: Path,
    *,
    question: int | None = None,
    check: bool = False,
    reverse: bool = False,
    dirty: bool = False,
) -> ActionResult[list[str]]:
    """Apply the changes of a job to your working tree."""
    patch = await patch_of(call.rt, job, question)
    repository = UserRepository.at(folder)
    name = job_name(job)
    done = await asyncio.to_thread(
        apply_patch, repository, name, patch, check=check, reverse=reverse, dirty=dirty
    )
    files = [file for file, _, _ in changed_files(patch.decode("utf-8", "replace"))]
    is_applied = not (check or done.unchanged)
    data: dict[str, Any] = {"job": name, "path": str(repository.top), "files": files}
    data |= {"applied": is_applied, "conflicts": done.conflicts}
    verb = "applies" if check else ("was taken back" if reverse else "applied")
    if done.conflicts:
        names = ", ".join(done.conflicts[:MAX_CONFLICTS])
        raise RefusedWithData(f"{name} {verb} with conflicts; resolve them: {names}", data)
    subject = f"{repository.top}"
    if done.unchanged:
        has = "does not have" if reverse else "already has"
        says = f"{has} the changes of {name}; nothing changed"
        return ActionResult(says, files, data=data, subject=subject)
    undo = CommandHint("apply", f"{name} --reverse", lead="to undo it")
    then = undo if is_applied and not reverse else None
    says = f"{name} {verb} ({counted(len(files), 'file')})"
    return ActionResult(says, files, then=then, data=data, subject=f"{subject}:")
