"""Events are written with their change: a session inserts none of its own making."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.event_kinds import EVENTS, EventWriter
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from tests.core.rights.conftest import As
from tests.support.roles import Roles
from tests.support.statements import FORBIDDEN, outcome, refused, run, value

INSERT: Final = (
    "INSERT INTO draftsman.job_events (job, kind, actor, payload)"
    " VALUES (%(job)s, %(kind)s, %(actor)s, %(payload)s::jsonb)"
)
OF_OTHERS: Final = frozenset({"agent.note", "my_kind"})
"""Kinds of an agent and of a handler, whose events a worker inserts for a run."""


def _kinds(*writers: EventWriter) -> frozenset[str]:
    return frozenset(kind for kind, event in EVENTS.items() if event.writer in writers)


OF_A_WORKER: Final = _kinds(EventWriter.RUN, EventWriter.SWEEP) | OF_OTHERS
OF_A_DELIVERY: Final = _kinds(EventWriter.DELIVERY)


@pytest.mark.parametrize(
    ("user", "allowed"),
    [("worker", OF_A_WORKER), ("bot", set()), ("anna", set()), ("olga", set())],
)
async def test_a_session_inserts_only_the_events_of_its_own_statements(
    make: Factory,
    roles: Roles,
    session: Callable[[str], Awaitable[Connection]],
    user: str,
    allowed: set[str],
) -> None:
    job = (await make.asked(QUESTION)).number
    conn = await session(user)
    actors = {"worker": ("worker:1", "system"), "bot": ("slack:U-ANNA", "system")}
    written = set()
    for kind in EVENTS.keys() | OF_OTHERS:
        for actor in actors.get(user, (f"cli:{roles.name(user)}",)):
            params = {"job": job, "kind": kind, "actor": actor, "payload": '{"question": 1}'}
            if await outcome(conn, INSERT, params) == "ok":
                written.add(kind)
    assert written == allowed


async def test_an_event_of_a_delivery_names_one_that_is_being_sent(
    as_role: As, make: Factory, known: Runtime, session: Callable[[str], Awaitable[Connection]]
) -> None:
    job = await make.queued(notify=("slack:C1",))
    (sending,) = await known.delivery_sender.claim("slack", free=1, share=1)
    other = await make.queued(notify=("slack:C2",))
    waiting = await value(await session("bot"), _DELIVERY, {"job": other})
    for user in ("bot", "worker"):
        conn = await session(user)
        written = {}
        for number, seq in ((job, sending.seq), (job, waiting), (other, waiting), (job, None)):
            detail = f'{{"delivery": {seq}}}' if seq else "{}"
            params = {"job": number, "actor": "system", "payload": detail}
            results = {await outcome(conn, INSERT, params | {"kind": k}) for k in OF_A_DELIVERY}
            written[number, seq] = results
        assert written.pop((job, sending.seq)) == {"ok"}
        assert set().union(*written.values()) == {"42501"}


_DELIVERY: Final = "SELECT min(seq) FROM draftsman.deliveries WHERE job = %(job)s"


async def test_a_bot_adds_keys_to_the_event_of_a_changed_answer_and_replaces_none(
    make: Factory, people: People, session: Callable[[str], Awaitable[Connection]]
) -> None:
    job = (await make.asked(QUESTION)).number
    answer = Response(source_event_id="e", text="red")
    assert (await make.rt.questions.answer(job, 1, answer, people.on("slack", "ben"))).accepted
    forged = {"question": 9, "answer": "00000000-0000-0000-0000-000000000000", "event": "other"}
    change = (
        "SELECT draftsman.record_answer_change("
        "%s, 1, 'e', 'answer_edited', 'slack:U-BEN', %s::jsonb)"
    )
    bot = await session("bot")
    assert await value(bot, change, (job, json.dumps({**forged, "text": "blue"})))
    assert not await value(bot, change, (job, json.dumps({"text": "blue"}))), "it is recorded"
    (event,) = [e for e in await make.rt.read_model.job_events(job) if e.kind == "answer_edited"]
    answered = await value(bot, "SELECT id FROM draftsman.job_answers WHERE job = %s", (job,))
    assert event.payload == {"question": 1, "answer": answered, "event": "e", "text": "blue"}


REFUSE_TOKEN: Final = "SELECT draftsman.refuse_token(%s, 1, %s, 'anna', 'no', %s, 20)"


async def test_a_bot_records_no_refusal_of_a_token(
    make: Factory, session: Callable[[str], Awaitable[Connection]]
) -> None:
    """No bot creates tokens."""
    job = (await make.asked(QUESTION)).number
    async with refused(FORBIDDEN, "refuse_token"):
        await run(await session("bot"), REFUSE_TOKEN, (job, "carol", "slack:U-ANNA"))


async def test_the_refusal_of_a_token_names_no_invented_approver(
    make: Factory, roles: Roles, session: Callable[[str], Awaitable[Connection]]
) -> None:
    job = (await make.asked(QUESTION)).number
    conn = await session("anna")
    for name in ("carol", "nobody"):
        await run(conn, REFUSE_TOKEN, (job, name, f"cli:{roles.name('anna')}"))
    events = [e for e in await make.rt.read_model.job_events(job) if e.kind == "token_refused"]
    assert [event.payload.get("approver") for event in events] == ["carol", None]
