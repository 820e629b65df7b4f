"""Runs a profile's commands in a clone: under guard, with a deadline and bounded output."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from draftsman.domain.repos.repo_profile import RepoProfile
from draftsman.errors import Failure
from draftsman.handlers.clone.workspace import Workspace
from draftsman.handlers.run_agent.quota_tracker import enforce_disk_quota
from draftsman.handlers.subprocesses.process import AgentProcess
from draftsman.settings import AgentSettings, CommandSettings, QuotaSettings, SetupSettings

KEPT_BYTES: Final = 2000
"""Bytes kept of the start of an output, and of its end."""
NOT_FOUND_EXIT: Final = 127
"""What a shell says of a program that it cannot find."""
QUIET_ENVIRONMENT: Final = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
SUMMARY_LINE: Final = re.compile(
    r"\b\d{1,9} \w{0,100}?(error|failed|failure|file|finding|issue|passed|problem)"
)
NO_MODULE: Final = re.compile(r"No module named '?([\w.]+)'?")

OnHeartbeat = Callable[[Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """One command that ran; `exit_code` is None when it took longer than it may."""

    name: str
    command: str
    exit_code: int | None
    seconds: float
    output: str
    required: bool = True
    missing: bool = False
    """Whether its program, or Python module, is not there: it says nothing about the tree."""

    @property
    def passed(self) -> bool:
        """Whether it exited with 0 in time."""
        return self.exit_code == 0

    @property
    def summary(self) -> str:
        """The line of the output that sums it up."""
        if self.exit_code is None:
            return f"stopped after {self.seconds:.0f} s"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        tallies = [line for line in lines if SUMMARY_LINE.search(line)]
        return (tallies or lines or [f"exit {self.exit_code}"])[-1][:200]

    def as_json(self) -> dict[str, Any]:
        """Return it as results and profiles carry it."""
        return {
            "name": self.name,
            "passed": self.passed,
            "required": self.required,
            "exit_code": self.exit_code,
            "duration_seconds": round(self.seconds, 3),
            "summary": self.summary,
        }

    def as_event(self) -> dict[str, Any]:
        """Return it as the trail carries it."""
        return self.as_json() | {"command": self.command, "output": self.output}


class BoundedOutput:
    """The start and the end of what a command writes."""

    def __init__(self) -> None:
        self._head, self._tail, self._size = b"", b"", 0

    def add(self, chunk: bytes) -> None:
        """Take in some more."""
        self._size += len(chunk)
        room = KEPT_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail = (self._tail + chunk[room:])[-KEPT_BYTES:]

    def text(self) -> str:
        """Return it, with a word where something is left out."""
        missing = self._size - len(self._head) - len(self._tail)
        gap = f"\n… {missing:,} bytes …\n".encode() if missing else b""
        return (self._head + gap + self._tail).decode(errors="replace").replace("\0", "")


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs commands of one profile in one clone.

    `on_beat` is told what to call while the lease holds; without it a command lives as long as
    its own time-out.
    """

    space: Workspace
    path: str
    env: Mapping[str, str]
    lease: float
    on_heartbeat: OnHeartbeat | None = None
    network: bool = False
    """Whether set-up commands may use the network; what checks an agent's work never may."""
    quotas: QuotaSettings = field(default_factory=QuotaSettings)

    @classmethod
    def of(
        cls,
        space: Workspace,
        profile: RepoProfile,
        lease: float,
        on_beat: OnHeartbeat | None = None,
        quotas: QuotaSettings | None = None,
    ) -> CommandRunner:
        """Return what runs the commands of a profile; raises Failure where its folder is not."""
        folder = (space.path / profile.path).resolve()
        if not folder.is_dir() or not folder.is_relative_to(space.path.resolve()):
            text = f"the repository has no folder {profile.path!r}; correct its profile"
            raise Failure(text, origin="agent", code="no_folder", declared="PERMANENT")
        quotas = quotas or QuotaSettings()
        return cls(space, profile.path, profile.env, lease, on_beat, profile.network, quotas)

    async def run_all(
        self, commands: Iterable[CommandSettings | SetupSettings]
    ) -> list[CommandResult]:
        """Run one after the other, whatever they say."""
        return [await self.run(command) for command in commands]

    async def run(self, settings: CommandSettings | SetupSettings) -> CommandResult:
        """Run a command.

        Raises Failure `environment` for a variable that is not allowed, `quota:disk`.
        """
        clock = asyncio.get_running_loop().time
        began, output = clock(), BoundedOutput()
        try:
            code = await self._run(settings, output)
        except Failure as error:
            if error.code != "command_not_found":
                raise
            output.add(str(error).encode())
            code = NOT_FOUND_EXIT
        text = output.text()
        missing = code in {NOT_FOUND_EXIT, 126} or (
            code == 1 and _lacks_module(settings.command, text)
        )
        required = getattr(settings, "required", True)
        seconds = clock() - began
        shown = shlex.join(settings.command)
        return CommandResult(settings.name, shown, code, seconds, text, required, missing)

    async def _run(
        self, settings: CommandSettings | SetupSettings, output: BoundedOutput
    ) -> int | None:
        folder = self.space.path / self.path
        program = AgentSettings(
            command=_located(settings.command, folder),
            env={**QUIET_ENVIRONMENT, **self.env},
            network=self.network and isinstance(settings, SetupSettings),
        )

        async def on_stderr(chunk: bytes) -> None:
            output.add(chunk)

        lease = self.lease if self.on_heartbeat else settings.timeout + self.lease
        async with await AgentProcess.start(
            program,
            cwd=folder,
            home=self.space.home,
            lease=lease,
            on_stderr=on_stderr,
            box=self.space.box,
        ) as process:
            if self.on_heartbeat is not None:
                self.on_heartbeat(process.heartbeat)
            process.close_input()
            try:
                async with (
                    enforce_disk_quota(process, self.space.folder, self.quotas),
                    asyncio.timeout(settings.timeout),
                ):
                    async for chunk in process.chunks():
                        output.add(chunk)
                    return await process.wait()
            except TimeoutError:
                return None


def _located(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return the command; a program of the repository, such as ./gradlew, is looked for there."""
    program = command[0]
    if "/" not in program or program.startswith("/"):
        return command
    return (str(folder / program), *command[1:])


def _lacks_module(command: tuple[str, ...], output: str) -> bool:
    found = NO_MODULE.search(output)
    after = command[command.index("-m") + 1 :] if "-m" in command else ()
    return bool(found and after and found[1].partition(".")[0] == after[0].partition(".")[0])
