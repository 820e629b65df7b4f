"""The whole life of a job with a transaction pooler as `database_url`.

Needs a PgBouncer (`pgbouncer`), of any version: draftsman prepares no statement there. The pooler
has a single session with the server, so that each client would see the settings of all others.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from draftsman.errors import ConfigError
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.people.actor import Actor
from draftsman.questions.response import Response
from draftsman.runtime import open_runtime
from draftsman.settings import Settings, settings_model
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end, wait_for_status
from tests.support.pooler import pooled
from tests.support.statements import value

IGNORED = "ignore_startup_parameters = options, extra_float_digits"
"""Start-up options are refused by default, and ignored with this setting."""
SETTINGS = """
SELECT name, setting FROM pg_catalog.pg_settings
 WHERE name !~ '^(application_name$|client_encoding$|plpgsql\\.|transaction_)' ORDER BY name
"""
"""Settings of a session, except those of a transaction, those that PgBouncer sets for each client,
and those of a library that the first trigger loads."""


@pytest.mark.parametrize("lines", [(), (IGNORED,)], ids=["refused", "ignored"])
async def test_a_job_runs_through_a_pooler_and_no_other_program_sees_a_setting(
    settings: Settings, owner: Actor, database_url: str, tmp_path: Path, lines: tuple[str, ...]
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        answer = await ctx.ask("pick", "Which?", choices=["a", "b"])
        await ctx.step("note", lambda _: asyncio.sleep(0, "noted"))
        return Done({"picked": answer.value})

    with (
        pooled(database_url, *lines) as url,
        psycopg.connect(url, autocommit=True) as other,
    ):
        before = other.execute(SETTINGS).fetchall()
        urls = {"database_url": url, "listen_url": database_url}
        sent = {"notifications": {"targets": ["log"]}}
        own = settings_model().model_validate(settings.model_dump() | urls | sent)
        async with open_runtime(own) as opened:
            assert opened.db.behind_pooler
            rt = runtime_with(opened, data_dir=tmp_path / "data")
            async with running_worker(rt, {"noop": handler}, leader=True) as process:
                numbers = [
                    (await rt.submissions.submit(Invocation(type="noop"), owner)).number
                    for _ in range(5)
                ]
                for number in numbers:
                    await wait_for_status(rt, number, Status.WAITING_FOR_INPUT)
                    response = Response(source_event_id=str(number), text="b")
                    await rt.questions.answer(number, 1, response, owner)
                for number in numbers:
                    job = await wait_for_end(rt, number)
                    assert (job.status, job.result) == (Status.COMPLETED, {"picked": "b"})
                assert process.listener.lock_held
                # in a thread: the worker may be in a transaction with the only session
                seen = await asyncio.to_thread(other.execute, SETTINGS)
                assert seen.fetchall() == before
        log = tmp_path / "data" / "notifications.jsonl"
        assert log.exists()
        _command(url, database_url, "jobs")
        _command(url, database_url, "show", "D-1")
        _command(url, database_url, "doctor", code=None)
        assert other.execute(SETTINGS).fetchall() == before
        assert other.execute("SHOW transaction_read_only").fetchone() == ("off",)
        other.execute("CREATE TABLE public.of_another_program ()")


async def test_processes_that_need_a_session_are_refused_without_listen_url(
    settings: Settings, database_url: str
) -> None:
    with pooled(database_url) as url:
        own = settings_model().model_validate(settings.model_dump() | {"database_url": url})
        async with open_runtime(own) as rt:
            async with rt.db.connection() as conn:
                assert await value(conn, "SELECT count(*) FROM draftsman.jobs") == 0
            with pytest.raises(ConfigError, match="set listen_url"):
                await rt.read_model.receives_notifications()
        assert "set listen_url" in _command(url, None, "worker", code=2)
        assert "set listen_url" in _command(url, None, "migrate", code=2)
        assert "no jobs yet" in _command(url, None, "jobs")
        assert "set listen_url" in _command(url, None, "doctor", code=1)


def _command(url: str, listen_url: str | None, *arguments: str, code: int | None = 0) -> str:
    """Run a command; return its output. It ends with `code`, or with any if that is None."""
    variables = {"DRAFTSMAN_DATABASE_URL": url, "DRAFTSMAN_LISTEN_URL": listen_url or ""}
    done = subprocess.run(
        [sys.executable, "-m", "draftsman_tui", *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert code in (None, done.returncode), done.stderr + done.stdout
    return done.stdout + done.stderr
