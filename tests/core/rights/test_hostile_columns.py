"""Every column that a role may write takes only values with which the other processes can work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest

from draftsman.database.database import Connection
from draftsman.jobs.details.invariants import violations
from draftsman.jobs.runs.run import Lease
from draftsman.jobs.runs.store import claim
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from tests.core.rights.conftest import As
from tests.core.rights.hostile import COLUMNS, Column, insertion, submission
from tests.support.limits import set_limits
from tests.support.roles import GROUP_OF, Roles
from tests.support.statements import rows, run, value

QUEUE: Final = "pay"
USERS: Final = ("anna", "olga", "bot")
"""Logins: an invoker and an operator with roles of their own, and the bots."""

OF_A_PERSON: Final = {
    "job_requests": {
        "id": "gen_random_uuid()",
        "type": "'noop'",
        "idempotency_key": "'key'",
        "request_digest": "'digest'",
        "source": "'cli'",
        "invoker_id": "'anna'",
    },
    "job_states": {"type": "'noop'", "queue": f"'{QUEUE}'"},
    "job_targets": {
        "job": "%(own)s",
        "ordinal": "7",
        "channel": "'log'",
        "target": "'x'",
        "thread_key": "'D-' || %(own)s::bigint || ' log:x'",
    },
    "unique_keys": {"job": "%(new)s", "key": "'key'"},
    "job_answers": {
        "job": "%(asked)s",
        "question": "1",
        "kind": "'input'",
        "source": "'cli'",
        "source_event_id": "'event'",
        "responder_id": "session_user",
        "voter": "'anna'",
        "payload": """'{"text": "x"}'""",
        "accepted": "false",
        "reason": "'late'",
    },
    "schedules": {
        "name": "'weekly'",
        "rule": "'0 2 * * *'",
        "timezone": "'UTC'",
        "request": """'{"type": "noop"}'""",
        "created_by": "'anna'",
    },
    "schedule_fires": {
        "schedule": "%(schedule)s",
        "due_at": "draftsman.now()",
        "status": "'fired'",
        "job": "%(own)s",
        "reason": "'by hand'",
    },
}
"""A valid row of each table that a person may write; of `%(own)s` and others, see `World`."""
OF_AN_OPERATOR: Final = {
    "repos": {"name": "'shop'", "remote_url": "'https://example.org/shop'", "added_by": "'olga'"},
    "repo_mappings": {
        "label_name": "'shop'",
        "repo": "%(repo)s",
        "added_by": "'olga'",
    },
    "repo_profiles": {"repo": "%(repo)s", "path": "'lib'", "updated_by": "'olga'"},
    "job_templates": {
        "name": "'bump'",
        "version": "1",
        "definition": "'{}'",
        "created_by": "'olga'",
    },
    "trello_board_configs": {"board_id": "'b2'", "name": "'Board'"},
    "trello_labels": {
        "card": "'c2'",
        "label": "'l'",
        "board": "'b'",
        "episode": "0",
        "present": "true",
        "stage": "'done'",
        "changed_at": "draftsman.now()",
    },
    "trello_poll_cursors": {"board": "'b3'", "actions_until": "draftsman.now()"},
    "schedules": OF_A_PERSON["schedules"] | {"created_by": "'olga'"},
}
OF_A_BOT: Final = {
    "job_requests": OF_A_PERSON["job_requests"] | {"source": "'slack'"},
    "job_states": OF_A_PERSON["job_states"],
    "job_targets": OF_A_PERSON["job_targets"],
    "unique_keys": OF_A_PERSON["unique_keys"],
    "job_answers": OF_A_PERSON["job_answers"] | {"source": "'slack'", "responder_id": "'U-ANNA'"},
    "schedules": OF_A_PERSON["schedules"],
    **{
        table: OF_AN_OPERATOR[table]
        for table in ("trello_board_configs", "trello_labels", "trello_poll_cursors")
    },
    "job_events": {
        "job": "%(sent)s",
        "kind": "'delivery_sent'",
        "actor": "'system'",
        "payload": "jsonb_build_object('delivery', %(sending)s::bigint)",
    },
    "deliveries": {
        "job": "%(own)s",
        "channel": "'slack'",
        "target": "'C1'",
        "thread_key": "'D-' || %(own)s::bigint || ' slack:C1'",
        "kind": "'notice'",
    },
    "channel_limits": {"bucket": "'slack:post'"},
    "leases": {
        "name": "'trello'",
        "owner": "gen_random_uuid()",
        "term": "1",
        "expires_at": "now()",
    },
    "live_threads": {"thread_key": "'t'", "job": "%(own)s", "run": "1"},
    "trello_checklists": {
        "card": "'c'",
        "job": "%(asked)s",
        "question": "1",
        "checklist": "'k2'",
        "items": """'{"a": 1}'""",
    },
    "trello_due_dates": {"card": "'c2'", "board": "'b'", "shown": "draftsman.now()"},
    "forge_events": {
        "forge": "'github'",
        "project": "'shop'",
        "number": "1",
        "key": "'k2'",
        "kind": "'comment'",
        "source": "'forge'",
        "author": "'anna'",
        "author_name": "'Anna'",
        "is_bot": "false",
        "title": "''",
        "text": "'x'",
    },
}
ROWS: Final = {"anna": OF_A_PERSON, "olga": OF_AN_OPERATOR, "bot": OF_A_BOT}
NOT_FOR: Final = {
    "anna": {
        "operators alone may write it": {
            "repos", "repo_mappings", "repo_profiles", "job_templates", "trello_board_configs",
            "trello_labels", "trello_poll_cursors",
        },
    },
    "olga": {
        "an operator who is no invoker submits nothing": {
            "job_requests", "job_states", "job_targets", "unique_keys", "schedule_fires",
        },
        "as for every person": {"job_answers"},
    },
    "bot": {},
}  # fmt: skip
"""Tables that the group of a login may write, but this login may not, by the reason."""
HARMLESS: Final = {
    (user, "job_answers", "voter"): "a trigger replaces it by the person of the session"
    for user in ("anna", "bot")
}
"""Values that a statement accepts although no process could work with them, and why none has to."""


@dataclass(frozen=True, slots=True)
class World:
    """The jobs that a hostile value could break, with limits, keys, targets and questions."""

    params: dict[str, Any]
    lease: Lease
    database: Connection

    async def check(self, worker: str) -> None:
        """Assert that people read the jobs, a worker settles and claims them, and all is valid."""
        conn = self.database
        for table in ("jobs", "deliveries", "questions", "schedules", "job_answers", "events"):
            await rows(conn, f"SELECT * FROM draftsman.{table}")
        await run(conn, f'SET SESSION AUTHORIZATION "{worker}"')
        done = [(self.lease, dict[str, Any]())]
        for _ in range(4):
            claimed = await claim.exchange(
                conn,
                done,
                worker=uuid4(),
                queues=[QUEUE, "default", ""],
                types=["noop"],
                free=5,
                ahead=0,
            )
            if not (started := [job for job in claimed if job.status == "running"]):
                break
            for job in started:
                _ = job.payload, job.overrides, job.tags, job.request, job.created_at
            done = [(job.lease, dict[str, Any]()) for job in started]
        await run(conn, "RESET SESSION AUTHORIZATION")
        broken = await violations(conn)
        assert {name: found for name, found in broken.items() if found} == {}


@pytest.fixture
async def world(rt: Runtime, known: Runtime, make: Factory, as_role: As) -> AsyncIterator[World]:
    """Provide jobs of anna and of the owner, with places in limits, keys, targets, a question."""
    anna = await as_role("anna")
    actor = await anna.actor()
    async with rt.db.connection() as conn:
        await set_limits(rt, conn, queue={QUEUE: {"running": 3}})
    running = await make.running(await make.queued(queue=QUEUE, concurrency_key="k", actor=actor))
    for fields in ({"concurrency_key": "k"}, {}, {"notify": ("log",)}, {}):
        await make.queued(queue=QUEUE, actor=actor, **fields)
    own = await make.running(actor=actor)
    asked = await make.asked(QUESTION.model_copy(update={"freeform": True}), actor=actor)
    sent = await make.queued(notify=("slack:C9",))
    (sending,) = await known.delivery_sender.claim("slack", free=1, share=1)
    assert sending.job == sent
    conn = await rt.db.dedicated_connection()
    repo = await value(
        conn,
        "INSERT INTO draftsman.repos (name, remote_url, added_by)"
        " VALUES ('pay', 'https://example.org/pay', 'root') RETURNING id",
    )
    schedule = await value(
        conn,
        "INSERT INTO draftsman.schedules (name, rule, timezone, request, created_by)"
        """ VALUES ('nightly', '0 2 * * *', 'UTC', '{"type": "noop"}', 'anna') RETURNING id""",
    )
    params = {
        "own": own.number,
        "asked": asked.number,
        "repo": repo,
        "schedule": schedule,
        "sending": sending.seq,
        "sent": sent,
    }
    for table, row in OF_THE_WORLD:
        await run(conn, insertion(table, row), params)
    yield World(params, running.lease, conn)
    await conn.close()


OF_THE_WORLD: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("repo_profiles", {"repo": "%(repo)s", "updated_by": "'root'"}),
    (
        "repo_mappings",
        {"label_name": "'pay'", "repo": "%(repo)s", "added_by": "'root'"},
    ),
    ("trello_board_configs", {"board_id": "'b'", "name": "'Board'"}),
    ("trello_board_configs", {"board_id": "'b3'", "name": "'Board'"}),
    ("trello_labels", OF_AN_OPERATOR["trello_labels"] | {"card": "'c'"}),
    ("trello_poll_cursors", {"board": "'b'", "actions_until": "draftsman.now()"}),
    ("trello_due_dates", OF_A_BOT["trello_due_dates"] | {"card": "'c'"}),
    ("trello_checklists", OF_A_BOT["trello_checklists"] | {"card": "'c1'", "checklist": "'k'"}),
    ("channel_limits", {"bucket": "'slack'"}),
    ("leases", OF_A_BOT["leases"] | {"name": "'forge'"}),
    ("live_threads", OF_A_BOT["live_threads"] | {"thread_key": "'own'"}),
    (
        "pull_requests",
        {
            "root": "%(asked)s",
            "forge": "'github'",
            "project": "'pay'",
            "number": "1",
            "url": "'https://example.org/1'",
            "branch": "'b'",
            "base": "'main'",
            "head": "'h'",
        },
    ),
    ("forge_events", OF_A_BOT["forge_events"] | {"key": "'k'"}),
)
"""A row of each other table, for updates."""


async def test_a_request_of_an_invoker_has_no_values_that_others_cannot_work_with(
    world: World, roles: Roles
) -> None:
    tables = {"job_requests", "job_states"}
    assert await _attack(world, roles, "anna", lambda table: table in tables) == {}


@pytest.mark.slow(fast="test_a_request_of_an_invoker_has_no_values_that_others_cannot_work_with")
@pytest.mark.parametrize("user", USERS)
async def test_every_granted_column_refuses_values_that_others_cannot_work_with(
    world: World, roles: Roles, user: str
) -> None:
    excluded = set[str]().union(*NOT_FOR[user].values())
    found = await _attack(world, roles, user, lambda table: table not in excluded)
    reasons = {name for name in HARMLESS if name[0] == user}
    harmful = [f"{name}: {harm}" for name, harm in found.items() if name not in reasons]
    assert harmful == []
    assert reasons - {*found} == set(), "needless exceptions"


async def _attack(
    world: World, roles: Roles, user: str, is_attacked: Callable[[str], bool]
) -> dict[tuple[str, str, str], str]:
    """Return the harm of hostile values of a login, by login, table and column."""
    conn = world.database
    found = dict[tuple[str, str, str], str]()
    async with conn.transaction(force_rollback=True):
        for privilege in ("INSERT", "UPDATE"):
            for table, columns in (await _columns(conn, user, privilege)).items():
                if not is_attacked(table):
                    continue
                attack = _Attack(world, roles, user, table, privilege)
                assert await attack.outcome(None, None) == "", f"{user}: {privilege} {table}"
                for column in columns:
                    for hostile in column.values:
                        if harm := await attack.outcome(column, hostile):
                            found[user, table, column.name] = f"{privilege} {hostile[:60]}: {harm}"
    return found


@dataclass(frozen=True, slots=True)
class _Attack:
    """The statements of a login on a table."""

    world: World
    roles: Roles
    user: str
    table: str
    privilege: str

    async def outcome(self, column: Column | None, hostile: str | None) -> str:
        """Return the harm of a value; "" where it is refused, or where all goes on with it.

        Without a column, return "" only where the statement is accepted.
        """
        conn = self.world.database
        try:
            async with conn.transaction(force_rollback=True):
                await self._write(column, hostile)
                await run(conn, "SET CONSTRAINTS ALL IMMEDIATE")
                await run(conn, "RESET SESSION AUTHORIZATION")
                if column is not None and "repeat('x'" in str(hostile):
                    return "stored"
                try:
                    await self.world.check(self.roles.name("worker"))
                except (psycopg.Error, AssertionError, ValueError, RecursionError) as harm:
                    return f"{type(harm).__name__}: {str(harm)[:200]}"
                return ""
        except psycopg.Error as refusal:
            return "" if column is not None else str(refusal)

    async def _write(self, column: Column | None, hostile: str | None) -> None:
        conn = self.world.database
        params = dict(self.world.params)
        await run(conn, f'SET SESSION AUTHORIZATION "{self.roles.name(self.user)}"')
        if self.user == "bot":
            await run(conn, "SELECT set_config('draftsman.actor', 'slack:U-ANNA', true)")
        if self.privilege == "UPDATE":
            if column is None:
                assert await value(conn, f"SELECT EXISTS (SELECT FROM draftsman.{self.table})")
            else:
                change = f"{column.name} = {hostile}"
                await run(conn, f"UPDATE draftsman.{self.table} SET {change}")
            return
        tables = ROWS[self.user]
        valid = {name: dict(row) for name, row in tables.items()}
        if column is not None and hostile is not None:
            valid[self.table][column.name] = hostile
        if self.table in ("job_requests", "job_states"):
            await run(conn, submission(valid["job_requests"], valid["job_states"]))
            return
        if self.table == "unique_keys":
            await run(conn, submission(valid["job_requests"], valid["job_states"]))
            params["new"] = await value(conn, "SELECT max(number) FROM draftsman.job_requests")
        await run(conn, insertion(self.table, valid[self.table]), params)


async def _columns(conn: Connection, user: str, privilege: str) -> dict[str, list[Column]]:
    """Return the columns that the group of a login may write, by table."""
    columns: dict[str, list[Column]] = {}
    for table, name, type, labels in await rows(conn, COLUMNS, (GROUP_OF[user], privilege)):
        columns.setdefault(table, []).append(Column(table, name, type, tuple(labels)))
    return columns
