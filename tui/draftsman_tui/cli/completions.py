"""Values that the shell completes: jobs, open questions, agents and repositories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, assert_never

from draftsman.errors import DraftsmanError
from draftsman.ids import job_name
from draftsman.text import first_line, humanize

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_tui.terminal.params import Completed

MAX_VALUES: Final = 200
"""Newest jobs, and soonest questions, that are completed."""
MAX_HELP: Final = 60
"""Characters of the description of a value, which zsh and fish show."""
TIMEOUT: Final = 3.0
"""Seconds after which nothing is completed."""


def values(
    kind: Completed,
    agents: Callable[[], Iterable[str]],
    runtime: Callable[[], AbstractAsyncContextManager[Runtime]],
) -> Sequence[tuple[str, str]]:
    """Return values with a description; none if the database does not answer.

    `agents` returns the names of the agents, `runtime` connects to the database.
    """
    try:
        if kind == "agent":
            return [(name, "") for name in agents()]
        return asyncio.run(_read(kind, runtime))
    except (DraftsmanError, OSError, TimeoutError):
        return []


async def _read(
    kind: Completed, runtime: Callable[[], AbstractAsyncContextManager[Runtime]]
) -> Sequence[tuple[str, str]]:
    async with asyncio.timeout(TIMEOUT), runtime() as rt:
        return await _stored(rt, kind)


async def _stored(rt: Runtime, kind: Completed) -> Sequence[tuple[str, str]]:
    match kind:
        case "job":
            page = await rt.read_model.page(limit=MAX_VALUES)
            return [
                (job_name(job.number), f"{humanize(job.status)}: {job.title}") for job in page.jobs
            ]
        case "question":
            questions = await rt.questions.open(limit=MAX_VALUES)
            return [(question.name, first_line(question.text, MAX_HELP)) for question in questions]
        case "repo":
            catalog = await rt.repos.catalog()
            return [(location.name, "") for location in catalog.locations]
        case "type":
            types = await rt.published_types.all()
            return [(type.name, first_line(type.description, MAX_HELP)) for type in types]
        case "agent":
            return []
    assert_never(kind)
