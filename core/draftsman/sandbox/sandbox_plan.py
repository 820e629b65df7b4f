"""The sandbox of a run: paths, environment and confinement of its programs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from draftsman import plugins
from draftsman.errors import Failure
from draftsman.resources import module_command
from draftsman.sandbox import bwrap, container, landlock, port_opener, seccomp
from draftsman.sandbox.failed_modes import FailedMode
from draftsman.sandbox.sandbox_port import SandboxPort
from draftsman.settings.network import as_json
from draftsman.settings.sandbox import SandboxSettings

MEGABYTE: Final = 1 << 20
TEMPORARY: Final = ".tmp"
"""Folder in the home for temporary files, in modes without a private /tmp."""
SOCKET: Final = "run.sock"
"""Name of the run's socket in its folder."""
SOCKET_VARIABLE: Final = "DRAFTSMAN_SOCKET"
"""Variable with the path of the run's socket."""
DEVICES: Final = ("null", "zero", "full", "random", "urandom")
SHARED_DEVICES: Final = ("tty", "ptmx", "pts", "shm")
"""Terminals and shared memory, allowed only for a user other than the worker's."""
PRIVATE_NETWORK: Final = ("bwrap", "user", "container")
"""Modes in which a program without network has an empty network of its own."""
LANDLOCK_PATHS: Final = ("/etc/passwd", "/etc/group", "/proc", "/sys/devices/system/cpu")
"""Paths that are readable under Landlock, which bwrap creates itself."""


@dataclass(frozen=True, slots=True)
class SandboxMode:
    """A working sandbox mode, and the reasons why stronger modes do not work."""

    mode: str
    settings: SandboxSettings
    program: str | None = None
    """Path of bwrap."""
    weaker: tuple[FailedMode, ...] = ()
    """The stronger modes, which do not work."""
    cacheable: bool = True
    """Whether no probe of a stronger mode timed out, which may work when the load is lower."""

    @property
    def python(self) -> str:
        """The interpreter of programs: this one, or that of the image of a container."""
        return container.PYTHON if self.mode == "container" else sys.executable

    @property
    def has_own_paths(self) -> bool:
        """Whether the folders of a run have constant paths inside."""
        return self.mode in ("bwrap", "container")

    def check_network(self, network: bool | tuple[str, ...]) -> None:
        """Raise Failure `no_sandbox` for named hosts, unless the network namespace is private.

        Landlock limits TCP by the port alone.
        """
        if isinstance(network, tuple) and self.mode not in PRIVATE_NETWORK:
            text = (
                f"the sandbox mode {self.mode!r} cannot limit the network to named hosts; use the"
                " mode bwrap, user or container, network = true or network = false"
            )
            raise Failure(text, origin="handler", code="no_sandbox", declared="TRANSIENT_INFRA")


@dataclass(frozen=True, slots=True)
class RunSandbox:
    """The sandbox of a run. Create it with `open_run_sandbox`; `close` it at the end."""

    sandbox: SandboxMode
    repo: Path | None
    home: Path
    uid: int | None = None
    """User id of the programs on the host; None: the worker's own."""
    lock: int | None = None
    socket: Path | None = None
    """Folder with the socket of the run; None for programs that may not ask people."""

    def sandbox_path(self, path: Path) -> str:
        """Return the path inside the sandbox."""
        if self.sandbox.has_own_paths:
            folders = (self.home, bwrap.HOME), (self.repo, bwrap.REPO), (self.socket, bwrap.SOCKETS)
            for outer, inner in folders:
                if outer is not None and path.is_relative_to(outer):
                    return str(Path(inner, path.relative_to(outer)))
        return str(path)

    def host_path(self, path: str) -> str:
        """Return the path on this machine of a path inside the sandbox."""
        if self.sandbox.has_own_paths:
            for outer, inner in ((self.home, bwrap.HOME), (self.repo, bwrap.REPO)):
                if outer is not None and Path(os.path.normpath(path)).is_relative_to(inner):
                    return str(outer / Path(os.path.normpath(path)).relative_to(inner))
        return path

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the variables with HOME, TMPDIR and the socket of the sandbox."""
        private = self.sandbox.has_own_paths
        temporary = "/tmp" if private else str(self.home / TEMPORARY)  # noqa: S108 - its own
        changed = {"HOME": self.sandbox_path(self.home), "TMPDIR": temporary}
        if self.socket is not None:
            changed[SOCKET_VARIABLE] = self.sandbox_path(self.socket / SOCKET)
            if self.sandbox.mode != "container":
                changed["PATH"] = _with_own_commands(variables.get("PATH", os.defpath))
        return {**variables, **changed}

    def plan(
        self,
        command: Sequence[str],
        cwd: Path,
        network: bool | tuple[str, ...],
        ports: Sequence[SandboxPort] = (),
        path: str = "",
        own_port: int | None = None,
    ) -> dict[str, Any]:
        """Return the plan for `draftsman.sandbox.confinement`.

        Files that the command names by absolute path are readable, except below the run's own
        folders, where a link could lead anywhere, and installations on its PATH, `path`. It may
        listen on `own_port`, and connect to it. Raises Failure `no_sandbox` for a network of named
        hosts in a mode that cannot enforce it.
        """
        self.sandbox.check_network(network)
        settings = self.sandbox.settings
        mode = self.sandbox.mode
        run_folders = [self.home] if self.repo is None else [self.home, self.repo]
        command_paths = [
            part
            for part in command
            if not any(Path(part).is_relative_to(folder) for folder in run_folders)
        ]
        read = list(bwrap.readable(settings.read_only, command_paths, network is True, path))
        sockets = [] if self.socket is None else [str(self.socket)]
        plan: dict[str, Any] = {
            "mode": mode,
            "uid": self.uid,
            "network": network is True,
            "chdir": self.sandbox_path(cwd),
            "memory": settings.memory_mb * MEGABYTE,
            "file_size": settings.file_size_mb * MEGABYTE,
            "processes": settings.processes,
            "tmp": settings.file_size_mb * MEGABYTE,
            "ports": [port.port for port in ports],
            "own_port": own_port,
            "keep": [] if self.lock is None else [self.lock],
            "seccomp": None
            if mode in ("off", "container")
            else _filter(mode == "landlock" and network is not True),
        }
        plan |= _port_opener(plan, ports)
        if mode == "container":
            return self._container_plan(plan)
        if mode == "bwrap":
            mounts = bwrap.mounts(read, self.repo, self.home, run_folders)
            mounts += [("ro", folder, bwrap.SOCKETS) for folder in sockets]
            bwrap_plan = {"bwrap": self.sandbox.program, "mounts": mounts}
            return plan | bwrap_plan
        devices = DEVICES if self.uid is None else DEVICES + SHARED_DEVICES
        write = [*(f"/dev/{name}" for name in devices), *(str(folder) for folder in run_folders)]
        if mode == "user":
            plan["landlock"] = landlock.abi() >= landlock.OLDEST_ABI
        # Python finds a package in the list of its folder
        listed = [str(path.parent) for path in plugins.foreign_packages(plugins.AGENTS)]
        read += [*LANDLOCK_PATHS, *sockets]
        return plan | {"read": read, "write": write, "listed": listed}

    def _container_plan(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Return the plan with the container of a program."""
        settings = self.sandbox.settings
        engine = self.sandbox.program
        if engine is None or settings.image is None:
            raise ValueError("a container needs an engine and an image")
        folders = [("rw", self.home, bwrap.HOME)]
        folders += [] if self.repo is None else [("rw", self.repo, bwrap.REPO)]
        folders += [] if self.socket is None else [("ro", self.socket, bwrap.SOCKETS)]
        plan |= {"mounts": container.mounts(settings, folders)}
        plan |= container.engine_plan(settings, engine, self.uid)
        return plan | {"run": container.run_arguments(plan)}

    def has_private_network(self, network: bool | tuple[str, ...]) -> bool:
        """Return whether a program's loopback is not that of the host."""
        if self.sandbox.mode == "container":  # also the engine's own network
            return True
        return self.sandbox.mode in PRIVATE_NETWORK and network is not True

    def as_event(self, network: bool | tuple[str, ...]) -> dict[str, Any]:
        """Return the payload of the event `sandbox_applied`."""
        uid = os.geteuid() if self.uid is None else self.uid
        return {"mode": self.sandbox.mode, "network": as_json(network), "uid": uid}

    def close(self) -> None:
        """Release the user id."""
        if self.lock is not None:
            with contextlib.suppress(OSError):
                os.close(self.lock)


_filter = cache(seccomp.build)


def _with_own_commands(path: str) -> str:
    """Return the PATH with the folder of `draftsman` as its last, for programs that ask people."""
    folder = Path(sys.executable).parent
    return f"{path}{os.pathsep}{folder}" if (folder / "draftsman").is_file() else path


def _port_opener(plan: Mapping[str, Any], ports: Sequence[SandboxPort]) -> dict[str, Any]:
    """Return the part of a plan that opens ports inside the sandbox."""
    sockets = [(port.descriptor, port.port) for port in ports if port.descriptor is not None]
    return {
        "port_sockets": sockets,
        "port_opener": module_command(port_opener.__name__) if sockets else [],
        "keep": [*plan["keep"], *(descriptor for descriptor, _ in sockets)],
    }
