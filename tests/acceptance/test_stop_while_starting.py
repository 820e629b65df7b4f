"""A signal at each stage of startup: every long-running command ends cleanly.

Here at every fifth stage of each command; `make soak` signals at all.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import itertools
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import psutil
import pytest

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from tests.acceptance.processes import Installation, Process
from tests.acceptance.soak_runs import NOT_THERE, PATIENCE, left
from tests.support.cases import cases
from tests.support.fork_server import NEW_INTERPRETER

STAGES = Path(__file__).with_name("stages")
NOWHERE = "http://127.0.0.1:1/"
"""An unreachable service, which a bot waits for."""
NUMBERS = itertools.count()
TERM = signal.SIGTERM
INT = signal.SIGINT
HUP = signal.SIGHUP
Stage = tuple[str, signal.Signals]
"""`module:function`, or `module:<module>` for its import, and the signal sent there."""
WORKER: Final[list[Stage]] = [
    ("click:<module>", INT),
    ("draftsman_tui.cli.processes.serve:<module>", TERM),
    ("draftsman.handlers.registry:load", HUP),
    ("draftsman.database.database:Database.open", INT),
    ("draftsman.database.schema:applied", TERM),
    ("draftsman.worker.worker_process:WorkerProcess.run", HUP),
    ("draftsman.agent_runs.clones.tree_removal:remove_stale_clones", INT),
    ("draftsman.worker.leader:Leader.run", TERM),
]
BOTS: Final[list[Stage]] = [
    (f"draftsman_bots.{chat}.{stage}", number)
    for chat in ("slack", "trello")
    for stage, number in (
        ("service:<module>", TERM),
        ("service:Service.__init__", INT),
        ("service:Service.run", HUP),
        ("identity:resolve_identity", TERM),
    )
]
UP: Final[list[Stage]] = [
    ("draftsman.database.migrate:check_compatible", INT),
    ("draftsman_tui.cli.processes.supervisor:Supervisor.run", TERM),
    ("draftsman_tui.cli.processes.supervisor:Child.run", HUP),
    ("draftsman_tui.cli.processes.supervisor:Child._run_once", TERM),
]
UP_ON_TERMINAL: Final[list[Stage]] = [
    ("draftsman.database.migrate:check_compatible", HUP),
    ("draftsman_tui.cli.processes.foreground:start_supervisor", INT),
    ("draftsman.database.database:Database.open", TERM),
    ("draftsman_tui.cli.processes.foreground:Foreground._show_dashboard", TERM),
    ("textual.app:App.run_async", TERM),
]
DASHBOARD: Final[list[Stage]] = [
    ("textual:<module>", HUP),
    ("draftsman.database.database:Database.open", INT),
    ("draftsman_tui.cli.processes.dashboard:create_dashboard", TERM),
    ("textual.app:App.run_async", INT),
    ("textual.app:App._init_mode", TERM),
]
WEB: Final[list[Stage]] = [
    ("draftsman.database.database:Database.open", HUP),
    ("draftsman_tui.dashboard.web.server:Web.serving", INT),
    ("draftsman_tui.dashboard.web.server:Web._listen", TERM),
]
DEMO: Final[list[Stage]] = [
    ("draftsman.agent_runs.clones.sample_repo:make_sample_repo", INT),
    ("draftsman.jobs.requests.service.submissions:Submissions.submit", TERM),
    ("draftsman_tui.cli.demo.demo:Demo._start_worker", HUP),
]
SOAK: Final[list[Stage]] = [
    ("draftsman_soak.seed_environment:<module>", HUP),
    ("draftsman.database.embedded.cluster:_create", INT),
    ("draftsman.database.embedded.cluster:_launch", TERM),
]
WAIT: Final[list[Stage]] = [
    ("click:<module>", TERM),
    ("click:<module>", INT),
    ("draftsman_tui.cli.jobs.job_wait:<module>", INT),
]
EVERY: Final = sorted(
    {
        stage
        for stages in (WORKER, BOTS, UP, UP_ON_TERMINAL, DASHBOARD, WEB, DEMO, SOAK, WAIT)
        for stage, _ in stages
    }
)


class Choice(Protocol):
    """Chooses from the stages of a command those where it is signaled."""

    def __call__(self, stages: list[Stage], every: int = 5) -> list[Stage]: ...


@pytest.fixture
def choose() -> Choice:
    """Choose every fifth stage, so that the last is among them."""
    return lambda stages, every=5: stages[::-1][::every]


@cases("stage", EVERY)
def test_a_stage_exists(stage: str) -> None:
    module, _, function = stage.partition(":")
    owner = importlib.import_module(module)
    if function != "<module>":
        assert callable(functools.reduce(getattr, function.split("."), owner))


@asynccontextmanager
async def halting(
    installation: Installation, stage: str
) -> AsyncIterator[tuple[dict[str, str], asyncio.Event]]:
    """Provide the environment of a process that halts at a stage, and an event for the halt.

    It continues after the block.
    """
    reached = asyncio.Event()
    over = asyncio.Event()

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.close()  # its children inherit this
        reached.set()
        await over.wait()
        writer.close()

    path = installation.folder / f"{next(NUMBERS)}.socket"
    server = await asyncio.start_unix_server(hold, path)
    search_path = os.pathsep.join([str(STAGES), installation.environment()["PYTHONPATH"]])
    try:
        env = {
            "PYTHONPATH": search_path,
            "STAGE": stage,
            "STAGE_SOCKET": str(path),
            "PYTHONFAULTHANDLER": "1",
        }
        if stage.endswith(":<module>"):
            env[NEW_INTERPRETER] = "1"
        yield env, reached
    finally:
        server.close()
        over.set()


async def stopped(installation: Installation, stage: Stage, *args: str, **env: str) -> Process:
    """Start a command, signal it at the stage, and return it after its end."""
    where, number = stage
    async with halting(installation, where) as (halts, reached):
        started = installation.start(*args, env=halts | env)
        await _signal(started, reached, number, where)
    await _end(started, where)
    return started


async def stopped_on_terminal(installation: Installation, stage: Stage, *args: str) -> Process:
    """Do the same on its own terminal."""
    where, number = stage
    async with halting(installation, where) as (halts, reached):
        started, screen = installation.on_terminal(*args, env=halts | {"TERM": "xterm-256color"})
        reading = asyncio.create_task(asyncio.to_thread(_drain, screen, started.output))
        await _signal(started, reached, number, where)
    await _end(started, where)
    await reading
    return started


def _drain(screen: int, output: Path) -> None:
    """Store the output of a terminal until it closes."""
    with output.open("ab") as file:
        try:
            while part := os.read(screen, 65536):
                file.write(part)
        except OSError:  # no process holds the other end
            pass
        finally:
            os.close(screen)


async def _signal(
    started: Process, reached: asyncio.Event, number: signal.Signals, where: str
) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            await reached.wait()
    except TimeoutError:
        pytest.fail(f"{where} was not reached: {started.output_text}")
    started.signal(number)


async def _end(started: Process, where: str) -> None:
    try:
        await asyncio.to_thread(started.popen.wait, PATIENCE)
    except subprocess.TimeoutExpired:
        started.signal(signal.SIGABRT)  # it prints its stage
        started.popen.wait()
        pytest.fail(f"stopped at {where} it did not end: {started.output_text}")


def clean(ended: Sequence[Process], stages: Sequence[Stage], code: int = 0) -> None:
    """Check how each process ended, and that it printed no traceback."""
    for process, stage in zip(ended, stages, strict=True):
        assert process.popen.returncode == code, (
            stage,
            process.popen.returncode,
            process.output_text,
        )
        for part in ("Traceback", "ignored in", "never retrieved", "never awaited"):
            assert part not in process.output_text, (stage, process.output_text)


def ours(installation: Installation) -> list[str]:
    """Return the remaining processes of the installation."""
    commands = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if str(installation.config) in words:
            commands.append(words)
    return commands


async def test_a_worker(installation: Installation, rt: Runtime, choose: Choice) -> None:
    stages = choose(WORKER)
    ended = await asyncio.gather(*(stopped(installation, stage, "worker") for stage in stages))
    clean(ended, stages)
    assert await rt.read_model.workers() == []


async def test_a_bot(installation: Installation, choose: Choice) -> None:
    installation.configure(slack__api_url=NOWHERE, trello__api_url=NOWHERE)
    tokens = {"BOT": "xoxb-1", "APP": "xapp-1", "KEY": "0" * 32, "TOKEN": "0" * 64}
    names = ("slack.bot_token", "slack.app_token", "trello.key", "trello.token")
    with installation.config.open("a") as config:
        for key, name in zip(names, tokens, strict=True):
            config.write(f'{key} = {{ env = "{name}" }}\n')
    stages = choose(BOTS)
    ended = await asyncio.gather(
        *(
            stopped(installation, stage, "bots", stage[0].split(".")[1], **tokens)
            for stage in stages
        )
    )
    clean(ended, stages)


async def test_up_without_a_terminal(
    installation: Installation, rt: Runtime, choose: Choice
) -> None:
    args = ("--config", str(installation.config), "up", "--headless")
    stages = choose(UP)
    ended = await asyncio.gather(*(stopped(installation, stage, *args) for stage in stages))
    clean(ended, stages)
    assert ours(installation) == []
    assert await rt.read_model.workers() == []


async def test_up_on_a_terminal(installation: Installation, rt: Runtime, choose: Choice) -> None:
    args = ("--config", str(installation.config), "up")
    stages = choose(UP_ON_TERMINAL)
    ended = await asyncio.gather(
        *(stopped_on_terminal(installation, stage, *args) for stage in stages)
    )
    clean(ended, stages)
    assert ours(installation) == []
    assert await rt.read_model.workers() == []


async def test_the_dashboard(installation: Installation, choose: Choice) -> None:
    args = ("dashboard", "--web", "--port", "0")
    terminal = choose(DASHBOARD)
    web = choose(WEB)
    ended = await asyncio.gather(
        *(stopped_on_terminal(installation, stage, "dashboard") for stage in terminal),
        *(stopped(installation, stage, *args) for stage in web),
    )
    clean(ended, [*terminal, *web])


async def test_a_demo_is_interrupted(
    installation: Installation, rt: Runtime, tmp_path: Path, choose: Choice
) -> None:
    (tmp := tmp_path / "tmp").mkdir()
    args = ("--config", str(installation.config), "demo")
    stages = choose(DEMO)
    ended = await asyncio.gather(
        *(stopped(installation, stage, *args, TMPDIR=str(tmp)) for stage in stages)
    )
    clean(ended, stages, 130)
    assert {process.output_text.splitlines()[-1] for process in ended} == {"draftsman: interrupted"}
    jobs = await rt.read_model.jobs()
    submitting = [stage for stage in stages if stage in DEMO[1:]]
    assert [job.status for job in jobs] == [Status.CANCELED] * len(submitting)
    assert submitting
    assert ours(installation) == []
    assert list(tmp.iterdir()) == []


async def test_a_soak_is_interrupted(
    installation: Installation, folder: Path, choose: Choice
) -> None:
    """Its own server is stopped before it is created, and before it is started."""
    env = {"TMPDIR": str(folder), "DRAFTSMAN_DATABASE_URL": NOT_THERE}
    stages = choose(SOAK)
    ended = await asyncio.gather(*(stopped(installation, stage, "soak", **env) for stage in stages))
    clean(ended, stages, 130)
    assert left(folder) == []
    assert list(folder.iterdir()) == []


async def test_other_commands_end_by_the_signal(
    installation: Installation, rt: Runtime, choose: Choice
) -> None:
    for stage in choose(WAIT, 2):
        ended = await stopped(installation, stage, "wait", "D-1")
        interrupted = stage[1] == INT
        clean([ended], [stage], 130 if interrupted else -TERM)
        assert not interrupted or ended.output_text == "draftsman: interrupted\n"
