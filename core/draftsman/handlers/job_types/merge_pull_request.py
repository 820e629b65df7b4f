"""`merge_pull_request`: the merge of a job's pull request, once its checks passed, if approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from draftsman.errors import Failure
from draftsman.forges.api.connection import forge_of
from draftsman.forges.checks import CheckState, foreign, overall
from draftsman.forges.forge import Forge
from draftsman.forges.pull_request import UNSETTLED, PullRequest, PullState, recorded
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.worker_run import WorkerRun
from draftsman.ids import job_name
from draftsman.jobs.requests.payloads import MergePullRequest, parse
from draftsman.jobs.reserved_names import SLEEP, Owner
from draftsman.jobs.runs.outcome import Done, Outcome

WAITS: Final = "checks:"
"""Prefix of the keys of the waits for checks."""
MERGE_WAITS: Final = "merge-state:"
"""Prefix of the keys of the waits for a forge that checks for conflicts."""
SHORT_WAIT: Final = 60.0
"""Seconds between two looks at checks that have not finished, in the first quarter of an hour."""
SHORT_WAITS: Final = 15
LONG_WAIT: Final = 300.0
MAX_WAITS: Final = 60
"""Number of waits after which the job gives up: four hours."""
START_WAITS: Final = 5
"""Number of waits for a first check: CI reports some time after the push."""


async def merge_pull_request(ctx: RunContext) -> Outcome:
    """Wait for the checks, ask for an approval of the commit, and merge it.

    The forge merges under its own rules for the branch, only if the commit is still the head.
    """
    payload = parse("merge_pull_request", ctx.job.payload)
    assert isinstance(payload, MergePullRequest)  # noqa: S101 - the type's own model
    run = worker_run(ctx)
    name = job_name(payload.job)
    opened = await _opened(run, payload.job)
    forge, method = _forge(run, opened)
    head = str(opened["head"])
    number = int(opened["number"])
    pull = await forge.get(number)
    if pull.state is PullState.MERGED:
        return Done(_result(pull, head))
    checks = await _check(ctx, forge, pull, head, name)
    await _show_changes(run, payload.job)
    action = {"merge": pull.url, "commit": head, "into": pull.base, "method": method}
    await ctx.approve(
        "merge",
        f"Merge the pull request of {name} into {pull.base}?",
        action=action,
        context=f"{checks}\nchanges: draftsman diff {name}",
    )
    message = await _message(run, payload.job, opened)
    await ctx.step("merge", lambda _: _merge(forge, number, head, method, message))
    return Done(_result(await forge.get(number), head))


async def _show_changes(run: WorkerRun, job: int) -> None:
    """Store the patch of the job as that of this one, which its approval shows."""
    if await run.has_patch():
        return
    patch = await run.wait(run.services.changes.patch, job)
    if patch is not None:
        await run.patch(await run.wait(run.services.checkpoints.content, patch))


async def _opened(run: WorkerRun, job: int) -> Mapping[str, Any]:
    """Return the record of the job about its pull request; raises Failure."""
    opened = recorded(await run.wait(run.services.checkpoints.steps, job))
    if opened is None:
        raise _refusal(f"{job_name(job)} opened no pull request on a forge of [forges]")
    if "number" not in opened:
        raise _refusal(f"the pull request of {job_name(job)} was {opened['problem']}")
    return opened


async def _message(run: WorkerRun, job: int, opened: Mapping[str, Any]) -> str:
    """Return the message of the work: that of the first job, which has its title."""
    followed = await run.wait(run.services.workflows.followed_pull, job)
    if followed is not None:
        first = recorded(await run.wait(run.services.checkpoints.steps, followed.root))
        opened = first or opened
    return str(opened.get("message", ""))


def _forge(run: WorkerRun, opened: Mapping[str, Any]) -> tuple[Forge, str]:
    source = str(opened["source"])
    forge = forge_of(run.settings, source)
    if forge is None:
        text = f"no forge for {source} on this worker; add it to [forges]"
        raise Failure(text, origin="forge", code="no_such_forge", declared="TRANSIENT_APP")
    return forge, run.settings.forges[forge.name].merge_method


async def _check(ctx: RunContext, forge: Forge, pull: PullRequest, head: str, name: str) -> str:
    """Return the checks that passed; parks while some have not finished. Raises Failure."""
    if pull.state is not PullState.OPEN:
        raise _refusal(f"{pull.url} is {pull.state}")
    if pull.head != head:
        raise _refusal(
            f"the head of {pull.url} is {pull.head[:12]}, and {name} published {head[:12]};"
            " review the other commits, and merge it there"
        )
    if pull.draft:
        raise _refusal(f"{pull.url} is a draft")
    checks = await forge.checks(head)
    state, text = overall(checks)
    if not foreign(checks) and state is CheckState.FAILED and "failed" not in text:
        await _wait(ctx, f"{pull.url}: {text}", START_WAITS, "after five minutes")
    if state is CheckState.PASSED and pull.mergeable is not CheckState.PASSED:
        state = pull.mergeable
        text = f"its merge state is {pull.merge_state}"
        if pull.merge_state == UNSETTLED:
            reason = f"{pull.url}: {text}"
            await _wait(ctx, reason, START_WAITS, "after five minutes", MERGE_WAITS)
    if state in (CheckState.FAILED, CheckState.NO_RESULT):
        raise _refusal(f"{pull.url} cannot be merged: {text}")
    if state is CheckState.PENDING:
        await _wait(ctx, f"{pull.url}: {text}")
    return text


async def _wait(
    ctx: RunContext,
    text: str,
    most: int = MAX_WAITS,
    limit: str = "after four hours",
    prefix: str = WAITS,
) -> None:
    """Park until the next look; raises Failure after the last."""
    steps = await worker_run(ctx).steps(Owner.WORKER)
    waits = sum(key.startswith(f"{SLEEP}{prefix}") for key in steps)
    if waits >= most:
        raise _refusal(f"{text}, {limit}")
    reason = f"waits for {text}"
    ctx.log(reason)
    seconds = SHORT_WAIT if waits < SHORT_WAITS else LONG_WAIT
    await ctx.sleep(f"{prefix}{waits}", seconds, reason=reason)


async def _merge(forge: Forge, number: int, head: str, method: str, message: str) -> bool:
    """Merge, unless an earlier run of the job did; return True."""
    if (await forge.get(number)).state is not PullState.MERGED:
        await forge.merge(number, head, method, message)
    return True


def _result(pull: PullRequest, head: str) -> dict[str, Any]:
    text = f"merged {pull.head[:12]} into {pull.base}"
    if pull.head != head:  # by a person, on the forge
        text += f"; the published commit is {head[:12]}"
    return {"summary": text, "merged": True, "commit": pull.head, "pr_url": pull.url}


def _refusal(text: str) -> Failure:
    return Failure(text, origin="forge", code="not_mergeable", declared="PERMANENT")
