"""A pull request for a published branch: found, or opened once."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from draftsman.errors import Failure
from draftsman.forges.forge import Forge
from draftsman.forges.pull_request import (
    CommitStatus,
    PullRequest,
    PullRequestText,
    PullState,
    Reconciliation,
    draft_change,
    next_step,
)
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.settings.forges import ForgeSettings

EXISTS: Final = (409, 422)
"""Statuses of a refused pull request, perhaps because the branch has another."""


@dataclass(frozen=True, slots=True)
class OpenedPullRequest:
    """A pull request of a branch; `problems` are parts that the forge refused."""

    pull: PullRequest
    step: Reconciliation
    problems: tuple[str, ...] = ()


async def open_pull_request(
    forge: Forge,
    settings: ForgeSettings,
    text: PullRequestText,
    status: CommitStatus | None,
    *,
    id: UUID,
    head: str,
) -> OpenedPullRequest:
    """Open a pull request for the branch, or update that of an earlier commit.

    An update marks a draft of earlier work as ready, or makes it a draft, as `text.draft` says.
    May be repeated after a crash at any point. Raises Failure if there is none afterwards, and for
    temporary problems. A label, reviewer or status that the forge refuses is a problem only.
    """
    step, pull = next_step(await forge.find(text.branch), id, head)
    problems = []
    if pull is None:
        pull, step = await _create(forge, text, id, head)
    elif step is Reconciliation.UPDATE:
        # before the body, whose marker ends the update
        if (draft := draft_change(pull, text.draft)) is not None:
            problems.append(await _problem(forge.set_draft(pull, draft)))
            pull = pull if problems[0] else replace(pull, draft=draft)
        await forge.update(pull.number, text.body)
    if pull.state is PullState.OPEN:
        if settings.labels:
            problems.append(await _problem(forge.add_labels(pull.number, settings.labels)))
        if settings.reviewers and not text.draft:
            problems.append(await _problem(forge.request_reviews(pull.number, settings.reviewers)))
    if status is not None:
        problems.append(await _problem(forge.set_status(head, status)))
    return OpenedPullRequest(pull, step, tuple(text for text in problems if text))


async def base_branch(forge: Forge, ref: str | None) -> str:
    """Return the branch to merge into: `ref` if it is a branch there, else the default branch."""
    if ref is not None and await forge.has_branch(ref):
        return ref
    return await forge.default_branch()


async def _create(
    forge: Forge, text: PullRequestText, id: UUID, head: str
) -> tuple[PullRequest, Reconciliation]:
    try:
        return await forge.create(text), Reconciliation.CREATE
    except Failure as error:
        if error.http_status not in EXISTS:
            raise
        step, pull = next_step(await forge.find(text.branch), id, head)
        if pull is None:
            raise
        return pull, step


async def _problem(call: Awaitable[None]) -> str:
    """Return the reason of a permanent refusal; raises temporary failures."""
    try:
        await call
    except Failure as error:
        if classify(error) is not ErrorClass.PERMANENT:
            raise
        return str(error)
    return ""
