"""Answers on forges about events that were dealt with, and the deletion of branches.

Both may be repeated after a crash at any point: an answer is searched for by its marker before it
is written.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from draftsman.domain.forges.follow_up import AnswerDue, answer_marker, answer_text
from draftsman.domain.forges.forge_event import EventKind
from draftsman.domain.job import Status
from draftsman.domain.retries.error_classes import ErrorClass, classify
from draftsman.errors import Failure
from draftsman.forges.connection import forge_at

if TYPE_CHECKING:
    from draftsman.ports import Forge
    from draftsman.runtime import Runtime

OF_PEOPLE: Final = frozenset({EventKind.COMMENT, EventKind.REVIEW, EventKind.REVIEW_THREAD})
GONE: Final = (404, 410)
"""Statuses of a repository or pull request that was deleted."""
_log = logging.getLogger(__name__)


async def write_answers(rt: Runtime, name: str) -> None:
    """Write the answers that are due on a forge; raises Failure for a problem of the forge."""
    due = await rt.forge_events.follow_ups.unanswered(name)
    for (project, number), found in groupby(due, lambda item: (item.project, item.number)):
        items = list(found)
        try:
            await _answer_pull(rt, forge_at(rt.settings, name, project), number, items)
        except Failure as error:
            if error.http_status not in GONE:
                raise
            _log.warning("no answers on %s #%s: %s", project, number, error)
            await rt.forge_events.follow_ups.answered([item.id for item in items])


async def delete_branches(rt: Runtime, name: str) -> None:
    """Delete the branches of pull requests that have ended, if the forge is set so."""
    if not rt.settings.forges[name].delete_branch:
        return
    for pull in await rt.forge_events.follow_ups.ended_branches(name):
        forge = forge_at(rt.settings, name, pull.project)
        try:
            await forge.delete_branch(pull.branch)
        except Failure as error:
            if classify(error) is not ErrorClass.PERMANENT:
                raise
            _log.warning("branch %s of %s was not deleted: %s", pull.branch, pull.url, error)
        await rt.forge_events.follow_ups.branch_deleted(pull.root)


async def _answer_pull(rt: Runtime, forge: Forge, number: int, due: Sequence[AnswerDue]) -> None:
    """Answer each thread, and the other texts of a job with a single comment."""
    written = [event.text for event in await forge.events().written(number)]
    groups: dict[str, list[AnswerDue]] = {}
    for item in due:
        if item.source == "forge" and EventKind(item.kind) in OF_PEOPLE:
            groups.setdefault(_key(item), []).append(item)
        else:
            await rt.forge_events.follow_ups.answered([item.id])
    for key, items in groups.items():
        first, marker = items[0], answer_marker(key)
        try:
            if not any(marker in text for text in written):
                await forge.answer(number, answer_text(first, marker), first.thread)
            if first.thread and first.status is Status.COMPLETED and first.commit:
                await forge.resolve(number, first.thread)
        except Failure as error:
            if classify(error) is not ErrorClass.PERMANENT:
                raise
            _log.warning("no answer on %s #%s: %s", first.project, number, error)
        await rt.forge_events.follow_ups.answered([item.id for item in items])


def _key(item: AnswerDue) -> str:
    return f"{item.job}:{item.thread}" if item.thread else f"{item.job}"
