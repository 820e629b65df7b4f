"""Jobs that follow up on a pull request: the branch that they continue, and their bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from draftsman.agent_runs.clones.branch_work import branch_work
from draftsman.agent_runs.policy_check import current_policy
from draftsman.agent_runs.repository import JobRepository
from draftsman.errors import Failure
from draftsman.forges.api.connection import git_login_of
from draftsman.forges.follow_up import FollowedPull
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question import Answered, OnExpire
from draftsman.questions.question_spec import Choice, QuestionSpec

KEY: Final = "agent:follow_ups"
"""Key of the question after the last follow-up, and of the step that records to go on."""
GO_ON: Final = "go on"
HAND_OVER: Final = "hand over"
STOP: Final = "stop"


async def left_to_people(
    run: WorkerRun, repository: JobRepository, followed: FollowedPull | None
) -> Done | None:
    """Return the end of a follow-up that hands the pull request over; None to go on.

    After `max_follow_ups` people are asked; parks until they answer. Raises Failure to stop.
    """
    if followed is None:
        return None
    policy = await current_policy(run, repository.location)
    limit = policy.settings.max_follow_ups
    if followed.ordinal <= followed.allowed + limit:
        return None
    answer = (await run.answers()).get(KEY)
    if answer is None:
        answer = await run.ask_or_park(question_about(followed, limit))
    value = answer.value if isinstance(answer, Answered) else STOP
    if value == GO_ON:
        await run.step(KEY, lambda _: GO_ON, owner=Owner.WORKER)
        return None
    if value == HAND_OVER:
        summary = f"{followed.url} was handed over to people"
        return Done({"summary": summary, "handed_over": True, "files_changed": 0})
    raise Failure(
        f"stopped after {followed.ordinal - 1} follow-ups on {followed.url}",
        origin="agent",
        code="limit:max_follow_ups",
        declared="PERMANENT",
    )


def question_about(followed: FollowedPull, limit: int) -> QuestionSpec:
    """Return the question whether follow-ups go on; without an answer in time this one stops."""
    return QuestionSpec(
        key=KEY,
        text=f"{followed.url} had {followed.ordinal - 1} follow-ups. Go on, hand over, or stop?",
        choices=(
            Choice(value=GO_ON, label="Go on", description=f"Up to {limit} more follow-ups"),
            Choice(value=HAND_OVER, label="Hand over", description="No more follow-ups"),
            Choice(value=STOP, label="Stop", description="This follow-up fails"),
        ),
        on_expire=OnExpire.DEFAULT,
        default=STOP,
    )


async def work_of_branch(
    run: WorkerRun,
    repository: JobRepository,
    checkpoint: Mapping[str, Any] | None,
    followed: FollowedPull | None,
) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of `Workspace.prepare` about the branch, and the base.

    The first run continues the branch as it is now, with commits of people; later runs, and a
    retry, continue their checkpoint.
    """
    if followed is None:
        return {}, None
    own = (checkpoint or {}).get("follow_up") or {}
    if own and own["job"] in (run.job.number, run.job.retry_of):
        return {"branch": followed.branch, "parents": tuple(own["parents"])}, None
    found = await branch_work(
        run.settings.data_dir,
        repository.source,
        followed.branch,
        followed.base,
        str((checkpoint or {}).get("base_sha") or ""),
        job=run.job.number,
        http=run.settings.http,
        login=git_login_of(run.settings, repository.source),
    )
    if found is None:
        return {"branch": followed.branch}, None
    fields = {"branch": followed.branch, "parents": found.parents, "work": found.work}
    return fields, found.base or None
