"""The first message to an agent."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.iteration_plan import IterationPlan
from draftsman.agent_runs.protocol.protocol import (
    AnswerBody,
    AttachmentBody,
    FailedValidator,
    MessageBody,
    ParentBody,
    Profile,
    RequestBody,
    StartMessage,
    StepState,
)
from draftsman.agent_runs.request_text import shown_to_people
from draftsman.jobs.job import Status
from draftsman.jobs.reserved_names import KEYS
from draftsman.log import redact
from draftsman.repos.repo_profile import effective_profile
from draftsman.settings.network import as_json
from draftsman.workflows.dependencies import Parent

MAX_PARENTS: Final = 1000
"""Maximum number of parents in the message."""
PARENTS_LIMIT: Final = 1024 * 1024
"""Maximum size of the results and errors of all parents, in characters of JSON."""


async def build_start_message(
    plan: IterationPlan,
    workspace: Workspace,
    *,
    deadline: datetime,
    messages: Sequence[MessageBody],
    attachments: Sequence[AttachmentBody],
) -> StartMessage:
    """Return the message with the state of earlier runs and iterations.

    `messages` and `attachments` are those of people.
    """
    run = plan.run
    repository = plan.repository
    answers = {
        key: AnswerBody.of(answer, partial(shown_to_people, run.job), question=question)
        for key, (question, answer) in (await run.answered_questions()).items()
        if not key.startswith(KEYS)
    }
    steps = {
        key: StepState.model_validate(
            {"state": step.status, "invocation_id": step.invocation_id, "result": step.result}
        )
        for key, step in (await run.steps()).items()
    }
    repo_profile = repository.saved.profile if repository.saved else None
    repo = repository.location.repo
    profile = Profile.of(
        effective_profile(repo_profile, run.settings.profile_of(repo.host, repo.full_name)[1]),
        sys.executable if workspace.sandbox is None else workspace.sandbox.sandbox.python,
    )
    skills = (*run.job.agent_request.skills, *(repo_profile.default_skills if repo_profile else ()))
    extra = {
        "path": repo_profile.path if repo_profile else "",
        "skills": tuple(dict.fromkeys(skills)),
    }
    profile = profile.model_copy(update=extra)
    limits: dict[str, Any] = {}
    if repo_profile is not None:
        limits = repo_profile.limits | {"network": as_json(plan.agent.network)}
    return StartMessage(
        job=run.job.name,
        run=run.job.run,
        repo=repository.source,
        workspace=workspace.sandbox_path,
        branch=workspace.branch,
        base_sha=workspace.base_sha,
        checkpoint=plan.checkpoint.get("agent"),
        steps=steps,
        answers=answers,
        mode=run.job.agent_request.mode.value,
        parents=parent_bodies(await run.wait(run.services.workflows.parents, run.job.number)),
        request=_request(plan),
        attachments=tuple(attachments),
        missing=tuple(part.text for part in workspace.missing_parts),
        profile=profile,
        deadline=deadline,
        iteration=plan.iteration.number,
        messages=tuple(messages),
        failed=tuple(FailedValidator.model_validate(item) for item in plan.iteration.failed),
        limits=limits,
    )


def _request(plan: IterationPlan) -> RequestBody:
    """Return the request without hidden text; the log says that there was some."""
    job = plan.run.job
    texts = (job.own_title, job.agent_request.text)
    shown = [None if text is None else shown_to_people(job, text) for text in texts]
    if shown != [*texts]:
        plan.run.log.write("[hidden] the agent gets the request without its hidden text")
    return RequestBody(title=shown[0], text=shown[1])


def parent_bodies(parents: Sequence[Parent]) -> tuple[ParentBody, ...]:
    """Return the parents with their results, as far as those are within the limit."""
    remaining = PARENTS_LIMIT
    bodies = []
    for parent in parents[:MAX_PARENTS]:
        result = parent.result if parent.status is Status.COMPLETED else None
        size = len(json.dumps(result)) + len(parent.error or "")
        fits = size <= remaining
        remaining -= size if fits else 0
        bodies.append(
            ParentBody(
                job=parent.name,
                status=str(parent.status),
                type=parent.type,
                title=parent.title,
                result=result if fits else None,
                error=parent.error if fits else None,
                truncated=not fits,
            )
        )
    return tuple(bodies)


def run_parameters(
    plan: IterationPlan, workspace: Workspace, start: StartMessage
) -> dict[str, Any]:
    """Return what the run resolved: its agent, repository, limits and sandbox.

    The request of the job, which never changes, is not repeated.
    """
    sandbox = workspace.sandbox
    params = {
        "agent": plan.agent_name,
        "version": plan.agent.version,
        "command": [redact(word) for word in plan.agent.command],
        "repo": plan.repository.source,
        "ref": plan.repository.ref,
        "base_sha": start.base_sha,
        "mode": start.mode,
        "limits": start.limits,
        "skills": list(start.profile.skills),
        "deadline": None if start.deadline is None else start.deadline.isoformat(),
        "sandbox": None if sandbox is None else sandbox.as_event(plan.agent.network),
    }
    return {key: value for key, value in params.items() if value is not None}
