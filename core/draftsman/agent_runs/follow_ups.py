"""The branches of jobs: their own, or that of the pull request that they follow up on."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from draftsman.agent_runs.clones.commits import checked_branch, free_branch
from draftsman.agent_runs.clones.mirror import open_mirror
from draftsman.agent_runs.clones.open_branches import branch_work, with_earlier_work
from draftsman.agent_runs.clones.workspace import ContinuedBranch
from draftsman.agent_runs.commit_texts import branch_name
from draftsman.agent_runs.iteration_plan import IterationPlan
from draftsman.agent_runs.policy_check import current_policy
from draftsman.errors import Failure
from draftsman.forges.follow_up import FollowedPull
from draftsman.jobs.job import Mode
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question import Answered, OnExpire
from draftsman.questions.question_spec import Choice, QuestionSpec

KEY: Final = "agent:follow_ups"
"""Key of the question after the last follow-up, and of the step that records to go on."""
GO_ON: Final = "go on"
HAND_OVER: Final = "hand over"
STOP: Final = "stop"


async def left_to_people(plan: IterationPlan) -> Done | None:
    """Return the end of a follow-up that hands the pull request over; None to go on.

    After `max_follow_ups` people are asked; parks until they answer. Raises Failure to stop.
    """
    run = plan.run
    followed = plan.followed
    if followed is None:
        return None
    policy = await current_policy(run, plan.repository.location)
    limit = policy.settings.max_follow_ups
    if followed.ordinal <= followed.allowed + limit:
        return None
    answer = (await run.answers()).get(KEY)
    if answer is None:
        answer = await run.ask_or_park(_question_about(followed, limit))
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


def _question_about(followed: FollowedPull, limit: int) -> QuestionSpec:
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


async def continued_branch(plan: IterationPlan) -> ContinuedBranch:
    """Return the branch that the iteration continues.

    The first run of a follow-up continues the branch as it is now, with commits of people; later
    runs continue their checkpoint. So does a retry, on top of what people have pushed meanwhile.
    """
    run = plan.run
    followed = plan.followed
    if followed is None:
        return ContinuedBranch(plan.pinned_branch or await _new_branch(plan))
    earlier = plan.checkpoint.get("follow_up")
    checkpoint = ContinuedBranch(followed.branch)
    if earlier and earlier["job"] in (run.job.number, run.job.retry_of):
        checkpoint = replace(checkpoint, parents=tuple(earlier["parents"]))
        if earlier["job"] == run.job.number:
            return checkpoint
    branch = await branch_work(
        run.settings.data_dir,
        plan.source,
        branch=followed.branch,
        base_branch=followed.base,
        base=plan.checkpoint.get("base_sha"),
        job=run.job.number,
    )
    if branch is None or branch.parents[0] in checkpoint.parents:
        return checkpoint
    if not checkpoint.parents or plan.bundle is None:
        return branch
    return await with_earlier_work(
        run.settings.data_dir, plan.source, branch=branch, bundle=plan.bundle, job=run.job.number
    )


async def _new_branch(plan: IterationPlan) -> str:
    """Return the name of the job's own branch, which the repository can have."""
    run = plan.run
    mirror = await open_mirror(run.settings.data_dir, plan.source)
    name = branch_name(plan.git.branch, await plan.name_fields())
    name = await checked_branch(name, mirror)
    is_fix = run.job.agent_request.mode is Mode.FIX
    return await free_branch(plan.source, mirror, name) if is_fix else name
