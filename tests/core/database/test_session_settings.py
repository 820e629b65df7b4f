"""Settings of sessions: those of a role, a database or a client's environment change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from draftsman.database import migrate
from draftsman.database.database import Connection, Database
from draftsman.database.session_settings import (
    INDEX_SCANS,
    MARK,
    OF_SESSIONS,
    PINNED,
    conninfo,
)
from draftsman.errors import SchemaOutdated
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.people.actor import Actor
from draftsman.questions.response import Response
from draftsman.runtime import ENUMS, open_runtime
from draftsman.settings import Settings
from draftsman.settings.database import DatabaseSettings
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end, wait_for_status
from tests.support.cases import cases
from tests.support.server import Server
from tests.support.statements import rows, value

HOSTILE = {
    "array_nulls": "off",
    "bytea_output": "escape",
    "datestyle": "German",
    "default_transaction_deferrable": "on",
    "default_transaction_isolation": "serializable",
    "extra_float_digits": "-10",
    "gin_fuzzy_search_limit": "1",
    "idle_in_transaction_session_timeout": "1ms",
    "idle_session_timeout": "1ms",
    "intervalstyle": "sql_standard",
    "jit": "on",
    "lock_timeout": "1ms",
    "quote_all_identifiers": "on",
    "row_security": "off",
    "search_path": "hostile, pg_catalog",
    "standard_conforming_strings": "off",
    "statement_timeout": "1ms",
    "tcp_keepalives_count": "9",
    "tcp_keepalives_idle": "999",
    "tcp_keepalives_interval": "99",
    "tcp_user_timeout": "999999",
    "timezone": "Pacific/Kiritimati",
    "transform_null_equals": "on",
}
"""A value of each setting with which a session without settings of its own would break."""
SHADOWS = """
CREATE SCHEMA hostile;
GRANT USAGE ON SCHEMA hostile TO public;
CREATE FUNCTION hostile.now() RETURNS timestamptz LANGUAGE sql
    AS 'SELECT ''-infinity''::timestamptz';
CREATE FUNCTION hostile.length(text) RETURNS int LANGUAGE sql AS 'SELECT 0';
CREATE FUNCTION hostile.lower(text) RETURNS text LANGUAGE sql AS 'SELECT ''''';
CREATE TABLE hostile.jobs ();
CREATE TABLE hostile.job_states ();
"""


@pytest.fixture
def hostile_url(server: Server, own_database: str) -> str:
    """Provide a database that defines every setting, for its role and its encoding too."""
    with psycopg.connect(server.url(own_database), autocommit=True) as conn:
        conn.execute(SHADOWS)
        role = sql.Identifier(conn.info.user)
        names = sql.Identifier(own_database)
        for name, setting in (HOSTILE | {"client_encoding": "LATIN1"}).items():
            values = setting.split(", ")
            conn.execute(
                sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(
                    role, names, sql.SQL(name), sql.SQL(", ").join(map(sql.Literal, values))
                )
            )
    return server.url(own_database)


@asynccontextmanager
async def _each_kind(url: str) -> AsyncIterator[dict[str, Connection]]:
    """Open a connection of each kind."""
    async with AsyncExitStack() as stack:
        kinds: dict[str, Connection] = {}
        for read_only in (False, True):
            for pooled in (False, True):
                db = Database(
                    url, DatabaseSettings(), read_only=read_only, pooled=pooled, enums=ENUMS
                )
                await db.open()
                stack.push_async_callback(db.close)
                name = f"{read_only=} {pooled=}"
                kinds[name] = await stack.enter_async_context(db.connection())
                kinds[f"{name}, second"] = await stack.enter_async_context(db.connection())
            for pinned in (False, True):
                session = db.dedicated_session(pinned=pinned)
                name = f"{read_only=} dedicated {pinned=}"
                kinds[name] = await stack.enter_async_context(session.connection(10))
        kinds["migrate"] = await stack.enter_async_context(migrate._connect(url))
        yield kinds


def test_there_is_a_hostile_value_of_each_setting() -> None:
    pinned = PINNED.keys() | OF_SESSIONS.keys() | {"statement_timeout"}
    assert HOSTILE.keys() == pinned - {MARK}


async def test_no_connection_has_a_setting_of_its_role_or_of_an_executed_statement(
    hostile_url: str,
) -> None:
    """A setting that a statement makes would reach another program behind a pooler."""
    query = "SELECT name, setting, source FROM pg_catalog.pg_settings WHERE source = any(%(from)s)"
    foreign = {"from": ["database", "user", "database user", "session"]}
    async with _each_kind(hostile_url) as kinds:
        assert len(kinds) == 13
        for kind, conn in kinds.items():
            assert (kind, await rows(conn, query, foreign)) == (kind, [])
            timeout = "0" if kind == "migrate" else "1min"
            expected = {**PINNED, **OF_SESSIONS, "statement_timeout": timeout}
            if "pinned=True" in kind:
                expected |= INDEX_SCANS
            del expected["tcp_keepalives_count"], expected["tcp_keepalives_idle"]
            del expected["tcp_keepalives_interval"], expected["tcp_user_timeout"]
            current = {name: await value(conn, f"SHOW {name}") for name in expected}
            assert (kind, current) == (kind, expected)
            assert await value(conn, "SHOW client_encoding") == "UTF8"
            read_only = await value(conn, "SHOW transaction_read_only")
            assert (kind, read_only) == (kind, "on" if "read_only=True" in kind else "off")


async def test_a_job_runs_whatever_its_role_and_database_define(
    hostile_url: str, settings: Settings, owner: Actor
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        answer = await ctx.ask("pick", "Welche Größe €?", choices=["Málaga", "no"])
        seen = await ctx.step("note", lambda _: _echo("\\'; \\"))
        return Done({"picked": answer.value, "seen": seen, "third": 1 / 3})

    own = settings.model_copy(update={"database_url": SecretStr(hostile_url)})
    async with open_runtime(own) as rt:
        rt = runtime_with(rt)
        async with running_worker(rt, {"noop": handler}, leader=True):
            text = Invocation(type="noop", payload={"text": "ä€"}, key="one", tags=("NULL", "a,b"))
            number = (await rt.submissions.submit(text, owner)).number
            await wait_for_status(rt, number, Status.WAITING_FOR_INPUT)
            await rt.questions.answer(
                number, 1, Response(source_event_id="one", text="Málaga"), owner
            )
            job = await wait_for_end(rt, number)
    assert (job.status, job.result) == (
        Status.COMPLETED,
        {"picked": "Málaga", "seen": "\\'; \\", "third": 1 / 3},
    )
    async with open_runtime(own, read_only=True, pooled=False) as rt:
        assert [job.number for job in await rt.read_model.jobs()] == [number]
        assert len(await rt.read_model.job_events(number, 0)) > 5
        assert not any((await rt.read_model.invariants()).values())


async def test_a_job_is_submitted_in_a_hostile_session_of_a_caller(
    hostile_url: str, settings: Settings, owner: Actor
) -> None:
    """The functions and triggers of the schema work in a session that draftsman did not open."""
    own = settings.model_copy(update={"database_url": SecretStr(hostile_url)})
    async with open_runtime(own) as rt:
        caller = await psycopg.AsyncConnection.connect(
            hostile_url,
            options="-c statement_timeout=0 -c idle_session_timeout=0"
            " -c idle_in_transaction_session_timeout=0 -c lock_timeout=0",
        )
        async with caller:
            requests = [Invocation(type="noop", subject_key="s", tags=("NULL",))]
            [job] = await rt.submissions.submit_many(requests, owner, connection=caller)
        assert (await rt.read_model.job(job.number)).status is Status.QUEUED


async def _echo(text: str) -> str:
    return text


@cases("encoding", ["LATIN1", "SQL_ASCII", "WIN1252"])
def test_a_database_of_another_encoding_is_refused_before_the_first_statement(
    server: Server, encoding: str
) -> None:
    name = server.create(migrated=False)
    server.drop(name)
    server.admin.execute(
        f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    )
    try:
        with pytest.raises(SchemaOutdated, match=rf"{encoding}.*CREATE DATABASE .*'UTF8'"):
            asyncio.run(migrate.migrate(server.url(name)))
        with psycopg.connect(server.url(name)) as conn:
            schemas = conn.execute("SELECT FROM pg_namespace WHERE nspname = 'draftsman'")
            assert schemas.fetchone() is None
    finally:
        server.drop(name)


def test_the_parameters_of_a_url_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    own = "keepalives_idle=7&tcp_user_timeout=5&options=-c%20geqo%3Doff&sslmode=require"
    parts = conninfo_to_dict(conninfo(f"postgresql://db/x?{own}", PINNED, 10))
    assert (parts["keepalives_idle"], parts["keepalives_count"]) == ("7", "3")
    assert (parts["tcp_user_timeout"], parts["sslmode"]) == ("5", "require")
    assert str(parts["options"]).startswith("-c geqo=off -c array_nulls=on ")
    monkeypatch.setenv("PGOPTIONS", "-c geqo=off")
    inherited = conninfo_to_dict(conninfo("postgresql://db/x", PINNED, 10))["options"]
    assert str(inherited).startswith("-c geqo=off -c array_nulls=on ")
