"""The `worker` and `up --headless` commands: startup, queues and shutdown.

Restarts after crashes and the death of the supervisor are tested in tests/acceptance.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from draftsman.channels import registry
from draftsman.channels.targets import target_forms
from draftsman.ids import worker_name
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from draftsman_tui.cli.processes.supervisor import DETACH
from draftsman_tui.terminal.own_command import DRAFTSMAN_COMMAND
from tests.core.worker.workers import wait_for_end
from tests.support.fork_server import children
from tests.tui.cli.cli_runner import COMMAND, DEADLINE, IMPORTABLE, Cli

Start = Callable[..., Awaitable[Process]]


@pytest.fixture
async def start(cli: Cli, tmp_path: Path) -> AsyncIterator[Start]:
    """Start commands whose stderr goes to `tmp_path/log`; none outlives the test."""
    started: list[Process] = []
    with cli.config.open("a", encoding="utf-8") as config:
        config.write('\nhandlers.echo = "tests.tui.cli.handlers:echo"\n')
        config.write('handlers.fail = "tests.tui.cli.handlers:fail"\n')

    async def run(*arguments: str) -> Process:
        command = [*COMMAND, "--config", str(cli.config), *arguments]
        with (tmp_path / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stderr=log, env={**os.environ, **IMPORTABLE}
            )
        started.append(process)
        return process

    yield run
    for process in started:
        for worker_row in [*_children(process.pid), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(worker_row, signal.SIGKILL)
        await process.wait()


def _children(pid: int) -> list[int]:
    try:
        return [child.pid for child in children(pid)]
    except psutil.NoSuchProcess:
        return []


async def _worker_of(up: Process, rt: Runtime, *, other_than: int = 0) -> int:
    """Return the pid of the worker of `up`, once it is registered."""
    workers_found: list[int] = []

    async def registered() -> bool:
        children = set(_children(up.pid)) - {other_than}
        workers_found[:] = [
            worker_row.pid
            for worker_row in await rt.read_model.workers()
            if worker_row.pid in children
        ]
        return bool(workers_found)

    await until(registered, "a registered worker")
    return workers_found[0]


async def _are_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid)


async def test_a_worker_runs_the_jobs_of_its_queues_and_shuts_down(
    start: Start, make: Factory, rt: Runtime
) -> None:
    number = await make.queued(type="echo", queue="mine", title="hello")
    other = await make.queued(type="echo", queue="other")
    worker = await start("worker", "--queue", "mine", "--queue", "more", "--slots", "3")
    assert await asyncio.wait_for(rt.read_model.wait(number), DEADLINE) is Status.COMPLETED
    assert (await rt.read_model.job(number)).result == {"title": "hello"}
    workers_found = (await rt.read_model.workers())[0]
    assert (workers_found.pid, workers_found.slots, workers_found.queues) == (
        worker.pid,
        3,
        ["mine", "more"],
    )
    worker.terminate()
    assert await asyncio.wait_for(worker.wait(), DEADLINE) == 0
    assert await rt.read_model.workers() == []
    assert (await rt.read_model.job(other)).status is Status.QUEUED
    assert [event.kind for event in await rt.read_model.job_events(other)] == ["job_created"]


async def test_a_worker_without_leadership_never_leads(start: Start, rt: Runtime) -> None:
    await start("worker", "--no-leader")
    leading = await start("worker")

    async def led() -> bool:
        workers_found = await rt.read_model.workers()
        return len(workers_found) == 2 and any(worker_row.leader for worker_row in workers_found)

    await until(led, "a leader among two")
    assert [
        worker_row.pid for worker_row in await rt.read_model.workers() if worker_row.leader
    ] == [leading.pid]


async def test_a_closed_terminal_shuts_down_all_processes(start: Start, rt: Runtime) -> None:
    up = await start("up", "--headless")
    worker = await _worker_of(up, rt)
    up.send_signal(signal.SIGHUP)
    assert await asyncio.wait_for(up.wait(), DEADLINE) == 0
    assert await _are_gone(worker)
    assert await rt.read_model.workers() == []


async def test_a_second_signal_kills_processes_that_do_not_stop(
    start: Start, rt: Runtime, tmp_path: Path
) -> None:
    up = await start("up", "--headless")
    worker = await _worker_of(up, rt)
    os.kill(worker, signal.SIGSTOP)
    up.send_signal(signal.SIGINT)

    async def stopping() -> bool:
        return "stopping worker" in (tmp_path / "log").read_text()

    await until(stopping, "the message about the shutdown")
    up.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(up.wait(), DEADLINE) == 130
    assert await _are_gone(worker)


@pytest.mark.parametrize("detached", [True, False])
async def test_a_lost_supervisor_stops_all_processes_unless_detached(
    start: Start, rt: Runtime, detached: bool
) -> None:
    up = await start("up", "--headless", "--attached")
    worker = await _worker_of(up, rt)
    assert up.stdin is not None
    up.stdin.write(DETACH if detached else b"")
    up.stdin.close()
    if detached:
        os.kill(worker, signal.SIGKILL)  # it continues to supervise
        await _worker_of(up, rt, other_than=worker)
        up.terminate()
    assert await asyncio.wait_for(up.wait(), DEADLINE) == 0


def test_modules_in_the_current_directory_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit('owned')")
    command = [*DRAFTSMAN_COMMAND, "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, "draftsman"), done.stderr


async def test_a_worker_serves_its_health(start: Start, rt: Runtime, tmp_path: Path) -> None:
    worker = await start("worker", "--health-port", "0")

    async def listening() -> bool:
        return b"health endpoints on port" in (tmp_path / "log").read_bytes()

    await until(listening, "the port in the log")
    port = re.findall(r"health endpoints on port (\d+)", (tmp_path / "log").read_text())[0]

    async def is_ready() -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(b"GET /readyz HTTP/1.1\r\n\r\n")
        response = await reader.read()
        writer.close()
        return response.startswith(b"HTTP/1.1 200 ")

    await until(is_ready, "a ready worker")
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(worker.wait(), DEADLINE) == 0


async def test_a_worker_logs_in_json_with_itself_and_the_run(
    start: Start, make: Factory, rt: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_LOG__FORMAT", "json")
    number = await make.queued(type="fail", queue="default")
    worker = await start("worker")
    assert (await wait_for_end(rt, number)).status is Status.FAILED
    (row,) = await rt.read_model.workers()
    worker.terminate()
    assert await asyncio.wait_for(worker.wait(), DEADLINE) == 0
    entries = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {entry["worker"] for entry in entries} == {worker_name(row.id)}
    (failed,) = [entry for entry in entries if "no echo" in entry["message"]]
    assert (failed["job"], failed["run"]) == (f"D-{number}", 1)


async def test_an_invalid_health_port_is_refused(cli: Cli) -> None:
    (await cli("worker", "--health-port", "70000")).refused(2, "--health-port", "65535")


async def test_the_help_of_bots_and_targets_is_that_of_the_installed_channels(cli: Cli) -> None:
    channels = registry.channels()
    shown = (await cli("bots", "--help")).out.partition("Channels:")[2]
    rows = [row.split()[0] for row in shown.partition("Examples:")[0].splitlines() if row.strip()]
    assert rows == [channel.table for channel in channels if channel.bot is not None]
    assert "mail    E-mail bot (draftsman help --page mail)" in shown
    for command in ("submit", "ask"):
        help = " ".join((await cli(command, "--help")).out.split())
        assert target_forms() in help, command


async def test_resources_are_open_from_the_start_of_a_worker_until_after_its_drain(
    rt: Runtime, make: Factory, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal"
    monkeypatch.setenv("LIFESPAN_FILE", str(journal))
    number = await make.queued(type="cli:writes", queue="default")
    worker = await start("worker", "--app", "tests.tui.cli.lifespan_jobs")
    assert (await wait_for_end(rt, number)).status is Status.COMPLETED
    worker.terminate()
    assert await asyncio.wait_for(worker.wait(), DEADLINE) == 0
    assert journal.read_text(encoding="utf-8") == f"open\nrun D-{number}\nclose\n"
