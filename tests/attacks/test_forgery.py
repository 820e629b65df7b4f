"""Attacks on the write permissions of roles: approvals, votes, retries, events and targets."""

from __future__ import annotations

import pytest
from psycopg.types.json import Jsonb

from draftsman.database.database import Connection
from draftsman.handlers.context import worker_run
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.waits import until
from tests.attacks.catalog import attack
from tests.attacks.test_database import ANSWER, APPROVED, YES, Session
from tests.core.rights.conftest import As, as_role, known, roles, session
from tests.core.worker.workers import BlockingHandler, running_worker, runtime_with, wait_for_end
from tests.support.clock import Clock
from tests.support.raw_jobs import insert_job
from tests.support.roles import Roles
from tests.support.statements import CHANGE, FORBIDDEN, refused, rows, run

__all__ = ["as_role", "known", "roles", "session"]


@attack(
    "A worker replaces an open approval by an approved one",
    surface="database",
    with_sandbox="refused: a new question is open",
)
async def test_an_approval_cannot_be_inserted_as_approved(
    session: Session, make: Factory, conn: Connection
) -> None:
    work = await make.asked(GATE)
    worker = await session("worker")
    async with refused(FORBIDDEN, "must be open"):
        await run(
            worker,
            "WITH closed AS (UPDATE draftsman.job_questions SET status = 'canceled',"
            " resolution = '{}' WHERE job = %(job)s RETURNING job), forged AS ("
            " INSERT INTO draftsman.job_questions (job, ordinal, run, key, kind, status, text,"
            "  approvers, digest, resolution, answered_at)"
            " VALUES (%(job)s, 2, 1, 'gate', 'approval', 'answered', 'Deploy?', '{carol}', '',"
            "  %(how)s, now()))"
            " UPDATE draftsman.job_states j SET status = 'resumed', version = version + 1"
            " FROM closed c WHERE j.number = c.job",
            {"job": work.number, "how": APPROVED},
        )
    assert await rows(conn, "SELECT status::text FROM draftsman.job_questions") == [("open",)]


@attack(
    "A worker changes the decision of a closed question",
    surface="database",
    with_sandbox="refused: a closed question may only be superseded",
)
async def test_a_decision_cannot_be_changed(as_role: As, session: Session, make: Factory) -> None:
    work = await make.asked(GATE)
    carol = await as_role("carol")
    await carol.questions.answer(
        work.number, 1, Response(source_event_id="c", decision=Decision.DENY), await carol.actor()
    )
    async with refused(FORBIDDEN, "can only be superseded"):
        await run(
            await session("worker"),
            "UPDATE draftsman.job_questions SET status = 'superseded', resolution = %(how)s",
            {"how": APPROVED},
        )


@attack(
    "An approver votes on an expired approval, before the sweep has closed it",
    surface="database",
    with_sandbox="refused: the expiry is checked when the answer is written",
)
async def test_a_late_vote_is_refused(
    session: Session, make: Factory, roles: Roles, clock: Clock
) -> None:
    work = await make.asked(GATE.model_copy(update={"expires_in": 60.0}))
    carol = "carol"
    await clock.forward(3600)
    async with refused(FORBIDDEN, "may not answer"):
        await (await session(carol)).execute(ANSWER, (work.number, "cli", roles.name(carol), YES))


@attack(
    "An approval with enough votes is resolved by a person who did not vote",
    surface="database",
    with_sandbox="refused: only a voter resolves an approval, with the recorded reasons",
)
async def test_only_a_voter_can_resolve_an_approval(
    session: Session, make: Factory, roles: Roles
) -> None:
    work = await make.asked(GATE)
    carol = await session("carol")
    anna = await session("anna")
    resolve = (
        "SELECT draftsman.resolve_question(%s, 1, 'answered', %s, 'resumed', %s, '{}',"
        " 'answer_received', NULL)"
    )
    async with refused(FORBIDDEN, "do not support"):
        await anna.execute(resolve, (work.number, APPROVED, f"cli:{roles.name('anna')}"))
    resolution = Jsonb(APPROVED.obj | {"reason": "dave agrees"})
    async with carol.transaction():
        await carol.execute(ANSWER, (work.number, "cli", roles.name("carol"), YES))
        async with refused(FORBIDDEN, "do not support"), carol.transaction():
            await carol.execute(resolve, (work.number, resolution, f"cli:{roles.name('carol')}"))
        async with refused(FORBIDDEN, "did not answer"), carol.transaction():
            await carol.execute(resolve, (work.number, APPROVED, f"tui:{roles.name('carol')}"))
        await carol.execute(resolve, (work.number, APPROVED, f"cli:{roles.name('carol')}"))
    assert (await make.rt.read_model.job(work.number)).status is Status.RESUMED


@attack(
    "The requester shortens the expiry of a question, so that its default or escalation applies",
    surface="database",
    with_sandbox="refused: a question is extended, never shortened",
)
@pytest.mark.parametrize("seconds", [-1e6, 0.0, 1e9, float("nan")])
async def test_an_expiry_cannot_be_shortened(
    as_role: As, session: Session, make: Factory, roles: Roles, seconds: float
) -> None:
    anna = await as_role("anna")
    submitted = await anna.submissions.submit(
        invocation(type="noop", queue="q"), await anna.actor()
    )
    work = await make.running(submitted.number)
    await make.rt.asking.ask(work.lease, GATE, invoker="anna")
    async with refused(FORBIDDEN, "at most 366 days"):
        await (await session("anna")).execute(
            "SELECT draftsman.extend_question(%s, 1, %s, %s)",
            (submitted.number, seconds, f"cli:{roles.name('anna')}"),
        )


@attack(
    "The requester removes the expiry of a question, and gives it an earlier one",
    surface="database",
    with_sandbox="refused: only an operator gives an expiry again, later than that before",
)
async def test_a_removed_expiry_is_given_again_by_operators(
    as_role: As, session: Session, make: Factory, roles: Roles
) -> None:
    anna = await as_role("anna")
    submitted = await anna.submissions.submit(
        invocation(type="noop", queue="q"), await anna.actor()
    )
    work = await make.running(submitted.number)
    await make.rt.asking.ask(work.lease, GATE, invoker="anna")
    extend = "SELECT draftsman.extend_question(%s, 1, %s, %s)"
    conn = await session("anna")
    actor = f"cli:{roles.name('anna')}"
    await conn.execute(extend, (submitted.number, None, actor))
    async with refused(FORBIDDEN, "operators may"):
        await conn.execute(extend, (submitted.number, 1.0, actor))


@attack(
    "Events of jobs that do not exist are written, which could never be removed",
    surface="database",
    with_sandbox="refused: an event belongs to a job, and an event of a vote has its decision",
)
@pytest.mark.parametrize("user", ["anna", "bot", "worker"])
async def test_an_event_of_a_missing_job_is_refused(
    session: Session, known: Runtime, roles: Roles, user: str
) -> None:
    conn = await session(user)
    actor = {"bot": "slack:U-ANNA", "worker": "system"}.get(user, f"cli:{roles.name(user)}")
    async with refused(FORBIDDEN):
        await conn.execute(
            "INSERT INTO draftsman.job_events (job, kind, actor) VALUES (%s, %s, %s)",
            (2**40, "token_refused" if user != "worker" else "noted", actor),
        )
    assert not any((await known.read_model.invariants()).values())


@attack(
    "A vote's event names another voter",
    surface="database",
    with_sandbox="refused: the event has to match the answer",
)
async def test_an_event_with_another_voter_is_refused(
    session: Session, make: Factory, roles: Roles
) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    conn = await session("carol")
    await conn.execute(ANSWER, (work.number, "cli", roles.name("carol"), YES))
    async with refused(FORBIDDEN):
        await conn.execute(
            "INSERT INTO draftsman.job_events (job, kind, actor, payload) VALUES (%s,"
            " 'vote_received', %s, %s)",
            (work.number, f"cli:{roles.name('carol')}", Jsonb({"question": 1, "voter": "dave"})),
        )


FORGED_RETRY = insert_job(
    {
        "id": "gen_random_uuid()",
        "type": "type",
        "idempotency_key": "%(key)s::text",
        "request_digest": "request_digest",
        "source": "'cli'",
        "invoker_id": "%(me)s::text",
        "payload": "%(payload)s::jsonb",
        "retry_of": "number",
        "chain_length": "1",
    },
    "draftsman.jobs WHERE number = %(job)s",
)


@attack(
    "A person retries another's job, or submits another request as a retry",
    surface="database",
    with_sandbox="refused: a retry is the same request, by its requester or an operator",
)
@pytest.mark.parametrize(
    ("user", "key", "payload"),
    [
        ("erin", "retry:{job}:1", {}),
        ("anna", "mine", {}),
        ("olga", "retry:{job}:1", {"command": "rm"}),
    ],
)
async def test_a_forged_retry_is_refused(
    as_role: As, session: Session, user: str, key: str, payload: dict[str, str]
) -> None:
    anna = await as_role("anna")
    submitted = await anna.submissions.submit(invocation(type="noop"), await anna.actor())
    await anna.job_control.cancel(submitted.number, await anna.actor())
    parameters = {"key": key.format(job=submitted.number), "me": user, "payload": Jsonb(payload)}
    conn = await session(user)
    async with refused(FORBIDDEN, "may not submit"):
        await run(conn, FORGED_RETRY, parameters | {"job": submitted.number})
    assert (await anna.job_control.retry(submitted.number, await anna.actor())).outcome == "created"


@attack(
    "A target is added for the thread of another job, or by a person without permission",
    surface="database",
    with_sandbox="refused: a thread's key belongs to its own job, and targets need a role",
)
@pytest.mark.parametrize(("user", "thread"), [("anna", "D-1 log:log"), ("ben", "D-{job} log:x")])
async def test_a_forged_target_is_refused(
    session: Session, make: Factory, user: str, thread: str
) -> None:
    number = await make.queued()
    conn = await session(user)
    async with refused(FORBIDDEN, "a target can be added"):
        await conn.execute(
            "INSERT INTO draftsman.job_targets (job, ordinal, channel, target, thread_key)"
            " VALUES (%s, 1, 'log', 'x', %s)",
            (number, thread.format(job=number)),
        )


@attack(
    "A reader sends forged or malformed notifications that stop runs",
    surface="database",
    with_sandbox="no run stops: a worker reads from the database which runs were canceled",
)
async def test_a_forged_notification_stops_no_run(
    session: Session, make: Factory, rt: Runtime
) -> None:
    handler = BlockingHandler()
    reader = await session("reader")
    first, second = [await make.queued(queue="default") for _ in range(2)]
    async with running_worker(
        runtime_with(rt, poll=60, heartbeat=20), {"noop": handler}
    ) as process:
        contexts = [await handler.next(), await handler.next()]
        await until(lambda: _listens(rt, process), "the listener")
        for payload in ("\u00b2", "9" * 5000, "", str(first)):
            await reader.execute("SELECT pg_notify('draftsman_runs', %s)", (payload,))
        await rt.job_control.cancel(second, make.owner)  # received after those, in order
        assert (await wait_for_end(rt, second)).status is Status.CANCELED
        assert {ctx.job.number for ctx in contexts if worker_run(ctx).stopping is None} == {first}
        handler.go.set()
        assert (await wait_for_end(rt, first)).status is Status.COMPLETED


async def _listens(rt: Runtime, process: WorkerProcess) -> bool:
    return any(row.connected for row in await rt.read_model.workers() if row.id == process.id)


@attack(
    "A person forges refused answers of another, or resets their count",
    surface="database",
    with_sandbox="the count increases by one, with the name of the session's person",
)
async def test_refused_answers_cannot_be_forged(
    session: Session, make: Factory, conn: Connection, known: Runtime
) -> None:
    work = await make.asked(GATE)
    anna = await session("anna")
    for statement in (
        (
            "INSERT INTO draftsman.refused_answers (job, question, answers, last_voter,"
            " last_reason) VALUES (%s, 1, 1000, 'carol', 'no')"
        ),
        "UPDATE draftsman.refused_answers SET answers = 1, last_voter = 'dave' WHERE job = %s",
    ):
        async with refused(FORBIDDEN, "permission denied"):
            await anna.execute(statement, (work.number,))
    for _ in range(2):
        await anna.execute("SELECT draftsman.count_refused(%s, 1, 'carol', 'no')", (work.number,))
    counted = "SELECT answers, last_voter FROM draftsman.refused_answers"
    assert await rows(conn, counted) == [(2, "anna")]
    async with refused(CHANGE, "the request of a job is immutable"):
        await anna.execute("UPDATE draftsman.job_states SET number = number")


@attack(
    "A request uses the key of another job's retry, or an invalid job number",
    surface="database",
    with_sandbox="refused: these keys are reserved, and numbers start at 1",
)
@pytest.mark.parametrize(("number", "key"), [({}, "retry:7:1"), ({"number": "-5"}, "mine")])
async def test_a_reserved_key_is_refused(
    session: Session, number: dict[str, str], key: str
) -> None:
    conn = await session("anna")
    async with refused(FORBIDDEN, "may not submit"):
        await run(
            conn,
            insert_job(
                number
                | {
                    "id": "gen_random_uuid()",
                    "type": "'noop'",
                    "idempotency_key": "%(key)s::text",
                    "request_digest": "''",
                    "source": "'cli'",
                    "invoker_id": "'anna'",
                }
            ),
            {"key": key},
        )


@attack(
    "A worker answers a question in the name of its requester",
    surface="database",
    with_sandbox="refused: it may only use the answers in the request",
)
async def test_a_worker_cannot_answer_for_the_requester(session: Session, make: Factory) -> None:
    work = await make.asked(QUESTION)
    worker = await session("worker")
    asker = (await make.rt.read_model.job(work.number)).invoker_id
    async with refused(FORBIDDEN, "cannot answer as"):
        await worker.execute(
            "INSERT INTO draftsman.job_answers (job, question, kind, source, source_event_id,"
            " responder_id, voter, payload, accepted)"
            " VALUES (%s, 1, 'input', 'internal', 'e', %s, '', %s, true)",
            (work.number, asker, Jsonb({"value": "red"})),
        )
