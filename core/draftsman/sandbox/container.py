"""Command lines of a container engine: podman or docker."""

from __future__ import annotations

import hashlib
import os
import re
import resource
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from draftsman import plugins
from draftsman.resources import PACKAGE_ROOT, run_module_code
from draftsman.sandbox import container_init
from draftsman.sandbox.bwrap import Mount
from draftsman.settings.sandbox import SandboxSettings

PYTHON: Final = "python3"
"""The interpreter of the image, on its PATH."""
PACKAGES: Final = "/opt/draftsman"
"""Folder inside, from which the image's Python imports draftsman's adapters."""
ENGINES: Final = ("podman", "docker")
ENGINE_ENVIRONMENT: Final = (
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
)
"""Variables of the worker that an engine needs; none of them is passed into the container."""
PREFIX: Final = "draftsman-"
"""Prefix of a container's name, followed by the process id of its worker, and when that started."""
_NAME: Final = re.compile(
    rf"{PREFIX}(?P<pid>\d+)-(?P<start>\d+)-[0-9a-f]+-(?P<place>[0-9a-f]{{8}})"
)
COMMAND_TIMEOUT: Final = 30.0
REMOVAL_CHECK: Final = 0.1


def find_engine(settings: SandboxSettings, path: str | None = None) -> str | None:
    """Return the path of the configured engine, else of the first that is installed."""
    names = ENGINES if settings.engine is None else (settings.engine,)
    return next((program for name in names if (program := shutil.which(name, path=path))), None)


def new_name() -> str:
    """Return a new name for a container of this process."""
    return f"{PREFIX}{os.getpid()}-{_start_of(os.getpid())}-{secrets.token_hex(8)}-{_place()}"


def mounts(settings: SandboxSettings, folders: Sequence[tuple[str, Path, str]]) -> list[Mount]:
    """Return the bind mounts: the adapters, `read_only`, and the run's own folders."""
    packages = [PACKAGE_ROOT / "draftsman", *plugins.foreign_packages(plugins.AGENTS)]
    result: list[Mount] = [("ro", str(path), f"{PACKAGES}/{path.name}") for path in packages]
    result += [("ro", str(path.resolve()), str(path)) for path in settings.read_only]
    return result + [(kind, str(source), inside) for kind, source, inside in folders]


def engine_plan(
    settings: SandboxSettings, engine: str, uid: int | None, open_files: int | None = None
) -> dict[str, Any]:
    """Return the part of a plan that names the engine, the image and the container."""
    name = new_name()
    docker = is_docker(engine)
    if open_files is None:
        open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return {
        "control": str(Path(tempfile.gettempdir(), name)),
        "engine": engine,
        "engine_environment": {
            variable: os.environ[variable]
            for variable in ENGINE_ENVIRONMENT
            if variable in os.environ
        },
        "image": settings.image,
        "name": name,
        "user": f"{os.geteuid()}:{os.getegid()}" if uid is None else f"{uid}:{uid}",
        "open_files": open_files,
        "freeze": [engine, "pause", name] if docker else [],
        "thaw": [engine, "unpause", name] if docker else [],
    }


def run_arguments(plan: Mapping[str, Any]) -> list[str]:
    """Return the command that starts a container by a plan.

    The program and its environment are not part of it, since an engine stores its command line:
    `container_init` gets them through the socket in the folder `control`.

    The processes of a container of docker are children of its daemon, so that cgroups limit them;
    those of podman inherit limits, which need no cgroups. The limit of a process's memory refuses
    an allocation, before the limit of the container would kill.
    """
    docker = is_docker(plan["engine"])
    arguments = [plan["engine"], "run", "--rm", "--interactive", "--pull=never", "--read-only"]
    arguments += [f"--name={plan['name']}", f"--user={plan['user']}", "--hostname=draftsman"]
    arguments += ["--cap-drop=all", "--security-opt=no-new-privileges"]
    arguments += ["--security-opt=label=disable", "--log-driver=none"]
    if not plan["network"]:
        arguments.append("--network=none")
    limits = {"core": 0, "fsize": plan["file_size"], "nofile": plan["open_files"]}
    limits |= {"data": plan["memory"]}
    if docker:
        memory = plan["memory"]
        arguments += [f"--memory={memory}", f"--memory-swap={memory}"]
        arguments.append(f"--pids-limit={plan['processes']}")
    else:
        limits |= {"nproc": plan["processes"]}
        arguments += ["--cgroups=disabled", "--read-only-tmpfs=false"]
        if plan["uid"] is None:
            arguments.append("--userns=keep-id")
    arguments += [f"--ulimit={name}={limit}:{limit}" for name, limit in limits.items()]
    arguments += [f"--tmpfs=/tmp:rw,nosuid,nodev,exec,mode=1777,size={plan['tmp']}"]
    arguments.append(f"--shm-size={plan['tmp']}")
    for kind, source, inside in [*plan["mounts"], ("ro", plan["control"], container_init.CONTROL)]:
        access = ",readonly" if kind == "ro" else ""
        arguments.append(
            f"--mount={_field('type=bind')},{_field(f'source={source}')}"
            f",{_field(f'target={inside}')}{access}"
        )
    code = run_module_code(container_init.__name__, PACKAGES)
    arguments += [f"--workdir={plan['chdir']}", f"--entrypoint={PYTHON}", plan["image"]]
    return [*arguments, "-I", "-S", "-c", code]


def is_docker(engine: str) -> bool:
    """Return whether the engine has the command line and the daemon of docker."""
    return Path(engine).name == "docker"


def remove(plan: Mapping[str, Any]) -> None:
    """Remove the container of a plan with its processes, if it is still there."""
    _remove(plan["engine"], plan["name"])


def error_of(stderr: str) -> str | None:
    """Return the last line of an engine's standard error that is no reference to its help."""
    lines = [line for line in stderr.splitlines() if line.strip() and "--help'" not in line]
    return lines[-1].strip() if lines else None


def remove_stale(engine: str) -> None:
    """Remove the containers of workers that have ended."""
    listing = _engine(engine, "ps", "--all", "--format={{.Names}}", f"--filter=name={PREFIX}")
    for name in listing.split():
        if is_stale(name):
            _remove(engine, name)


def is_stale(name: str) -> bool:
    """Return whether this is the name of a container whose worker has ended.

    Process ids are used again, so the worker is that which started at the same time.
    Those of workers on other hosts, or in other containers, are not visible here.
    """
    match = _NAME.fullmatch(name)
    if match is None or match["place"] != _place():
        return False
    return _start_of(int(match["pid"])) != match["start"]


@cache
def _place() -> str:
    """Return a digest of this host and its namespace of process ids."""
    link = Path("/proc/self/ns/pid")
    identity = f"{os.uname().nodename} {link.readlink() if link.is_symlink() else ''}"
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def _start_of(pid: int) -> str:
    """Return when a process started, in clock ticks since the boot; empty if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    return stat.rpartition(b") ")[2].split()[19].decode()


def _remove(engine: str, name: str) -> None:
    """Remove a container; wait also for a daemon that is already removing it."""
    _engine(engine, "rm", "--force", name)
    deadline = time.monotonic() + COMMAND_TIMEOUT
    while is_docker(engine) and time.monotonic() < deadline:
        if not _engine(engine, "ps", "--all", "--quiet", f"--filter=name={name}"):
            return
        time.sleep(REMOVAL_CHECK)


def _engine(*command: str) -> str:
    """Run a command of the engine; return its output, empty if it fails."""
    try:
        completed = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return completed.stdout if completed.returncode == 0 else ""


def _field(text: str) -> str:
    """Quote a field of --mount, which is read as comma-separated values."""
    return '"' + text.replace('"', '""') + '"' if set(text) & {",", '"'} else text
