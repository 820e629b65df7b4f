"""A row that the database refuses, or that an open transaction has locked: other rows of its sweep
are changed, and it is tried again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from draftsman.costs import store as budgets
from draftsman.database import isolation
from draftsman.database.database import Connection
from draftsman.errors import DraftsmanError, UsageError
from draftsman.events import store as archives
from draftsman.forges import store as forges
from draftsman.jobs.job import Status
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.permission_rules import store as rules
from draftsman.questions.question import OnExpire
from draftsman.questions.response import Response
from draftsman.questions.store import questions
from draftsman.queues import store as queues
from draftsman.queues.service import sweeps as queue_sweeps
from draftsman.runtime import Runtime, wire
from draftsman.settings import settings_model
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from tests.core.schedules.test_schedules import spec
from tests.core.worker.workers import runtime_with
from tests.support.cases import cases
from tests.support.clock import Clock
from tests.support.statements import rows, run

HOUR: Final = 3600.0
WINDOW: Final = 5.0
REFUSALS: Final = """
CREATE TABLE draftsman.refusals (row bigint, state text);
GRANT SELECT ON draftsman.refusals TO PUBLIC;
CREATE FUNCTION draftsman.refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    refusal text := (SELECT r.state FROM draftsman.refusals r
                      WHERE r.row = (to_jsonb(coalesce(NEW, OLD)) ->> TG_ARGV[0])::bigint);
BEGIN
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'refused with %', refusal USING ERRCODE = refusal;
    END IF;
    RETURN coalesce(NEW, OLD);
END $$;
"""


@dataclass(frozen=True)
class World:
    rt: Runtime
    make: Factory
    people: People
    owner: Actor
    clock: Clock
    conn: Connection

    async def refuse(
        self,
        *refused: int,
        state: str = "23514",
        change: str = "UPDATE ON draftsman.job_states",
        key: str = "number",
    ) -> None:
        """Refuse a change of the rows with these keys, until `accept`.

        The schema is changed here, because a database whose schema was changed is dropped.
        """
        await self.conn.execute(REFUSALS)
        for row in refused:
            await run(self.conn, "INSERT INTO draftsman.refusals VALUES (%s, %s)", (row, state))
        trigger = f"CREATE TRIGGER refusals BEFORE {change} FOR EACH ROW"
        await self.conn.execute(f"{trigger} EXECUTE FUNCTION draftsman.refuse_row('{key}')")

    async def accept(self) -> None:
        await self.conn.execute("DROP FUNCTION draftsman.refuse_row CASCADE")
        await self.conn.execute("DROP TABLE draftsman.refusals")


@pytest.fixture
def world(
    rt: Runtime, make: Factory, people: People, owner: Actor, clock: Clock, conn: Connection
) -> World:
    return World(rt, make, people, owner, clock, conn)


async def promote(world: World) -> list[int]:
    numbers = [await world.make.scheduled(delay=60 + place) for place in range(3)]
    await world.clock.forward(HOUR)
    return numbers


async def expire(world: World) -> list[int]:
    item = QUESTION.model_copy(update={"expires_in": 60.0})
    return await _asked(world, item)


async def escalate(world: World) -> list[int]:
    update = {"expires_in": 60.0, "on_expire": OnExpire.ESCALATE, "escalate_to": "ben"}
    return await _asked(world, QUESTION.model_copy(update=update))


async def remind(world: World) -> list[int]:
    return await _asked(world, QUESTION.model_copy(update={"expires_in": 1.5 * HOUR}))


async def _asked(world: World, item: object) -> list[int]:
    works = [await world.make.asked(item, notify=("log",)) for _ in range(3)]  # type: ignore[arg-type]
    await world.clock.forward(HOUR)
    return [work.number for work in works]


async def rescue(world: World) -> list[int]:
    runs = [await world.make.running() for _ in range(3)]
    await world.clock.forward(world.rt.settings.worker.lease + 1)
    return [work.number for work in runs]


async def suspects(world: World) -> list[int]:
    """Return the jobs of a crash, and the first of another crash: the first is tried first."""
    jobs = []
    for _ in range(2):
        crew = [await world.make.queued(on_lost="resume") for _ in range(2)]
        for _ in range(2):  # the second loss beside others makes them suspects
            worker = await world.make.worker_row()
            for number in crew:
                await world.make.running(number, worker=worker)
            assert await world.rt.dead_workers.rescue(LeaderTerm(), [worker]) == 2
        jobs += crew
    return [jobs[0], jobs[1], jobs[2]]


async def notify(world: World) -> list[int]:
    return [await world.make.dead() for _ in range(3)]


async def postponed(world: World) -> list[int]:
    numbers = [await world.make.completed() for _ in range(3)]
    await run(
        world.conn,
        "INSERT INTO draftsman.postponed_work (ended) SELECT unnest(%s::bigint[])",
        (numbers,),
    )
    return numbers


async def cancels(world: World) -> list[int]:
    numbers = [await world.make.queued() for _ in range(3)]
    await run(
        world.conn,
        "INSERT INTO draftsman.pending_cancels (job, actor) SELECT unnest(%s::bigint[]), 'system'",
        (numbers,),
    )
    return numbers


async def decisions(world: World) -> list[int]:
    numbers = []
    for place in range(3):
        number = (await world.make.asked()).number
        response = Response(source_event_id=f"held {place}", text="red")
        held = await world.rt.pending_decisions.answer(number, 1, response, world.owner, WINDOW)
        assert isinstance(held, PendingDecision)
        numbers.append(number)
    await world.clock.forward(WINDOW)
    return numbers


async def digests(world: World) -> list[int]:
    numbers = [(await world.make.asked()).number for _ in range(3)]
    await run(
        world.conn,
        "INSERT INTO draftsman.digest_questions (job, question, person, digest_at)"
        " SELECT unnest(%s::bigint[]), 1, 'ben', draftsman.now()",
        (numbers,),
    )
    return numbers


async def schedules(world: World) -> list[int]:
    added = [await world.rt.schedules.add(spec(f"s{n}"), world.people.anna) for n in range(3)]
    await world.clock.forward(HOUR)
    return [schedule.id for schedule in added]


async def deregister(world: World) -> list[int]:
    for _ in range(3):
        await world.make.worker_row()
    await world.clock.forward(world.rt.settings.sweeps.deregister_after + HOUR)
    return [
        id for (id,) in await rows(world.conn, "SELECT lock_id FROM draftsman.workers ORDER BY 1")
    ]


@dataclass(frozen=True)
class Refusal:
    """A sweep, the refused change of a table, and a query for the rows that are done."""

    sweep: str
    rows: Callable[[World], Awaitable[list[int]]]
    change: str
    key: str
    done: str
    locked: str = "draftsman.job_states WHERE number"
    """What a transaction locks that works on the rows."""

    def __str__(self) -> str:
        return self.rows.__name__


STATES: Final = "SELECT number FROM draftsman.job_states WHERE status"
CASES: Final = [
    Refusal("promote", promote, "UPDATE ON draftsman.job_states", "number", f"{STATES} = 'queued'"),
    Refusal("expire", expire, "UPDATE ON draftsman.job_states", "number", f"{STATES} = 'expired'"),
    Refusal(
        "expire",
        escalate,
        "UPDATE ON draftsman.question_times",
        "job",
        "SELECT job FROM draftsman.question_times WHERE escalated_at IS NOT NULL",
    ),
    Refusal(
        "remind",
        remind,
        "UPDATE ON draftsman.question_times",
        "job",
        "SELECT job FROM draftsman.question_times WHERE reminders = 1",
    ),
    Refusal("rescue", rescue, "UPDATE ON draftsman.job_states", "number", f"{STATES} = 'retrying'"),
    Refusal(
        "suspects",
        suspects,
        "UPDATE ON draftsman.suspects",
        "job",
        "SELECT job FROM draftsman.suspects WHERE status = 'trial'",
    ),
    Refusal(
        "notify",
        notify,
        "DELETE ON draftsman.unnotified_jobs",
        "job",
        "SELECT number FROM draftsman.job_states"
        " WHERE number NOT IN (SELECT job FROM draftsman.unnotified_jobs)",
    ),
    Refusal(
        "postponed",
        postponed,
        "DELETE ON draftsman.postponed_work",
        "ended",
        "SELECT number FROM draftsman.job_states"
        " WHERE number NOT IN (SELECT ended FROM draftsman.postponed_work)",
        locked="draftsman.postponed_work WHERE ended",
    ),
    Refusal(
        "postponed",
        cancels,
        "UPDATE ON draftsman.job_states",
        "number",
        f"{STATES} = 'canceled'",
    ),
    Refusal(
        "decisions", decisions, "UPDATE ON draftsman.job_states", "number", f"{STATES} = 'resumed'"
    ),
    Refusal(
        "digests",
        digests,
        "UPDATE ON draftsman.digest_questions",
        "job",
        "SELECT job FROM draftsman.digest_questions WHERE sent_at IS NOT NULL",
        locked="draftsman.digest_questions WHERE job",
    ),
    Refusal(
        "schedules",
        schedules,
        "UPDATE ON draftsman.schedules",
        "id",
        "SELECT id FROM draftsman.schedules WHERE last_job IS NOT NULL",
        locked="draftsman.schedules WHERE id",
    ),
    Refusal(
        "deregister",
        deregister,
        "DELETE ON draftsman.workers",
        "lock_id",
        "SELECT n FROM generate_series(1, 100) n"
        " WHERE n NOT IN (SELECT lock_id FROM draftsman.workers)",
        locked="draftsman.workers WHERE lock_id",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_refused_row_is_left_and_named_and_the_others_are_changed(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, case: Refusal
) -> None:
    bad, *good = await case.rows(world)
    await world.refuse(bad, change=case.change, key=case.key)
    sweep = partial(world.rt.sweeps.run, case.sweep)
    for _ in range(2):
        await sweep(LeaderTerm())
        done = [number for (number,) in await rows(world.conn, case.done)]
        assert set(done) & {bad, *good} == set(good)
    errors = [
        record.getMessage() for record in caplog.records if "the database refuses" in record.message
    ]
    assert len(errors) == 1, errors
    assert "refused with 23514" in errors[0]
    assert sum(world.rt.sweeps.refused.values()) == 1
    await world.accept()
    later = time.monotonic() + isolation.FIRST_PAUSE
    monkeypatch.setattr(time, "monotonic", lambda: later)
    await sweep(LeaderTerm())
    if case.rows is not suspects:  # another job of its crash is on trial
        assert bad in [number for (number,) in await rows(world.conn, case.done)]
    assert world.rt.sweeps.refused == {}


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_rows_in_an_open_transaction_keep_no_other_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch, case: Refusal
) -> None:
    """The transaction has locked as many rows as a batch of the sweep has."""
    monkeypatch.setattr(queue_sweeps, "POSTPONED", 2)
    monkeypatch.setattr(queue_sweeps, "CANCELED", 2)
    small = runtime_with(world.rt, sweeps={"limit": 2})
    *locked, last = await case.rows(world)
    await world.conn.execute("BEGIN")
    await run(world.conn, f"SELECT FROM {case.locked} = ANY (%s) FOR UPDATE", (locked,))
    await small.sweeps.run(case.sweep, LeaderTerm())
    done = {number for (number,) in await rows(world.conn, case.done)}
    assert done & {*locked, last} == {last}
    await world.conn.execute("COMMIT")


@cases("state", ["40001", "55P03", "25006", "57014", "DM001"])
async def test_a_conflict_or_an_outage_sets_no_row_aside(world: World, state: str) -> None:
    bad, *_ = await promote(world)
    await world.refuse(bad, state=state)
    with pytest.raises(DraftsmanError):
        await world.rt.promotion.promote(LeaderTerm())
    assert world.rt.sweeps.refused == {}
    await world.accept()
    assert await world.rt.promotion.promote(LeaderTerm()) == 3


async def test_a_batch_of_which_every_row_is_refused_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.refuse(*await promote(world))
    monkeypatch.setattr(isolation, "MAX_REFUSED", 2)
    with pytest.raises(DraftsmanError, match="refused with 23514"):
        await world.rt.promotion.promote(LeaderTerm())
    assert world.rt.sweeps.refused == {"promote": 2}, "the last one is tried next time"


async def test_a_job_of_a_failing_type_whose_end_is_refused_keeps_no_other_from_failing(
    world: World,
) -> None:
    failing = runtime_with(world.rt, types={"gone": {"unhandled": "fail"}})
    numbers = [await world.make.queued(type="gone", queue="default") for _ in range(3)]
    await world.make.worker_row()
    await world.refuse(numbers[0], change="UPDATE ON draftsman.job_runs", key="job")
    assert await failing.sweeps.run("types", LeaderTerm()) == 2
    found = [(await world.rt.read_model.job(number)).status for number in numbers]
    assert found == [Status.RUNNING, Status.FAILED, Status.FAILED], "the first one is rescued later"
    assert failing.sweeps.refused == {"types": 1}


STEPS: Final[dict[str, tuple[tuple[Any, str], ...]]] = {
    "expire": ((questions, "escalate"), (questions, "expire")),
    "postponed": ((queues, "do_postponed"), (queues, "do_cancels")),
    "holds": (
        (queues, "assign"),
        (queues, "expire_reservations"),
        (queues, "release_jobs"),
        (queues, "hold_jobs"),
    ),
    "limits": (
        (queues, "configure_limits"),
        (queues, "check_limits"),
        (queues, "give_places"),
    ),
    "budgets": ((budgets, "configure"), (budgets, "release_lost")),
    "types": (
        (queues, "set_by_type"),
        (queues, "set_unhandled_types"),
        (queues, "waiting_for_types"),
    ),
    "follow_ups": ((forges, "reopen"), (forges, "ignore_others"), (forges, "due_follow_ups")),
    "rules": ((rules, "decisions"), (rules, "unannounced")),
    "prune": ((archives, "prune_logs"), (archives, "due")),
}
"""The statements of sweeps with several steps."""


@pytest.mark.parametrize(
    ("sweep", "failing"), [(sweep, n) for sweep, steps in STEPS.items() for n in range(len(steps))]
)
async def test_a_step_that_fails_keeps_no_other_step_of_its_sweep_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch, sweep: str, failing: int
) -> None:
    values = world.rt.settings.model_dump() | {
        "types": {"gone": {"unhandled": "fail"}},
        "rules": {"propose_after": 2, "notify": "log"},
        "forges": {"acme": {"kind": "github", "events": "poll", "token": {"env": "X"}}},
        "retention": {"events": 1, "logs": 1},
    }
    rt = wire(settings_model().model_validate(values), world.rt.db, False)
    term = LeaderTerm(world.make.worker, await rt.sweeps.acquire(world.make.worker, 60))
    done: set[str] = set()

    def patch(module: Any, name: str) -> None:
        statement = getattr(module, name)

        async def step(*args: Any, **params: Any) -> Any:
            if name == STEPS[sweep][failing][1]:
                raise UsageError("refused")
            done.add(name)
            return await statement(*args, **params)

        monkeypatch.setattr(module, name, step)

    for module, name in STEPS[sweep]:
        patch(module, name)
    with pytest.raises(UsageError, match="refused"):
        await rt.sweeps.run(sweep, term)
    assert done == {name for n, (_, name) in enumerate(STEPS[sweep]) if n != failing}
