"""Texts of people and handlers past the models of input: cut, or refused with the limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from draftsman.database.database import Connection
from draftsman.errors import DraftsmanError
from draftsman.jobs.job import Source
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.reserved_names import Owner, check_artifact, check_event_kind, check_key
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.actor import Actor
from draftsman.questions.response import build_response
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.runtime import Runtime
from draftsman.schedules.template import TemplateDefinition
from draftsman_testing.factories import QUESTION, Factory
from tests.support.statements import rows, value

HUGE: Final = "x" * 3_000_000
LARGEST_ROW: Final = 1_200_000
"""Bytes of a row as text: a document has at most a MiB."""
CUT: Final = {"display name", "reason of a cancel", "reason of a pause", "reason of a queue"}
"""Texts that are cut; all others are refused."""
Input = Callable[[Runtime, ClaimedJob, Actor], Awaitable[object]]


async def _key(work: ClaimedJob, check: Callable[..., None], *args: object) -> None:
    check(HUGE, *args)


INPUTS: Final[dict[str, Input]] = {
    "type": lambda rt, work, by: rt.submissions.submit(invocation(type=HUGE), by),
    "tag": lambda rt, work, by: rt.submissions.submit(invocation(type="noop", tags=(HUGE,)), by),
    "key": lambda rt, work, by: rt.submissions.submit(invocation(type="noop", key=HUGE), by),
    "display name": lambda rt, work, by: rt.submissions.submit(
        invocation(type="noop"), Actor(Source.CLI, by.id, HUGE, owner=True)
    ),
    "message": lambda rt, work, by: rt.messages.send(work.number, by, HUGE),
    "answer": lambda rt, work, by: rt.questions.answer(
        work.number, 1, build_response("e", text=HUGE), by
    ),
    "reason of a cancel": lambda rt, work, by: rt.job_control.cancel(work.number, by, HUGE),
    "reason of a pause": lambda rt, work, by: rt.job_control.pause(work.number, by, HUGE),
    "reason of a queue": lambda rt, work, by: rt.queues.pause("q", by, HUGE),
    "name of a queue": lambda rt, work, by: rt.queues.pause(HUGE, by, "reason"),
    "name of a template": lambda rt, work, by: rt.templates.add(HUGE, TemplateDefinition(), by),
    "name of a repository": lambda rt, work, by: rt.repos.add(
        Repo(None, "", "", HUGE, "https://example.org/a"), profile({}), by
    ),
    "URL of a repository": lambda rt, work, by: rt.repos.add(
        Repo(None, "", "", "a", f"https://example.org/{HUGE}"), profile({}), by
    ),
    "branch of a repository": lambda rt, work, by: rt.repos.add(
        Repo(None, "", "", "b", "https://example.org/b", default_branch=HUGE), profile({}), by
    ),
    "key of a step": lambda rt, work, by: _key(work, check_key, Owner.HANDLER, "step"),
    "kind of an event": lambda rt, work, by: _key(work, check_event_kind, Owner.HANDLER),
    "name of an artifact": lambda rt, work, by: _key(work, check_artifact, "file", Owner.HANDLER),
    "link code": lambda rt, work, by: rt.people.link(HUGE, by),
}


async def test_a_huge_text_is_cut_or_refused_in_one_line(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    item = QUESTION.model_copy(update={"freeform": True})
    for name, call in INPUTS.items():
        work = await make.asked(item)
        message = await _message(_called(call, rt, work, owner))
        assert (message == "") == (name in CUT), f"{name}: {message}"
        assert "\n" not in message, name
        assert len(message) < 400, name
        assert "database error" not in message, f"{name}: {message}"
    for (table,) in await rows(conn, TABLES):
        largest = await value(
            conn, f"SELECT coalesce(max(octet_length(t::text)), 0) FROM draftsman.{table} t"
        )
        assert largest < LARGEST_ROW, table


TABLES: Final = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'draftsman'::regnamespace AND relkind = 'r'"
)


async def _called(call: Input, rt: Runtime, work: ClaimedJob, owner: Actor) -> object:
    return await call(rt, work, owner)


async def _message(call: Coroutine[Any, Any, object]) -> str:
    """Return the error of draftsman; "" without one."""
    try:
        await call
    except DraftsmanError as error:
        return str(error)
    return ""
