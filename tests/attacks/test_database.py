"""Attacks by SQL sessions: forged rows and settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from psycopg.types.json import Jsonb

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from tests.attacks.catalog import attack
from tests.core.rights.conftest import As, as_role, known, roles, session
from tests.support.roles import Roles
from tests.support.statements import CONSISTENCY, FORBIDDEN, refused, rows, run

__all__ = ["as_role", "known", "roles", "session"]
Session = Callable[[str], Awaitable[Connection]]
PEOPLE = ("anna", "carol", "olga")
ANSWER = (
    "INSERT INTO draftsman.job_answers (job, question, kind, source, source_event_id,"
    " responder_id, voter, payload, accepted)"
    " VALUES (%s, 1, 'approval', %s, 'forged', %s, 'carol', %s, true)"
)
APPROVED = Jsonb({"outcome": "approved", "via": "person", "by": ["carol"]})
YES = Jsonb({"decision": "approve"})


@attack(
    "A forged approval is written into the table of answers",
    surface="database",
    with_sandbox="refused in every session but the owner's; an invariant detects a forced answer",
)
@pytest.mark.parametrize(
    ("user", "source", "id"),
    [
        ("anna", "cli", "carol"),
        ("anna", "slack", "U-CAROL"),
        ("bot", "cli", "carol"),
        ("bot", "slack", "U-BEN"),
        ("worker", "internal", "carol"),
        ("worker", "slack", "U-CAROL"),
        ("reader", "cli", "carol"),
    ],
)
async def test_a_forged_answer_is_refused(
    session: Session, make: Factory, roles: Roles, user: str, source: str, id: str
) -> None:
    work = await make.asked(GATE)
    conn = await session(user)
    responder = roles.name(id) if source == "cli" else id
    async with refused(FORBIDDEN):
        await conn.execute(ANSWER, (work.number, source, responder, YES))


@attack(
    "The owner of the database forces a forged approval with triggers off",
    surface="database",
    with_sandbox="it works, and `doctor --invariants` reports the answer",
)
async def test_a_forced_answer_violates_an_invariant(
    known: Runtime, make: Factory, conn: Connection, people: object
) -> None:
    work = await make.asked(GATE)
    await run(conn, "SET session_replication_role = replica")
    await conn.execute(ANSWER, (work.number, "slack", "U-CAROL", YES))
    invariants = await known.read_model.invariants()
    assert [job for job, _ in invariants["answers_are_attested"]] == [work.number]


@attack(
    "An approval is resolved by SQL, without the required votes",
    surface="database",
    with_sandbox="refused in every session but the owner's",
)
@pytest.mark.parametrize("user", ["anna", "carol", "olga", "bot", "worker", "reader"])
async def test_an_approval_cannot_be_resolved_without_votes(
    session: Session, make: Factory, conn: Connection, roles: Roles, user: str
) -> None:
    work = await make.asked(GATE)
    forger = await session(user)
    async with refused(FORBIDDEN):
        await forger.execute(
            "UPDATE draftsman.job_questions SET status = 'answered', resolution = %s,"
            " answered_at = now() WHERE job = %s",
            (APPROVED, work.number),
        )
    actor = {"bot": "slack:U-CAROL", "worker": "system"}.get(user, f"cli:{roles.name(user)}")
    async with refused(FORBIDDEN):
        await forger.execute(
            "SELECT draftsman.resolve_question(%s, 1, 'answered', %s, 'resumed', %s, '{}',"
            " 'answer_received', NULL)",
            (work.number, APPROVED, actor),
        )
    assert await rows(conn, "SELECT status::text FROM draftsman.job_questions") == [("open",)]


@attack(
    "A worker expires an approval early, and continues",
    surface="database",
    with_sandbox="refused: an approval expires at its deadline; a job continues after a decision",
)
async def test_a_worker_cannot_expire_an_approval_early(
    session: Session, make: Factory, conn: Connection
) -> None:
    work = await make.asked(GATE)
    worker = await session("worker")
    expired = Jsonb({"outcome": "expired", "via": "system"})
    close = "UPDATE draftsman.job_questions SET status = %s, resolution = %s WHERE job = %s"
    async with refused(FORBIDDEN, "do not support"):
        await worker.execute(close, ("expired", expired, work.number))
    async with refused(CONSISTENCY, "leaves an approval only when it was decided"):
        await run(
            worker,
            "WITH q AS (UPDATE draftsman.job_questions SET status = 'canceled',"
            " resolution = '{}' WHERE job = %(job)s RETURNING job)"
            " UPDATE draftsman.job_states j SET status = 'resumed', version = version + 1"
            " FROM q WHERE j.number = q.job",
            {"job": work.number},
        )
    assert await rows(conn, "SELECT status::text FROM draftsman.job_questions") == [("open",)]


@attack(
    "A worker adds itself to the approvers of an open approval, or lowers its quorum",
    surface="database",
    with_sandbox="refused: an open question changes only by its escalation rule",
)
@pytest.mark.parametrize("change", ["approvers = '{anna}'", "quorum = 1", "expires_at = now()"])
async def test_a_worker_cannot_change_an_open_approval(
    session: Session, make: Factory, change: str
) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    async with refused(FORBIDDEN):
        await run(await session("worker"), f"UPDATE draftsman.job_questions SET {change}")
    assert (await make.rt.questions.get(work.number, 1)).quorum == 2


@attack(
    "An event of a decision is forged",
    surface="database",
    with_sandbox="refused: an event of a decision needs the decision, and the session's own actor",
)
@pytest.mark.parametrize(
    ("user", "kind", "actor"),
    [
        ("anna", "answer_received", "cli:carol"),
        ("anna", "answer_refused", "cli:carol"),
        ("carol", "answer_received", "own"),
        ("carol", "vote_received", "own"),
        ("bot", "vote_received", "slack:U-CAROL"),
        ("bot", "answer_refused", "cli:carol"),
        ("worker", "answer_received", "internal:anna"),
        ("worker", "job_resumed", "system"),
        ("reader", "noted", "system"),
    ],
)
async def test_a_forged_event_is_refused(
    session: Session, make: Factory, roles: Roles, user: str, kind: str, actor: str
) -> None:
    work = await make.asked(GATE)
    conn = await session(user)
    name = f"cli:{roles.name(user)}" if actor == "own" else actor
    async with refused(FORBIDDEN):
        await conn.execute(
            "INSERT INTO draftsman.job_events (job, kind, actor) VALUES (%s, %s, %s)",
            (work.number, kind, name),
        )


@attack(
    "A session sets the clock's offset to expire an approval or answer it late",
    surface="database",
    with_sandbox="the setting is ignored: the offset is stored in the database",
)
@pytest.mark.parametrize("user", ["anna", "bot", "worker"])
async def test_a_session_cannot_shift_the_clock(session: Session, user: str) -> None:
    conn = await session(user)
    await conn.execute("SELECT set_config('draftsman.clock_offset', '30 days', false)")
    assert await rows(conn, "SELECT draftsman.now() = now()") == [(True,)]


@attack(
    "A person sets the actor of a change to another name",
    surface="database",
    with_sandbox="the event has the session's own role",
)
async def test_a_spoofed_actor_is_replaced_by_the_session_role(
    as_role: As, session: Session, roles: Roles
) -> None:
    anna = await as_role("anna")
    submitted = await anna.submissions.submit(invocation(type="noop"), await anna.actor())
    conn = await session("anna")
    await conn.execute("SELECT set_config('draftsman.actor', 'cli:carol', false)")
    async with refused(FORBIDDEN, "may not control"):
        await conn.execute(
            "SELECT draftsman.cancel_job(%s, 'cli:carol', NULL)", (submitted.number,)
        )
    await anna.job_control.cancel(submitted.number, await anna.actor())
    actors = {event.actor for event in await anna.read_model.job_events(submitted.number)}
    assert actors == {f"cli:{roles.name('anna')}"}


@attack(
    "A person submits a job in another person's name",
    surface="database",
    with_sandbox="refused: a person's session submits its own requests",
)
async def test_a_job_for_another_requester_is_refused(
    as_role: As, known: Runtime, roles: Roles
) -> None:
    anna = await as_role("anna")
    erin = await as_role("erin")
    with pytest.raises(Refused, match="may not submit a job of erin"):
        await anna.submissions.submit(invocation(type="noop"), await erin.actor())


@attack(
    "A person adds a role, an identity or self-approval for themselves",
    surface="database",
    with_sandbox="refused: only the owner of the schema writes people",
)
@pytest.mark.parametrize("user", ["anna", "olga", "bot", "worker", "reader"])
async def test_a_person_cannot_change_people(session: Session, user: str) -> None:
    conn = await session(user)
    for statement in (
        "UPDATE draftsman.people SET roles = '{approver}'",
        "INSERT INTO draftsman.person_identities VALUES ('slack', 'U-NEW', 'carol')",
        "INSERT INTO draftsman.people_groups VALUES ('leads', 'anna')",
        "INSERT INTO draftsman.approval_policy VALUES (true, true)",
        "INSERT INTO draftsman.identity_links (channel, external_id) VALUES ('slack', 'U-NEW')",
        "SELECT code_hash FROM draftsman.identity_links",
        "SELECT draftsman.save_people('{}')",
        "UPDATE draftsman.schema_migrations SET checksum = ''",
    ):
        async with refused(FORBIDDEN):
            await run(conn, statement)


@attack(
    "A person cancels or extends another's job with a function of the database",
    surface="database",
    with_sandbox="refused: needs the role operator, or a job of their own",
)
async def test_a_person_cannot_control_another_persons_job(
    session: Session, make: Factory, roles: Roles
) -> None:
    work = await make.asked(GATE)
    conn = await session("carol")
    me = f"cli:{roles.name('carol')}"
    for call in (
        "cancel_job(%s, %s, NULL)",
        "request_cancel(%s, %s, NULL, '{}')",
        "extend_question(%s, 1, 60, %s)",
    ):
        async with refused(FORBIDDEN, "may not control"):
            await conn.execute(f"SELECT draftsman.{call}".encode(), (work.number, me))
    assert (await make.rt.read_model.job(work.number)).status is Status.WAITING_FOR_APPROVAL


@attack(
    "A function of the session's own schema shadows a function used by a check",
    surface="database",
    with_sandbox="not found: the checks pin their search_path",
)
async def test_a_shadowed_function_is_not_called(
    session: Session, make: Factory, conn: Connection, roles: Roles, database: str
) -> None:
    work = await make.asked(GATE)
    anna = await session("anna")
    await anna.execute(
        "CREATE FUNCTION pg_temp.has_schema_privilege(name, text, text) RETURNS boolean"
        " LANGUAGE sql RETURN true"
    )
    await anna.execute("SET search_path = pg_temp, pg_catalog")
    async with refused(FORBIDDEN):
        await anna.execute(ANSWER, (work.number, "cli", roles.name("carol"), YES))
    assert await rows(anna, "SELECT draftsman.session_kind()") == [("person",)]


@attack(
    "The bot's database role answers for an unlinked identity",
    surface="database",
    with_sandbox="refused: it has no role, and the row would carry its channel's id",
)
async def test_an_answer_for_an_unlinked_identity_is_refused(as_role: As, make: Factory) -> None:
    bot = await as_role("bot")
    work = await make.asked(GATE)
    unlinked = Actor("slack", "U-NOBODY", "N", "carol", frozenset({"approver"}))
    answer = Response(source_event_id="n", decision=Decision.APPROVE)
    with pytest.raises(Refused, match="slack:U-NOBODY may not answer"):
        await bot.questions.answer(work.number, 1, answer, unlinked)
