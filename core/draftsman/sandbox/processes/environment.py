"""Environment variables and resolved command of an agent."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import site
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from draftsman import plugins
from draftsman.basic_settings import POSTGRESQL
from draftsman.errors import Failure
from draftsman.resources import PACKAGE_ROOT
from draftsman.sandbox import container
from draftsman.sandbox.gateway_access import GatewayAccess
from draftsman.sandbox.network_proxy.access import ProxyAccess
from draftsman.sandbox.sandbox_plan import SandboxMode
from draftsman.sandbox.version_managers import find_shim, real_path, real_program
from draftsman.settings.agents import AgentSettings

ALLOWED: Final = re.compile(r"(PATH|LANG|LC_[A-Z]+|TZ|TERM|TMPDIR|USER|LOGNAME)\Z")
GIVEN: Final = re.compile(r"\{(?:gateway_(?:url|token)|port(?:_secret)?)\}")
"""Placeholders of values that a run gives."""
FORBIDDEN: Final = re.compile(r"DRAFTSMAN_|PG[A-Z]|.*DATABASE_URL", re.IGNORECASE)


def expand(command: Sequence[str], python: str = sys.executable) -> tuple[str, ...]:
    """Return the command with `{python}` replaced by the interpreter."""
    return tuple(part.replace("{python}", python) for part in command)


@dataclass(frozen=True, slots=True)
class OwnPort:
    """A port of TCP on which the program of an agent listens for itself, and a secret for it.

    Without a network of its own, every user of this host can connect to it.
    """

    number: int
    secret: str

    @classmethod
    def of(cls, agent: AgentSettings) -> Self | None:
        """Return a free port and a new secret for an agent that uses them; None for others."""
        if not any("{port" in text for text in (*agent.command, *agent.env.values())):
            return None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return cls(free.getsockname()[1], secrets.token_urlsafe(24))

    def replace(self, text: str) -> str:
        """Return the text with `{port}` and `{port_secret}` replaced."""
        return text.replace("{port}", str(self.number)).replace("{port_secret}", self.secret)


def agent_command(
    agent: AgentSettings, sandbox: SandboxMode | None = None, own_port: OwnPort | None = None
) -> tuple[str, ...]:
    """Return the command to start.

    An adapter in front of the agent speaks the agent protocol for it. draftsman's own programs get
    Python's -P, so that they import nothing from the repository. In a container, programs are those
    of its image.
    """
    python = sys.executable if sandbox is None else sandbox.python
    in_image = sandbox is not None and sandbox.mode == "container"
    command = expand(agent.command, python)
    if own_port is not None:
        command = tuple(map(own_port.replace, command))
    if in_image:
        command = tuple(python if part == sys.executable else part for part in command)
    if (adapter := agent.plugin.adapter) is not None:
        options = _options(agent)
        if in_image:
            return (python, "-P", "-m", adapter, *options, "--", *command)
        # the sandbox shows the programs that the command names by their path
        path = real_path(agent.env.get("PATH", os.environ.get("PATH", os.defpath)), os.environ)
        program = real_program(command[0], os.environ)
        program = _native(shutil.which(program, path=path) or program)
        return (python, "-P", "-m", adapter, *options, "--", program, *command[1:])
    if is_own_agent(agent):
        return (command[0], "-P", *command[1:])
    return command


def agent_environment(
    agent: AgentSettings,
    home: Path,
    inherited: Mapping[str, str] = os.environ,
    gateway: GatewayAccess | None = None,
    proxy: ProxyAccess | None = None,
    sandbox: SandboxMode | None = None,
    own_port: OwnPort | None = None,
) -> dict[str, str]:
    """Return the agent's whole environment.

    The variables of the gateway and the proxy replace inherited variables.

    Variables of `env` with a value of the gateway or of the port are left out without it.

    Its PATH has no shims, which no run could use.

    Raises Failure (PERMANENT) for variables that have a database URL or draftsman's configuration.
    """
    passed = {name: inherited[name] for name in agent.pass_env if name in inherited}
    for name, value in (passed | agent.env).items():
        if FORBIDDEN.match(name) or POSTGRESQL.match(value):
            raise _forbidden(name)
    allowed = {name: value for name, value in inherited.items() if ALLOWED.match(name)}
    python_path = {}
    in_image = sandbox is not None and sandbox.mode == "container"
    if in_image:
        allowed.pop("PATH", None)
    adapter = agent.plugin.adapter
    if is_own_agent(agent) or adapter is not None:
        path = (container.PACKAGES,) if in_image else _python_path(adapter or "draftsman")
        python_path = {"PYTHONPATH": os.pathsep.join(path)} if path else {}
    base = allowed | {"HOME": str(home)} | python_path | passed
    if proxy is not None:
        base |= proxy.environment()
    configured = dict(agent.env)
    if own_port is not None:
        configured = {name: own_port.replace(value) for name, value in configured.items()}
    if gateway is not None:
        base |= gateway.environment()
        configured = {name: gateway.replace(value) for name, value in configured.items()}
    base |= {name: text for name, text in configured.items() if not GIVEN.search(text)}
    if not in_image and "PATH" in base:
        base["PATH"] = real_path(base["PATH"], inherited)
    return base


def _native(program: str) -> str:
    """Return the program that a script of an npm package starts with Node.js, if there is one.

    It may be in a package of the platform, beside the package or inside of it.
    """
    script = Path(program).resolve()
    if script.suffix != ".js":
        return program
    package = script.parents[1]
    name = script.stem
    missing = [
        path
        for folder in (package.parent, package / "node_modules" / package.parent.name)
        for path in folder.glob(f"{name}-*/vendor/*/bin/{name}")
    ]
    return str(min(missing, default=program))


def _options(agent: AgentSettings) -> list[str]:
    """Return the options of the adapter."""
    name = Path(expand(agent.command)[0]).name.removesuffix(".exe")
    return [f"--name={name}", *agent.adapter_options()]


def find_program(
    program: str, environment: Mapping[str, str], sandbox: SandboxMode | None = None
) -> str:
    """Return the program's absolute path on the agent's PATH.

    Its name is returned for a container, where it is on the PATH of the image.
    Raises Failure `command_not_found`.
    """
    if sandbox is not None and sandbox.mode == "container":
        return program
    path = shutil.which(real_program(program, os.environ), path=environment.get("PATH", os.defpath))
    shim = find_shim(program if path is None else path, os.environ.get("PATH", os.defpath))
    if path is None or shim == path:
        message = f"program {program!r} not found; install it, or correct the command"
        if shim is not None:
            message = (
                f"program {program!r} not found: {shim} is a shim, and the version that this user"
                " has selected has no such program; install it there, or name its path"
            )
        raise Failure(message, origin="agent", code="command_not_found")
    return str(Path(path).absolute())


def is_own_agent(agent: AgentSettings) -> bool:
    """Return whether the agent is a module of draftsman."""
    command = agent.command
    return command[:2] == ("{python}", "-m") and "".join(command[2:3]).startswith("draftsman.")


def _python_path(module: str) -> tuple[str, ...]:
    """Return the folders of draftsman and a module; none if site-packages has both.

    The first is that of draftsman: by it, adapters know the variable as their own.
    """
    package = plugins.package_path(module)
    needed = dict.fromkeys((PACKAGE_ROOT, PACKAGE_ROOT if package is None else package.parent))
    installed = {Path(folder).resolve() for folder in site.getsitepackages()}
    return () if needed.keys() <= installed else tuple(map(str, needed))


def _forbidden(name: str) -> Failure:
    message = (
        f"agents may not have the environment variable {name}: it could give access to a database"
        " or to draftsman's configuration; remove it from env and pass_env"
    )
    return Failure(message, origin="agent", code="environment", declared="PERMANENT")
