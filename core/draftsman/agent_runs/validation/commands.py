"""Commands of a profile, run in a clone with a timeout and limited output."""

from __future__ import annotations

import asyncio
import re
import secrets
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from draftsman.agent_runs.agent_choice import profile_network
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.session.quota_tracker import enforce_disk_quota
from draftsman.agent_runs.validation.test_reports import count_tests
from draftsman.errors import Failure
from draftsman.jobs.retries import BUILT_IN
from draftsman.repos.check_files import module_of
from draftsman.repos.command_exits import error_exits
from draftsman.repos.repo_profile import RepoProfile
from draftsman.sandbox.network_proxy.access import open_network_proxy
from draftsman.sandbox.processes.process import AgentProcess
from draftsman.settings import Settings
from draftsman.settings.agents import AgentSettings
from draftsman.settings.http import HttpSettings
from draftsman.settings.profiles import (
    REPORT,
    CommandSettings,
    SetupSettings,
    without_report,
)
from draftsman.settings.quotas import QuotaSettings

KEPT_BYTES: Final = 2000
"""Bytes stored of the start, and of the end, of an output."""
NOT_FOUND_EXIT: Final = 127
"""Exit code of a shell for a program that it cannot find."""
FIND_PROGRAM: Final = 'command -v -- "$1" >/dev/null'
"""Fails for a program that the sandbox does not have."""
SETUP_SETTING: Final = "network of the repository's profile, or to a group in [networks]"
"""Where the hosts of setup commands are listed."""
QUIET_ENVIRONMENT: Final = {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
SUMMARY_LINE: Final = re.compile(
    r"\b\d{1,9} \w{0,100}?(error|failed|failure|file|finding|issue|passed|problem)"
)
RUN_MODULE: Final = """\
import sys
sys.path[:] = filter(None, sys.path)
import os, runpy
sys.argv = sys.argv[1:]
module = sys.argv[0]
try:
    __import__(module.partition(".")[0])
except ImportError:
    pass
sys.path.insert(0, os.getcwd())
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""Runs a module as `python -m`, which is looked for before the tree is on the path."""
MAX_REPORTS: Final = 2000
"""Maximum number of reports of a command that are read."""
MAX_REASON: Final = 500
"""Characters of the output of a command that could not run."""
EXCERPT: Final = re.compile(r"\s*\d*\s*\|")
"""Begins a line of an excerpt of a file, after which the reason follows."""
NO_MODULE: Final = re.compile(r"No module named '?([\w.]+)'?")

OnHeartbeat = Callable[[Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command; `exit_code` is None after a timeout."""

    name: str
    command: str
    exit_code: int | None
    seconds: float
    output: str
    required: bool = True
    missing: bool = False
    """Whether its program or Python module is not installed, so that it checked nothing."""
    unusable: bool = False
    """Whether it could not run by its exit code, so that it checked nothing."""
    tests: int | None = None
    """Tests that its report has run; None without a report."""
    at: str = ""
    """Time of its end by the worker's clock, in ISO 8601."""

    @property
    def passed(self) -> bool:
        """Whether it exited with 0 in time."""
        return self.exit_code == 0

    @property
    def checked(self) -> bool:
        """Whether it ran at all."""
        return not (self.missing or self.unusable)

    @property
    def summary(self) -> str:
        """The line of the output that summarizes it, or why it could not run."""
        if self.exit_code is None:
            return f"stopped after {self.seconds:.0f} s"
        if self.unusable:
            return f"could not run (exit {self.exit_code}): {_reason(self.output)}"
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        tallies = [line for line in lines if SUMMARY_LINE.search(line)]
        return (tallies or lines or [f"exit {self.exit_code}"])[-1][:200]

    def with_output(self, output: str, exit_code: int | None = None) -> CommandResult:
        """Return the result with another output, and another exit code if it is not None."""
        code = self.exit_code if exit_code is None else exit_code
        return replace(self, output=output, exit_code=code)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for results and profiles."""
        return {
            "name": self.name,
            "passed": self.passed,
            "required": self.required,
            "exit_code": self.exit_code,
            "duration_seconds": round(self.seconds, 3),
            "summary": self.summary,
        } | ({} if self.tests is None else {"tests": self.tests})

    def as_event(self) -> dict[str, Any]:
        """Return the payload for events."""
        return self.as_json() | {"command": self.command, "output": self.output}


class BoundedOutput:
    """The start and the end of a command's output."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Append a chunk."""
        self._size += len(chunk)
        remaining = KEPT_BYTES - len(self._head)
        self._head += chunk[:remaining]
        self._tail = (self._tail + chunk[remaining:])[-KEPT_BYTES:]

    def text(self) -> str:
        """Return the text, with a mark for omitted bytes."""
        omitted = self._size - len(self._head) - len(self._tail)
        mark = f"\n… {omitted:,} bytes omitted …\n".encode() if omitted else b""
        return (self._head + mark + self._tail).decode(errors="replace").replace("\0", "")


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs the commands of a profile in a clone.

    `on_heartbeat` registers a callback that renews the lease of a command's process; without it
    only the command's own timeout applies.
    """

    workspace: Workspace
    path: str
    env: Mapping[str, str]
    lease: float
    on_heartbeat: OnHeartbeat | None = None
    network: bool | tuple[str, ...] = False
    """Network of the setup commands, without groups; validation commands have none."""
    quotas: QuotaSettings = field(default_factory=QuotaSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    log: Callable[[str], None] | None = None
    """Gets lines about the hosts of setup commands."""

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        profile: RepoProfile,
        settings: Settings,
        on_heartbeat: OnHeartbeat | None = None,
        log: Callable[[str], None] | None = None,
    ) -> CommandRunner:
        """Return the runner of a profile.

        Raises Failure if its folder does not exist, or if its network has an unknown group.
        """
        folder = (workspace.path / profile.path).resolve()
        if not folder.is_dir() or not folder.is_relative_to(workspace.path.resolve()):
            text = f"the repository has no folder {profile.path!r}; correct its profile"
            raise Failure(text, origin="agent", code="no_folder", declared="PERMANENT")
        return cls(
            workspace=workspace,
            path=profile.path,
            env=profile.env,
            lease=settings.worker.stop_after,
            on_heartbeat=on_heartbeat,
            network=profile_network(settings, profile),
            quotas=settings.quotas,
            http=settings.http,
            log=log,
        )

    async def run_all(
        self, commands: Iterable[CommandSettings | SetupSettings]
    ) -> list[CommandResult]:
        """Run all commands in order, even after failures."""
        return [await self.run(command) for command in commands]

    async def run(self, settings: CommandSettings | SetupSettings) -> CommandResult:
        """Run a command.

        Raises Failure `environment` for a variable that is not allowed, `quota:disk`.
        """
        clock = asyncio.get_running_loop().time
        started = clock()
        output = BoundedOutput()
        report = self.workspace.home / f"tests-{secrets.token_hex(8)}"
        try:
            code = await self._run(settings, output, report)
        except Failure as error:
            if error.code != "command_not_found":
                raise
            output.add(str(error).encode())
            code = NOT_FOUND_EXIT
            missing = not _is_of_repository(settings.command)
        else:
            missing = await self._is_missing(settings, code, output.text())
        return CommandResult(
            name=settings.name,
            command=shlex.join(without_report(settings.command)),
            exit_code=code,
            seconds=clock() - started,
            output=output.text(),
            required=getattr(settings, "required", True),
            missing=missing,
            unusable=code in (settings.error_exits or error_exits(settings.command)),
            tests=await self._count_tests(settings, report),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    async def _count_tests(
        self, settings: CommandSettings | SetupSettings, report: Path
    ) -> int | None:
        """Return how many tests ran by the reports of a command; 0 if it wrote none."""
        if isinstance(settings, SetupSettings):
            return None
        if any(REPORT in word for word in settings.command):
            paths = [report]
        elif settings.report:
            paths = await asyncio.to_thread(self._find, settings.report)
        else:
            return None
        count = 0
        for path in paths[:MAX_REPORTS]:
            with suppress(Failure):
                data = await self.workspace.read_artifact(str(path))
                count += await asyncio.to_thread(count_tests, data)
        return count

    def _find(self, pattern: str) -> list[Path]:
        return sorted((self.workspace.path / self.path).glob(pattern))

    async def _is_missing(
        self, settings: CommandSettings | SetupSettings, code: int | None, text: str
    ) -> bool:
        """Return whether a command that ended has no program, or no module, on this host.

        A command that exists may exit with the same codes, for example because of a script that
        the work deleted.
        """
        if code == 1:
            return missing_module(settings.command, text) is not None
        if code not in {NOT_FOUND_EXIT, 126}:
            return False
        find = ("/bin/sh", "-c", FIND_PROGRAM, "sh", settings.command[0])
        probe = CommandSettings(name=settings.name, command=find, timeout=settings.timeout)
        return await self._run(probe, BoundedOutput()) != 0

    async def _run(
        self,
        settings: CommandSettings | SetupSettings,
        output: BoundedOutput,
        report: Path | None = None,
    ) -> int | None:
        """Run a command; `report` is the file of `{report}`, which is outside of the tree."""
        folder = self.workspace.path / self.path
        sandbox = self.workspace.sandbox
        words = settings.command
        if report is not None:
            inside = str(report) if sandbox is None else sandbox.sandbox_path(report.resolve())
            words = tuple(word.replace(REPORT, inside) for word in words)
        program = AgentSettings(
            command=_resolve_program(run_module(words), folder),
            env={**QUIET_ENVIRONMENT, **self.env},
            network=self.network if isinstance(settings, SetupSettings) else False,
        )

        async def on_stderr(chunk: bytes) -> None:
            output.add(chunk)

        def on_network(line: str) -> None:
            output.add(f"{line}\n".encode())
            if self.log is not None:
                self.log(line)

        lease = self.lease if self.on_heartbeat else settings.timeout + self.lease
        async with (
            open_network_proxy(
                http=self.http,
                network=program.network,
                sandbox=sandbox,
                limits=BUILT_IN["run_agent"].nested(),
                setting=SETUP_SETTING,
                log=on_network,
            ) as proxy,
            await AgentProcess.start(
                program,
                cwd=folder,
                home=self.workspace.home,
                lease=lease,
                on_stderr=on_stderr,
                sandbox=sandbox,
                proxy=proxy,
            ) as process,
        ):
            if self.on_heartbeat is not None:
                self.on_heartbeat(process.heartbeat)
            process.close_input()
            try:
                async with (
                    enforce_disk_quota(process, self.workspace.folder, self.quotas),
                    asyncio.timeout(settings.timeout),
                ):
                    async for chunk in process.chunks():
                        output.add(chunk)
                    return await process.wait()
            except TimeoutError:
                return None


def _reason(output: str) -> str:
    """Return an output in one line, without excerpts of files; a long one without its middle."""
    lines = [line.strip() for line in output.splitlines() if not EXCERPT.match(line)]
    text = "; ".join(filter(None, lines)) or "no output"
    return text if len(text) <= MAX_REASON else f"{text[:300]} … {text[-200:]}"


def run_module(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command `python -m MODULE` so that the tree cannot hide the module."""
    module = module_of(command)
    if module is None:
        return command
    place = command.index("-m")
    if not {"-I", "-P"}.isdisjoint(command[:place]):
        return command  # the tree is not on its path at all
    return (*command[:place], "-c", RUN_MODULE, *command[place + 1 :])


def _resolve_program(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return the command with the absolute path of a program of the repository, as ./gradlew."""
    program = command[0]
    if "/" not in program or program.startswith("/"):
        return command
    return (str(folder / program), *command[1:])


def _is_of_repository(command: tuple[str, ...]) -> bool:
    """Return whether the program is a file of the repository, which its work may delete."""
    return "/" in command[0] and not command[0].startswith("/")


def missing_module(command: tuple[str, ...], output: str) -> str | None:
    """Return the top module of `python -m` that the output reports as missing; None if none is."""
    match = NO_MODULE.search(output)
    arguments = command[command.index("-m") + 1 :] if "-m" in command else ()
    module = arguments[0].partition(".")[0] if arguments else ""
    return module if match and match[1].partition(".")[0] == module else None
