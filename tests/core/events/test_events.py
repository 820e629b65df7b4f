"""Events: a trigger writes an event for every transition, with kind, actor and detail."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.events.event import Event
from draftsman.jobs.job import INITIAL, TRANSITIONS, Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.support.cases import cases
from tests.support.statements import rows, run, value

S = Status


def _steps(events: list[Event]) -> list[tuple[str | None, str | None, str]]:
    return [(e.from_status, e.to_status, e.kind) for e in events if e.to_status is not None]


@cases("status", S)
async def test_every_transition_of_a_job_has_an_event_of_its_kind(
    make: Factory, rt: Runtime, status: Status
) -> None:
    number = await make.job_in(status)
    events = await rt.read_model.job_events(number)
    for event in events:
        if event.to_status is not None:
            has_run = S.RUNNING in (event.from_status, event.to_status)
            assert (event.run is not None) == has_run, event
    steps = _steps(events)
    assert steps[0][0] is None
    assert steps[0][1] in INITIAL
    assert steps[0][2] == "job_created"
    assert steps[-1][1] == status
    for before, after in pairwise(steps):
        assert after[0] == before[1]
        assert after[2] == TRANSITIONS[S(str(after[0])), S(str(after[1]))]


@cases("status", S)
async def test_version_is_the_number_of_status_events(
    make: Factory, rt: Runtime, status: Status
) -> None:
    number = await make.job_in(status)
    events = _steps(await rt.read_model.job_events(number))
    assert (await rt.read_model.job(number)).version == len(events)


async def test_a_fused_claim_writes_two_events_and_the_second_has_the_run(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    _, claimed, started = await rt.read_model.job_events(work.number)
    assert (claimed.kind, claimed.from_status, claimed.to_status, claimed.run) == (
        "job_claimed",
        "queued",
        "claimed",
        None,
    )
    assert (started.kind, started.from_status, started.to_status, started.run) == (
        "job_started",
        "claimed",
        "running",
        1,
    )


async def test_an_event_names_its_actor(make: Factory, rt: Runtime, people: People) -> None:
    number = await make.queued(actor=people.anna)
    work = await make.running(number)
    await rt.settlement.failure(work, Failure("busy", http_status=503))
    await rt.job_control.cancel(number, people.olga, "enough")
    worker = f"worker:{make.worker}"
    assert [event.actor for event in await rt.read_model.job_events(number)] == [
        "cli:anna",
        worker,
        worker,
        worker,
        "cli:olga",
    ]


async def test_the_system_is_the_actor_of_its_transitions(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    due = await make.scheduled(delay=0.000001)
    expired = await make.expired()
    lost = await make.running()
    await rt.promotion.promote(LeaderTerm())
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    for number in (due, expired, lost.number):
        assert (await rt.read_model.job_events(number))[-1].actor == "system"


async def test_the_system_is_the_actor_of_a_cancellation_that_it_requested(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work = await make.running()
    await run(
        conn,
        "UPDATE draftsman.job_states"
        " SET cancel_requested_at = draftsman.now(), cancel_requested_by = 'system'"
        " WHERE number = %s",
        (work.number,),
    )
    assert await rt.settlement.canceled(work) is S.CANCELED
    assert (await rt.read_model.job_events(work.number))[-1].actor == "system"


async def test_a_psql_user_is_named_by_the_database_role(make: Factory, conn: Connection) -> None:
    number = await make.queued()
    await run(
        conn,
        "UPDATE draftsman.job_states"
        " SET status = 'canceled', version = 2, finished_at = draftsman.now()"
        " WHERE number = %s",
        (number,),
    )
    query = "SELECT actor = session_user FROM draftsman.job_events WHERE kind = 'job_canceled'"
    assert await value(conn, query) is True


async def test_the_details_of_an_event_have_the_reason(
    make: Factory, rt: Runtime, people: People
) -> None:
    failed = (await rt.read_model.job_events(await make.failed()))[-1].payload
    assert failed == {"error": "no such thing", "error_class": "PERMANENT"}
    retrying = (await rt.read_model.job_events(await make.retrying()))[-1].payload
    assert set(retrying) == {"error", "error_class", "next_retry_at", "retry", "max_retries"}
    dead = (await rt.read_model.job_events(await make.dead()))[-1].payload
    assert dead == {
        "error": "gone",
        "error_class": "TRANSIENT_INFRA",
        "attempts": 1,
        "retries": 0,
    }
    paused = (await rt.read_model.job_events(await make.paused()))[-1].payload
    assert set(paused) == {"run_at"}
    number = await make.queued()
    await rt.job_control.cancel(number, people.olga, "enough")
    canceled = (await rt.read_model.job_events(number))[-1].payload
    assert canceled == {"reason": "enough", "by": "cli:olga"}


@pytest.mark.parametrize("result", [{"summary": "all done"}, {"n": 1}])
async def test_the_event_of_a_completion_has_the_summary_if_there_is_one(
    make: Factory, rt: Runtime, result: dict[str, Any]
) -> None:
    work = await make.running()
    await rt.settlement.outcome(work, Done(result))
    event = (await rt.read_model.job_events(work.number))[-1]
    assert event.payload == {name: result[name] for name in result if name == "summary"}


async def test_the_code_of_a_failure_is_in_its_event(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.settlement.failure(work, Failure("no such branch", origin="git", code="no_such_ref"))
    payload = (await rt.read_model.job_events(work.number))[-1].payload
    assert (payload["origin"], payload["code"]) == ("git", "no_such_ref")


async def test_the_event_of_a_decision_precedes_its_consequences(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked(GATE)
    await make.decide(work.number, True, people.carol)
    asked, received, resumed = (await rt.read_model.job_events(work.number))[-3:]
    assert (asked.kind, asked.payload["key"]) == ("needs_approval", "gate")
    assert (received.kind, received.to_status) == ("answer_received", None)
    assert (resumed.kind, resumed.actor) == ("job_resumed", "cli:carol")
    for event in (received, resumed):
        assert event.payload["outcome"] == "approved"
        assert event.payload["by"] == ["carol"]


async def test_actor_and_detail_do_not_reach_the_next_transaction(
    make: Factory, rt: Runtime, conn: Connection, people: People
) -> None:
    await rt.job_control.cancel(await make.queued(), people.olga, "enough")
    work = await make.asked()
    await make.answer(work.number, "red")
    next_run = await make.running(work.number)
    events = await rt.read_model.job_events(next_run.number)
    assert [event.actor for event in events[-2:]] == [f"worker:{make.worker}"] * 2
    assert [event.payload for event in events[-2:]] == [{}, {}]


async def test_the_creation_event_has_the_request(make: Factory, rt: Runtime) -> None:
    number = await make.queued(agent="tidy", repo="https://host/acme/app.git", mode="investigate")
    payload = (await rt.read_model.job_events(number))[0].payload
    assert payload == {
        "type": "noop",
        "source": "cli",
        "mode": "investigate",
        "agent": "tidy",
        "repo_name": "app",
    }


async def test_one_statement_over_many_jobs_writes_an_event_for_each(
    make: Factory, conn: Connection
) -> None:
    numbers = [await make.queued() for _ in range(5)]
    await run(
        conn,
        "UPDATE draftsman.job_states"
        " SET status = 'canceled', version = 2, finished_at = draftsman.now()"
        " WHERE number <> %s",
        (numbers[0],),
    )
    query = "SELECT job FROM draftsman.events WHERE kind = 'job_canceled' ORDER BY id"
    assert [job for (job,) in await rows(conn, query)] == numbers[1:]


async def test_an_event_is_timed_when_it_is_written(make: Factory, conn: Connection) -> None:
    await make.running()
    query = "SELECT count(DISTINCT created_at), count(*) FROM draftsman.events"
    assert await rows(conn, query) == [(2, 3)]


@pytest.mark.parametrize("before", ["queued", "resumed"])
async def test_a_fused_claim_writes_a_single_row(
    make: Factory, rt: Runtime, conn: Connection, before: str
) -> None:
    number = await make.job_in(S(before))
    stored = "SELECT count(*) FROM draftsman.job_events WHERE job = %s"
    rows_before = await value(conn, stored, (number,))
    events_before = await rt.read_model.job_events(number)
    await make.running(number)
    claimed, started = (await rt.read_model.job_events(number))[len(events_before) :]
    assert _steps([claimed, started]) == [
        (before, "claimed", "job_claimed"),
        ("claimed", "running", "job_started"),
    ]
    assert (claimed.id, claimed.created_at, claimed.txid, claimed.actor, claimed.payload) == (
        *(started.id - 1, started.created_at, started.txid, started.actor, started.payload),
    )
    assert await value(conn, stored, (number,)) == rows_before + 1


async def test_a_job_without_an_agent_has_no_mode(rt: Runtime, make: Factory) -> None:
    own = await make.queued(type="report:weekly", mode="fix")
    (created,) = await rt.read_model.job_events(own)
    assert created.payload == {"type": "report:weekly", "source": "cli"}
    assert (await rt.read_model.job(own)).request is None
    of_agent = await make.queued(type="run_agent", mode="fix")
    (created,) = await rt.read_model.job_events(of_agent)
    assert created.payload["mode"] == "fix"
