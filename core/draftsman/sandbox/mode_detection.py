"""Detection of the strongest working sandbox mode, tested by attempts to escape."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from draftsman.errors import Failure
from draftsman.resources import module_command
from draftsman.sandbox import bwrap, confinement, container, landlock
from draftsman.sandbox.failed_modes import (
    NO_IMAGE,
    NOT_INSTALLED,
    NOT_ROOT,
    PROBE_TIMEOUT,
    PROBE_TOO_SLOW,
    TURN_OFF,
    FailedMode,
)
from draftsman.sandbox.sandbox_plan import RunSandbox, SandboxMode
from draftsman.settings.sandbox import SandboxSettings

KINDS: Final = ("bwrap", "landlock", "user", "container")
"""Kinds of sandboxes."""
PROBE_PREFIX: Final = "draftsman-probe-"
"""Prefix of a probe's folder, followed by the process id and a hyphen."""
PROBE: Final = """
import json, os, socket
outside, port, name, pid, home = json.loads(os.environ["DRAFTSMAN_PROBE"])
def attempt(action):
    try: action()
    except OSError: return False
    return True
def connect(family, address):
    with socket.socket(family) as client:
        client.settimeout(1); client.connect(address)
print(json.dumps({
    "a file outside the sandbox can be read": attempt(lambda: open(outside).read()),
    "a file outside the sandbox can be written": attempt(lambda: open(outside, "a").close()),
    "a TCP port of the host can be reached": attempt(
        lambda: connect(socket.AF_INET, ("127.0.0.1", port))),
    "an abstract socket of the host can be reached": attempt(
        lambda: connect(socket.AF_UNIX, "\\0" + name)),
    "a process outside the sandbox can be signaled": attempt(lambda: os.kill(pid, 0)),
    "the program runs as root": os.getuid() == 0,
    "the home folder cannot be written": not attempt(lambda: open(home + "/.probe", "w").close()),
}))
"""

_log = logging.getLogger(__name__)
_detected: dict[SandboxSettings, SandboxMode] = {}


async def detect_mode(settings: SandboxSettings) -> SandboxMode:
    """Return the mode for these settings, cached in this process unless a probe timed out.

    Raises Failure `no_sandbox` if the configured mode, or every mode under `auto`, does not work.
    """
    if settings not in _detected:
        mode = await asyncio.to_thread(choose_mode, settings)
        if mode.cacheable:
            _detected[settings] = mode
        if mode.weaker:
            reasons = "; ".join(map(str, mode.weaker))
            _log.warning("using sandbox mode %s; stronger modes failed: %s", mode.mode, reasons)
        return mode
    return _detected[settings]


def choose_mode(settings: SandboxSettings) -> SandboxMode:
    """Return the strongest working mode that the settings allow; raises Failure."""
    if settings.mode == "off":
        return SandboxMode("off", settings)
    failures: list[FailedMode] = []
    for mode, program in _candidates(settings, settings.mode):
        problem = find_escape(settings, mode, program)
        if problem is None:
            cacheable = not any(PROBE_TOO_SLOW in failed.problem for failed in failures)
            return SandboxMode(mode, settings, program, tuple(failures), cacheable)
        failures.append(FailedMode(mode, problem))
    reasons = "; ".join(map(str, failures)) or f"no sandbox mode supports {sys.platform}"
    remedies = list(dict.fromkeys(failed.remedy for failed in failures))
    if settings.mode == "auto":
        what = "no sandbox mode works on this machine"
        remedies.append(TURN_OFF)
    else:
        what = f'[sandbox] mode "{settings.mode}" does not work here'
    text = f"{what} ({reasons}); {'; or '.join(remedies)}".removesuffix("; ")
    raise Failure(text, origin="handler", code="no_sandbox", declared="TRANSIENT_INFRA")


def available_kinds(
    settings: SandboxSettings, probed: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Return each kind of sandbox with the reason why it does not work here; None if it works.

    The `probed` kinds are not probed again.
    """
    kinds: dict[str, str | None] = {}
    for kind in KINDS:
        if kind in probed:
            kinds[kind] = probed[kind]
            continue
        problem: str | None = f"not supported on {sys.platform}"
        for mode, program in _candidates(settings, kind):
            problem = find_escape(settings, mode, program)
            if problem is None:
                break
        kinds[kind] = problem
    return kinds


def _candidates(settings: SandboxSettings, mode: str) -> list[tuple[str, str | None]]:
    if sys.platform != "linux":
        return []
    candidates: list[tuple[str, str | None]] = []
    if mode in ("auto", "bwrap"):
        candidates += [("bwrap", program) for program in bwrap.programs()] or [("bwrap", None)]
    if mode in ("auto", "landlock"):
        candidates.append(("landlock", None))
    if mode == "user":
        candidates.append(("user", None))
    if mode == "container":
        candidates.append(("container", container.find_engine(settings)))
    return candidates


def find_escape(settings: SandboxSettings, mode: str, program: str | None) -> str | None:
    """Probe a mode; return the escape that succeeded, or the error; None if the mode works."""
    if mode == "bwrap" and program is None:
        return NOT_INSTALLED
    if mode == "landlock" and (reason := landlock.problem()) is not None:
        return reason
    if mode == "user" and os.geteuid() != 0:
        return NOT_ROOT
    if mode == "container":
        if settings.image is None:
            return NO_IMAGE
        if program is None:
            return f"{settings.engine or 'podman or docker'} is not installed"
        container.remove_stale(program)
    with probe_folder() as folder:
        outside = folder / "outside"
        home = folder / "home"
        outside.write_text("outside")
        # without Landlock a separate user reads what every user of this host can read
        private = mode == "user" and landlock.abi() < landlock.OLDEST_ABI
        outside.chmod(0o600 if private else 0o666)
        with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract:
            tcp.bind(("127.0.0.1", 0))
            abstract.bind(f"\0draftsman-probe-{folder.name}")
            for server in (tcp, abstract):
                server.listen()
            target = [str(outside), tcp.getsockname()[1], abstract.getsockname()[1:].decode()]
            result = _run_escape_probe(settings, mode, program, home, [*target, os.getpid()])
    if isinstance(result, str):
        return result
    return next((name for name, succeeded in result.items() if succeeded), None)


@contextlib.contextmanager
def probe_folder() -> Iterator[Path]:
    """Yield a new folder with a `home` in it that programs of runs can write to."""
    _delete_stale()
    with tempfile.TemporaryDirectory(prefix=f"{PROBE_PREFIX}{os.getpid()}-") as name:
        folder = Path(name)
        home = folder / "home"
        home.mkdir()
        if os.geteuid() == 0:
            folder.chmod(0o711)
            home.chmod(0o777)
        yield folder


def _delete_stale() -> None:
    """Delete the folders of killed probes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PROBE_PREFIX}*-*"):
        pid = folder.name.removeprefix(PROBE_PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _run_escape_probe(
    settings: SandboxSettings, mode: str, program: str | None, home: Path, target: list[Any]
) -> dict[str, bool] | str:
    run_sandbox = probe_sandbox(SandboxMode(mode, settings, program), home)
    python = run_sandbox.sandbox.python
    try:
        completed = run_probe(
            run_sandbox.plan([python], home, network=False),
            [python, "-I", "-S", "-c", PROBE],
            {"DRAFTSMAN_PROBE": json.dumps([*target, run_sandbox.sandbox_path(home)])},
        )
    except subprocess.TimeoutExpired:
        return PROBE_TOO_SLOW
    except OSError as error:
        return str(error)
    try:
        results = json.loads(completed.stdout)
    except ValueError:
        line = container.error_of(completed.stderr)
        return line[:200] if line else f"the probe exited with code {completed.returncode}"
    return {str(name): bool(succeeded) for name, succeeded in results.items()}


def probe_sandbox(sandbox: SandboxMode, home: Path) -> RunSandbox:
    """Return a sandbox without a repository; as root, its user id is after those of runs."""
    settings = sandbox.settings
    uid = settings.first_uid + settings.uid_count if os.geteuid() == 0 else None
    return RunSandbox(sandbox, None, home, uid)


def run_probe(
    plan: Mapping[str, Any],
    command: Sequence[str],
    environment: Mapping[str, str],
    timeout: float = PROBE_TIMEOUT,
) -> subprocess.CompletedProcess[str]:
    """Run a short command in a sandbox plan; raises OSError, TimeoutExpired."""
    confined = [*module_command(confinement.__name__), confinement.encode(dict(plan)), *command]
    with subprocess.Popen(
        confined,
        env={confinement.ENVIRONMENT: confinement.encode(dict(environment))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(confined, process.returncode, output, errors)
