"""Real draftsman processes for tests, to start and kill."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import pwd
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from draftsman_testing.waits import until
from tests.core.worker.agent_jobs import PRELUDE
from tests.support.fork_server import CONTROLLING_TERMINAL, children

COMMAND = (sys.executable, "-m", "draftsman_tui")
DEADLINE = 30.0
"""Seconds after which a running process is stuck."""
ROLES = ["invoker", "responder", "approver", "operator"]


@dataclass
class Process:
    """A running command whose output goes to a file."""

    popen: subprocess.Popen[bytes]
    output: Path

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def output_text(self) -> str:
        """The output so far, of both streams."""
        return self.output.read_text(errors="replace")

    async def says(self, part: str) -> None:
        """Wait until the output contains a text."""

        async def look() -> bool:
            return part in self.output_text

        await until(look, f"{part!r} of {self.output.name}")

    async def end(self) -> int:
        """Wait for the exit; return the exit code."""
        return await asyncio.to_thread(self.popen.wait, DEADLINE)

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def children(self) -> list[int]:
        """Return the pids of its child processes."""
        return [child.pid for child in children(self.pid)]


class Installation:
    """A configuration, a data folder, and the processes that use them."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.config = folder / "draftsman.toml"
        self._url = url
        self._started: list[Process] = []
        path = os.pathsep.join([str(folder), *(str(Path(entry).absolute()) for entry in sys.path)])
        self._env = {
            **os.environ,
            "PYTHONPATH": path,
            "DRAFTSMAN_DATA_DIR": str(self.data),
            "DRAFTSMAN_CONFIG": str(self.config),
        }
        if url is not None:
            self._env["DRAFTSMAN_DATABASE_URL"] = url
        folder.mkdir(exist_ok=True)
        self.configure()

    def configure(self, agent: str | None = None, **settings: Any) -> None:
        """Write the configuration: keys with `__` for dots; `agent` is the code of an agent."""
        me = pwd.getpwuid(os.getuid()).pw_name
        values: dict[str, Any] = {"people.me.login": me, "people.me.roles": ROLES}
        if agent is not None:
            values["agents.test.command"] = ["{python}", "-I", "-S", "-c", PRELUDE + agent]
        values |= {key.replace("__", "."): value for key, value in settings.items()}
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        self.config.write_text("\n".join(lines) + "\n")

    def environment(self, **env: str) -> dict[str, str]:
        """Return the environment of its processes."""
        return self._env | env

    def start(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        through: Sequence[str] = (),
        **options: Any,
    ) -> Process:
        """Start a command, through another program if given."""
        output = self.folder / f"{len(self._started)}-{args[0]}.log"
        with output.open("wb") as file:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file}
            popen: subprocess.Popen[bytes] = subprocess.Popen(
                [*through, *COMMAND, *args],
                env=self._env | dict(env or {}),
                cwd=self.folder,
                **streams | options,
            )
        self._started.append(Process(popen, output))
        return self._started[-1]

    def on_terminal(self, *args: str, env: Mapping[str, str]) -> tuple[Process, int]:
        """Start a command on its own terminal; return the other end of the terminal, too."""
        screen, end = pty.openpty()
        streams = {"stdin": end, "stdout": end, "stderr": end, "start_new_session": True}
        through = (sys.executable, "-c", CONTROLLING_TERMINAL)
        try:
            return self.start(*args, env=env, through=through, **streams), screen
        finally:
            os.close(end)

    async def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with pipes as streams."""
        return await asyncio.to_thread(
            subprocess.run,
            [*COMMAND, *args],
            env=self._env | env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )

    def close(self) -> None:
        """Kill running processes, also orphans."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if self._is_ours(process):
                    process.kill()
        for started in self._started:
            started.popen.wait(DEADLINE)

    def _is_ours(self, process: psutil.Process) -> bool:
        """Return whether the process was started by us, or by our supervisor.

        The environment of our own processes is not readable for an ordinary user; that of their
        children is.
        """
        if process.pid in (pids := [started.pid for started in self._started]):
            return True
        above = [f"--parent\0{pid}\0" for pid in pids]
        command = "".join(f"{part}\0" for part in process.cmdline())
        if any(part in command for part in above):
            return True
        return bool(process.environ().get("DRAFTSMAN_DATA_DIR") == str(self.data))


def lines(text: str, part: str) -> list[str]:
    """Return the lines that contain a text."""
    return [line for line in text.splitlines() if part in line]
