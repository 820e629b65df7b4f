"""Publishing of work: the branch, and the pull request that a run opens once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.validation.validation import Validation
from draftsman.costs.budgets import usage_of
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.result_text import change_summary
from draftsman.deliveries.target import Target
from draftsman.errors import Failure
from draftsman.forges.api.connection import forge_of, forge_settings
from draftsman.forges.api.publication import base_branch, open_pull_request
from draftsman.forges.body import (
    AnsweredQuestion,
    Command,
    PullRequestFacts,
    body_of,
    find_issues,
    status_of,
    title_of,
)
from draftsman.forges.forge import Forge
from draftsman.forges.issue_target import CHANNEL, IssueTarget
from draftsman.forges.project import is_page_of, web_url_of
from draftsman.forges.pull_request import PullRequestText, PullState
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.job import Source, Status
from draftsman.jobs.reserved_names import EVIDENCE, PULL_REQUEST, Owner
from draftsman.jobs.retries import after_failure, classify
from draftsman.jobs.runs.run import Run
from draftsman.questions.question import OUTCOMES
from draftsman.settings.forges import ForgeSettings
from draftsman.text import humanize

PROBLEM: Final = "pull_request_problem"
"""Field of a result: why there is no pull request, or which part of it is missing."""
DECIDED: Final = ("answered", *OUTCOMES.values())


async def open_for_job(
    run: WorkerRun,
    workspace: Workspace,
    result: dict[str, Any],
    validation: Validation,
    *,
    ref: str | None,
    message: str,
) -> dict[str, Any]:
    """Return the fields of the result about the pull request; none for a plain git remote.

    `message` is that of the commit, for its merge. The work is published already: a forge that
    refuses the pull request for good, or after the last attempt of the job, is a field of the
    result. Raises Failure while the job is retried.
    """
    forge = forge_of(run.settings, workspace.source.location)
    if forge is None:
        return {}
    settings = run.settings.forges[forge.name]
    if not settings.pull_requests:
        return {}

    async def effect(_: str) -> dict[str, Any]:
        base = ref
        try:
            base = await base_branch(forge, ref)
            facts = await _facts(run, forge, result, validation)
            return await _open(forge, settings, facts, workspace, base) | {
                "message": message,
                "source": workspace.source.location,
                "project": forge.project.path.casefold(),
                "branch": workspace.branch,
                "follow_ups": settings.events is not None,
            }
        except Failure as error:
            if _is_retried(run, error):
                raise
            page = settings.plugin.compare_url(forge.project.url, base or "HEAD", workspace.branch)
            return {"problem": f"not opened: {error}; to open it yourself: {page}"}

    opened = await run.step(PULL_REQUEST, effect, owner=Owner.WORKER)
    if settings.events is not None and opened.get("state") == PullState.OPEN:
        await _ask_there(run, forge, settings, opened)
    if settings.merge == "ask" and opened.get("state") == PullState.OPEN and not opened["draft"]:
        await _ask_for_merge(run, opened)
    fields = {"pr_url": opened.get("url"), PROBLEM: opened.get("problem")}
    return {name: value for name, value in fields.items() if value}


def agent_pull_request(run: WorkerRun, source: str, claimed: object) -> str | None:
    """Return the page that the agent calls its pull request; None if it is of another repository.

    People follow the link in messages, so that no agent may choose its host.
    """
    if not isinstance(claimed, str) or not (url := claimed.strip()):
        return None
    at_forge = forge_settings(run.settings, source)
    repository = web_url_of(source) if at_forge is None else at_forge[2].url
    if repository is not None and is_page_of(repository, url):
        return url
    page = f"a page of {repository}" if repository else "a page: the repository is a folder"
    run.log.write(f"[ignored] pr_url of the result is not {page}")
    return None


async def _open(
    forge: Forge,
    settings: ForgeSettings,
    facts: PullRequestFacts,
    workspace: Workspace,
    base: str,
) -> dict[str, Any]:
    """Open the pull request; return the record of the step."""
    title = title_of(facts, forge.limits)
    body = body_of(facts, forge.limits, settings.body)
    text = PullRequestText(workspace.branch, base, title, body, facts.draft)
    status = status_of(facts, forge.limits)
    opened = await open_pull_request(forge, settings, text, status, id=facts.id, head=facts.head)
    pull = opened.pull
    return {
        "forge": forge.name,
        "number": pull.number,
        "url": pull.url,
        "state": pull.state,
        "base": pull.base,
        "draft": facts.draft or pull.draft,
        "head": facts.head,
        "step": opened.step,
        "problem": f"incomplete: {'; '.join(opened.problems)}" if opened.problems else "",
    }


async def _facts(
    run: WorkerRun,
    forge: Forge,
    result: dict[str, Any],
    validation: Validation,
) -> PullRequestFacts:
    job = run.job
    runs = await run.runs()
    usage = usage_of(runs)
    ticket = await run.wait(run.services.checkpoints.ticket_url, job.number)
    evidence = validation.evidence
    followed = await run.wait(run.services.workflows.followed_pull, job.number)
    title = job.own_title if followed is None else followed.title
    request = "\n".join(filter(None, (title, job.agent_request.text)))
    source = job.source if followed is None else followed.source
    # anyone may write the text of an issue, and an agent that of a job that another job submitted
    by_person = "issue" not in job.payload and source != Source.INTERNAL
    counts = ("uncommitted", "files_changed", "insertions", "deletions", "left_out")
    conflicts = ("conflicts", "conflicts_unknown")
    return PullRequestFacts(
        job=job.name,
        id=job.id if followed is None else followed.root_id,
        head=str(result["commit"]),
        title=title,
        request=job.agent_request.text or "",
        requester=job.invoker_id,
        source=str(job.source),
        summary=str(result.get("summary") or ""),
        changes=change_summary({key: result.get(key) for key in counts}),
        conflicts=change_summary({key: result.get(key) for key in conflicts}),
        agent=_agent_text(run, runs),
        draft=bool(result.get("draft")),
        commands=_commands(validation),
        findings=[item.text for item in evidence.findings] if evidence is not None else (),
        check_files=validation.check_files,
        evidence_sha256=await _evidence_sha256(run, result),
        decisions=await _decisions(run),
        tokens=int(usage.get("input_tokens", 0) + usage.get("output_tokens", 0)),
        cost=usage.get("cost_usd", 0.0),
        issues=find_issues(request, forge.project, ticket, closes=by_person),
    )


def _commands(validation: Validation) -> list[Command]:
    """Return the commands that ran on the work, also with the check files of the base."""
    commands = [*validation.commands, *validation.base_checks]
    base = len(validation.commands)
    return [
        Command(
            name=item.name + (" (check files of the base)" if index >= base else ""),
            command=item.command,
            passed=item.passed,
            required=item.required and index < base,
            summary=item.summary,
        )
        for index, item in enumerate(commands)
        if not item.missing
    ]


def _agent_text(run: WorkerRun, runs: Sequence[Run]) -> str:
    """Return the agent with its version and models, as its runs recorded them."""
    params: Mapping[str, Any] = next(
        (item.params_snapshot for item in reversed(runs) if "agent" in item.params_snapshot), {}
    )
    models = sorted({model for item in runs for model in (item.usage or {}).get("models", ())})
    names = (params.get("agent") or run.job.agent_request.agent, params.get("version"))
    name = " ".join(str(part) for part in names if part)
    return f"{name} with {', '.join(models)}" if models else name


async def _evidence_sha256(run: WorkerRun, result: dict[str, Any]) -> str | None:
    if "evidence" not in result:
        return None
    read = run.services.checkpoints.read_artifact
    _, data = await run.wait(read, run.job.number, EVIDENCE)
    return hashlib.sha256(data).hexdigest()


async def _decisions(run: WorkerRun) -> list[AnsweredQuestion]:
    questions, _ = await run.wait(run.services.questions.of_job, run.job.number)
    decided = [(item, item.resolution or {}) for item in questions]
    return [
        AnsweredQuestion(
            item.text,
            item.answer_text() or humanize(str(resolution["outcome"])),
            tuple(resolution.get("by", ())),
        )
        for item, resolution in decided
        if resolution.get("outcome") in DECIDED
    ]


def _is_retried(run: WorkerRun, error: Failure) -> bool:
    """Return whether the job runs again after this failure."""
    decision = after_failure(classify(error), run.limits, run.job.retry_counts)
    return decision.status is Status.RETRYING


async def _ask_there(
    run: WorkerRun, forge: Forge, settings: ForgeSettings, opened: dict[str, Any]
) -> None:
    """Show the questions of the job, and of its merge, in comments of the pull request too."""
    path = forge.project.path.casefold()
    number = int(opened["number"])
    target = IssueTarget(forge.name, path, number, settings.plugin.has_pull_numbers).target
    kinds = (DeliveryKind.QUESTION, DeliveryKind.REMINDER)
    add = run.services.outbox.add_target
    await run.wait(add, run.job.lease, Target(CHANNEL, target, kinds=kinds))


async def _ask_for_merge(run: WorkerRun, opened: dict[str, Any]) -> None:
    """Submit the job that waits for the checks and asks for the merge, in the job's channels."""
    spawn = run.services.workflows.spawn
    fields = {
        "payload": {"job": run.job.number},
        "queue": run.job.queue,
        "title": f"Merge the pull request of {run.job.name}",
        "url": opened["url"],
    }
    await run.wait(spawn, run.job, "merge", "merge_pull_request", fields, notify=True)


# Publishing of a branch, over commits of earlier runs of the same job only.
#
# A job that follows up adds a commit to the branch, on the head that it started from.


PUSH: Final = "agent:push:"
"""Prefix of steps of runs that pushed, whose invocation ids are the commits."""
COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


async def publish(run: WorkerRun, workspace: Workspace, snapshot: Snapshot) -> str:
    """Push the branch, and return its commit.

    A run that died before it could record its push may have left another commit of this job
    there, because an agent that runs again makes another. Raises Failure `branch_moved`, …
    """
    steps = await run.steps(Owner.WORKER)
    pushed = [step.invocation_id for key, step in steps.items() if key.startswith(PUSH)]
    key = f"{PUSH}{run.job.run}"
    await run.note_step(key, snapshot.commit, Owner.WORKER)
    await _push(workspace, snapshot, [commit for commit in pushed if COMMIT.fullmatch(commit)])
    await run.finish_step(key, snapshot.commit, Owner.WORKER)
    return snapshot.commit


async def _push(workspace: Workspace, snapshot: Snapshot, own_commits: Sequence[str]) -> None:
    head = workspace.parents[0] if workspace.parents else None
    for expected in (head, *own_commits):
        try:
            await workspace.publish(snapshot, expected)
        except Failure as error:
            if error.code != "branch_moved":
                raise
            branch_moved = error
        else:
            return
    raise branch_moved
