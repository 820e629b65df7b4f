"""The channel of `docs/examples/channel` in the shipped process of the bots, and without it."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.handlers.context import RunContext
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.http_server import serving
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.acceptance.conftest import installations
from tests.acceptance.processes import Installation, Process
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end
from tests.plugins import example
from tests.support.fork_server import NEW_INTERPRETER
from tests.support.statements import value

__all__ = ["installations"]


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build and install the plugin, also for this process; give its folder."""
    folder = tmp_path_factory.mktemp("plugin")
    example.install(folder)
    with example.importable(folder):
        yield folder


@pytest.fixture
async def chat_server(plugin: Path) -> AsyncIterator[tuple[Any, str]]:
    """Give a chat server, and its URL."""
    server = importlib.import_module("chat_server").ChatServer()
    async with serving(server.answer) as url:
        yield server, url


async def _ask(ctx: RunContext) -> Done:
    answer = await ctx.ask("pick", "Which one?", choices=["red", "blue"])
    return Done({"color": answer.value})


async def test_a_job_asks_and_ends_through_a_plugin_whose_rows_stay_readable_without_it(
    plugin: Path,
    chat_server: tuple[Any, str],
    installations: Callable[[str], Installation],
    rt: Runtime,
    make: Factory,
    people: People,
    conn: Connection,
) -> None:
    chat, url = chat_server
    here = installations("bots")
    here.configure(
        httpchat__url=url, people__ben__httpchat="benny", people__ben__roles=["responder"]
    )
    path = os.pathsep.join([str(plugin), here.environment()["PYTHONPATH"]])
    env = {"PYTHONPATH": path, NEW_INTERPRETER: "1"}
    migrated = await here.run("migrate", "--yes", **env)
    assert "httpchat  draftsman-httpchat 0.1.0" in migrated.stderr, migrated.stderr
    bots = here.start("bots", env=env)
    number = await make.queued(actor=people.anna, queue="default", notify=("httpchat:ops",))
    async with running_worker(runtime_with(rt, types={"noop": {}}), {"noop": _ask}):
        await until(lambda: _shows(chat, "write here: the number", bots), "the question")
        chat.write("benny", "2")
        await wait_for_end(rt, number)
        await until(lambda: _shows(chat, "completed", bots), "the result")
    bots.signal(signal.SIGTERM)
    assert await bots.end() == 0, bots.output_text
    assert chat.texts == {}
    assert (await rt.read_model.job(number)).result == {"color": "blue"}
    assert any(f"D-{number}/1 was answered by ben: blue" in text for text in chat.messages.values())
    here.configure()
    for command in (("show", f"D-{number}"), ("deliveries",), ("events", f"D-{number}")):
        shown = await here.run(*command)
        assert shown.returncode == 0, shown
        assert "httpchat" in shown.stdout, command
    assert await value(conn, "SELECT count(*) FROM draftsman.channels WHERE name = 'httpchat'") == 1


async def _shows(chat: Any, words: str, bots: Process) -> bool:
    assert bots.popen.poll() is None, bots.output_text
    return any(words in text for text in chat.messages.values())
