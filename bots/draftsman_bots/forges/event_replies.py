"""Answers on forges about events that were dealt with, and the deletion of branches.

Both may be repeated after a crash at any point: an answer is searched for by its marker before it
is written.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from draftsman.errors import Failure
from draftsman.forges.api.connection import forge_at
from draftsman.forges.api.rest_api import GONE
from draftsman.forges.follow_up import ENDS, AnswerDue, answer_marker, answer_text
from draftsman.forges.forge_event import EventKind
from draftsman.jobs.job import Status
from draftsman.jobs.retries import ErrorClass, classify

if TYPE_CHECKING:
    from draftsman.forges.follow_up import TrackedPull
    from draftsman.forges.forge import Forge
    from draftsman.runtime import Runtime

OF_PEOPLE: Final = frozenset({EventKind.COMMENT, EventKind.REVIEW, EventKind.REVIEW_THREAD})
Attempt = Callable[[str, str, Callable[[], Awaitable[None]]], Awaitable[None]]
"""`RepoIsolation.attempt`: work in a repository, whose failure delays no other."""
_log = logging.getLogger(__name__)


async def write_answers(
    rt: Runtime, name: str, own_login: Callable[[str, str], Awaitable[str]], attempt: Attempt
) -> None:
    """Write the answers that are due on a forge; raises Failure for a problem of the forge."""
    due = await rt.forge_events.follow_ups.unanswered(name)
    for (project, number), group in groupby(due, lambda answer: (answer.project, answer.number)):
        work = partial(_write_answers, rt, name, own_login, list(group))
        await attempt(project, f", answers on {number}", work)


async def _write_answers(
    rt: Runtime,
    name: str,
    own_login: Callable[[str, str], Awaitable[str]],
    answers: Sequence[AnswerDue],
) -> None:
    """Write the answers on a pull request; there is nothing to answer on one that is gone."""
    project = answers[0].project
    number = answers[0].number
    try:
        login = await own_login(name, project)
        forge = forge_at(rt.settings, name, project)
        await _answer_pull(rt, forge, number, login, answers)
    except Failure as error:
        if error.http_status not in GONE:
            raise
        _log.warning("no answers on %s #%s: %s", project, number, error)
        await rt.forge_events.follow_ups.answered([answer.id for answer in answers])


async def delete_branches(rt: Runtime, name: str, attempt: Attempt) -> None:
    """Delete the branches of pull requests that have ended, if the forge is set so.

    The branch of a pull request that was opened again since its event stays.
    """
    if not rt.settings.forges[name].delete_branch:
        return
    for pull in await rt.forge_events.follow_ups.ended_branches(name):
        await attempt(pull.project, f", branch {pull.branch}", partial(_delete, rt, pull))


async def _delete(rt: Runtime, pull: TrackedPull) -> None:
    forge = forge_at(rt.settings, pull.forge, pull.project)
    try:
        seen = await forge.events().pull(pull.number)
        if any(event.kind in ENDS for event in seen.events):
            await forge.delete_branch(pull.branch)
        else:
            _log.warning("branch %s stays: %s is open again", pull.branch, pull.url)
    except Failure as error:
        if classify(error) is not ErrorClass.PERMANENT:
            raise
        _log.warning("branch %s of %s was not deleted: %s", pull.branch, pull.url, error)
    await rt.forge_events.follow_ups.branch_deleted(pull.root)


async def _answer_pull(
    rt: Runtime, forge: Forge, number: int, login: str, due: Sequence[AnswerDue]
) -> None:
    """Answer each thread, and the other texts of a job with a single comment.

    `login` is that of draftsman: others can write a comment with the marker of an answer.
    """
    events = await forge.events().written(number)
    written = [event.text for event in events if event.author.casefold() == login]
    groups: dict[str, list[AnswerDue]] = {}
    for answer in due:
        if answer.source == "forge" and EventKind(answer.kind) in OF_PEOPLE:
            groups.setdefault(_key(answer), []).append(answer)
        else:
            await rt.forge_events.follow_ups.answered([answer.id])
    for key, answers in groups.items():
        first = answers[0]
        marker = answer_marker(key)
        try:
            if not any(marker in text for text in written):
                await forge.answer(number, answer_text(first, marker), first.thread)
            if first.thread and first.status is Status.COMPLETED and first.commit:
                await forge.resolve(number, first.thread)
        except Failure as error:
            if classify(error) is not ErrorClass.PERMANENT:
                raise
            _log.warning("no answer on %s #%s: %s", first.project, number, error)
        await rt.forge_events.follow_ups.answered([answer.id for answer in answers])


def _key(answer: AnswerDue) -> str:
    return f"{answer.job}:{answer.thread}" if answer.thread else f"{answer.job}"
