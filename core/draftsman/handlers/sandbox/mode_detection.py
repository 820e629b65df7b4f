"""The mode of the sandbox that holds here, proved by attempts to escape from it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import Failure
from draftsman.handlers.sandbox import bwrap, landlock
from draftsman.handlers.sandbox.confinement import ENVIRONMENT
from draftsman.settings import SandboxSettings

if TYPE_CHECKING:
    from draftsman.handlers.sandbox.run_sandbox import RunSandbox

START: Final = "import sys; sys.path.insert(0, {root!r}); from {module} import main; "
"""Starts a module of draftsman without its packages: in milliseconds."""
PROBE_PREFIX: Final = "draftsman-probe-"
"""Begins the name of a probe's folder, followed by the process id and a hyphen."""
PROBE_TIMEOUT: Final = 20.0
"""Seconds for one attempt; a machine under load is slow, not unsafe."""
PROBE_TOO_SLOW: Final = f"it took more than {PROBE_TIMEOUT:g} s; the machine is busy"
PROBE: Final = """
import json, os, socket
outside, port, name, pid = json.loads(os.environ["DRAFTSMAN_PROBE"])
def tries(what):
    try: what()
    except OSError: return False
    return True
def connect(family, address):
    with socket.socket(family) as it:
        it.settimeout(1); it.connect(address)
print(json.dumps({
    "a file outside can be read": tries(lambda: open(outside).read()),
    "a file outside can be written": tries(lambda: open(outside, "a").close()),
    "a TCP port of the host answers": tries(
        lambda: connect(socket.AF_INET, ("127.0.0.1", port))),
    "an abstract socket of the host answers": tries(
        lambda: connect(socket.AF_UNIX, "\\0" + name)),
    "processes outside can be signaled": tries(lambda: os.kill(pid, 0)),
    "it runs as root": os.getuid() == 0,
}))
"""
ALLOW_NAMESPACES: Final = (
    "allow user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04)"
    " or kernel.unprivileged_userns_clone=1 (Debian) or user.max_user_namespaces=15000; Docker:"
    " --security-opt seccomp=unconfined --security-opt systempaths=unconfined; Kubernetes:"
    " securityContext: {seccompProfile: {type: Unconfined}, procMount: Unmasked}"
)
ALLOW_SANDBOX: Final = (
    f"{ALLOW_NAMESPACES}; or use a kernel with Landlock ABI 6 (Linux 6.12); or, without any"
    ' confinement, set [sandbox] mode = "off"'
)


@dataclass(frozen=True, slots=True)
class SandboxMode:
    """A mode that holds, and why the stronger ones do not."""

    mode: str
    settings: SandboxSettings
    program: str | None = None
    """Path of bwrap."""
    weaker: tuple[str, ...] = ()
    """Why each stronger mode was not taken."""
    certain: bool = True
    """Whether no stronger mode ran out of time: on a machine under load it may hold later."""


_log = logging.getLogger(__name__)
_found: dict[SandboxSettings, SandboxMode] = {}


async def detect_mode(settings: SandboxSettings) -> SandboxMode:
    """Return the mode for these settings, probed once in this process unless a probe was too slow.

    Raises Failure `no_sandbox` where the mode asked for, or any under `auto`, does not hold.
    """
    if settings not in _found:
        found = await asyncio.to_thread(choose_mode, settings)
        if found.certain:
            _found[settings] = found
        if found.weaker:
            why = "; ".join(found.weaker)
            _log.warning("sandbox: %s, since a stronger one fails: %s", found.mode, why)
        return found
    return _found[settings]


def choose_mode(settings: SandboxSettings) -> SandboxMode:
    """Return the strongest mode that the settings allow and that holds; raises Failure."""
    if settings.mode == "off":
        return SandboxMode("off", settings)
    failed: list[str] = []
    for mode, program in _candidates(settings.mode):
        problem = escape(settings, mode, program)
        if problem is None:
            certain = not any(PROBE_TOO_SLOW in why for why in failed)
            return SandboxMode(mode, settings, program, tuple(failed), certain)
        failed.append(f"{mode}: {problem}")
    why = "; ".join(failed) or f"no mode of the sandbox is known for {sys.platform}"
    text = f"no sandbox holds here ({why}); {ALLOW_SANDBOX}"
    raise Failure(text, origin="handler", code="no_sandbox", declared="TRANSIENT_INFRA")


def _candidates(mode: str) -> list[tuple[str, str | None]]:
    if sys.platform != "linux":
        return []
    found: list[tuple[str, str | None]] = []
    if mode in ("auto", "bwrap"):
        found += [("bwrap", program) for program in bwrap.programs()]
    if mode in ("auto", "landlock"):
        found.append(("landlock", None))
    return found


def escape(settings: SandboxSettings, mode: str, program: str | None) -> str | None:
    """Try to get out of a mode; return what worked, or why it could not start; None: it holds."""
    if mode == "landlock" and (abi := landlock.abi()) < landlock.OLDEST_ABI:
        return f"this kernel has Landlock ABI {abi}, of {landlock.OLDEST_ABI} needed"
    with probe_folder() as folder:
        outside, home = folder / "outside", folder / "home"
        outside.write_text("outside")
        outside.chmod(0o666)
        with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract:
            tcp.bind(("127.0.0.1", 0))
            abstract.bind(f"\0draftsman-probe-{folder.name}")
            for one in (tcp, abstract):
                one.listen()
            target = [str(outside), tcp.getsockname()[1], abstract.getsockname()[1:].decode()]
            said = _attempt(settings, mode, program, home, [*target, os.getpid()])
    if isinstance(said, str):
        return said
    return next((name for name, worked in said.items() if worked), None)


@contextlib.contextmanager
def probe_folder() -> Iterator[Path]:
    """Yield a new folder with a `home` in it that the programs of a run may write to."""
    _clear_stale()
    with tempfile.TemporaryDirectory(prefix=f"{PROBE_PREFIX}{os.getpid()}-") as name:
        folder = Path(name)
        home = folder / "home"
        home.mkdir()
        if os.geteuid() == 0:
            folder.chmod(0o711)
            home.chmod(0o777)
        yield folder


def _clear_stale() -> None:
    """Delete the folders of probes whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PROBE_PREFIX}*-*"):
        pid = folder.name.removeprefix(PROBE_PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _attempt(
    settings: SandboxSettings, mode: str, program: str | None, home: Path, target: list[Any]
) -> dict[str, bool] | str:
    box = probe_sandbox(SandboxMode(mode, settings, program), home)
    probe = [sys.executable, "-I", "-S", "-c", PROBE]
    try:
        done = run_probe(
            box.plan([sys.executable], home, network=False),
            probe,
            {"DRAFTSMAN_PROBE": json.dumps(target)},
        )
    except subprocess.TimeoutExpired:
        return PROBE_TOO_SLOW
    except OSError as error:
        return str(error)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return lines[-1][:200] if lines else f"it ended with code {done.returncode}"
    return {str(name): bool(worked) for name, worked in found.items()}


def probe_sandbox(sandbox: SandboxMode, home: Path) -> RunSandbox:
    """Return a box without a repository, as root for the user id behind those of runs."""
    from draftsman.handlers.sandbox.run_sandbox import RunSandbox

    settings = sandbox.settings
    uid = settings.first_uid + settings.uids if os.geteuid() == 0 else None
    return RunSandbox(sandbox, None, home, uid)


def run_probe(
    plan: Mapping[str, Any], command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a short command as planned and return what it printed; raises OSError, TimeoutExpired."""
    start = START.format(
        root=str(bwrap.PACKAGE_ROOT), module="draftsman.handlers.sandbox.confinement"
    )
    first = [sys.executable, "-I", "-S", "-c", f"{start}main(sys.argv[1:])", json.dumps(plan)]
    return subprocess.run(
        [*first, *command],
        env={ENVIRONMENT: json.dumps(dict(environment))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PROBE_TIMEOUT,
        check=False,
    )
