"""What an agent inherits: an allowlist of the environment, and its command made concrete."""

from __future__ import annotations

import os
import re
import shutil
import site
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from draftsman.errors import Failure
from draftsman.settings import AgentSettings

ALLOWED: Final = re.compile(r"(PATH|LANG|LC_[A-Z]+|TZ|TERM|TMPDIR|USER|LOGNAME)\Z")
FORBIDDEN: Final = re.compile(r"DRAFTSMAN_|PG[A-Z]|.*DATABASE_URL", re.IGNORECASE)
DATABASE_URL: Final = re.compile(r"postgres(ql)?://", re.IGNORECASE)
PACKAGE_ROOT: Final = Path(__file__).resolve().parents[3]
"""The folder that `draftsman` is imported from."""


def expand(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command with `{python}` replaced by this interpreter."""
    return tuple(part.replace("{python}", sys.executable) for part in command)


def agent_command(agent: AgentSettings) -> tuple[str, ...]:
    """Return the command to start.

    An agent of our own is not to import what happens to lie in the repository it works on: hence
    Python's -P.
    """
    command = expand(agent.command)
    if _is_ours(agent):
        return (command[0], "-P", *command[1:])
    return command


def agent_environment(
    agent: AgentSettings, home: Path, inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the agent's whole environment.

    Raises Failure (PERMANENT) when the configuration would hand it a database or draftsman's own
    configuration.
    """
    passed = {name: inherited[name] for name in agent.pass_env if name in inherited}
    for name, value in (passed | agent.env).items():
        if FORBIDDEN.match(name) or DATABASE_URL.match(value):
            raise _forbidden(name)
    allowed = {name: value for name, value in inherited.items() if ALLOWED.match(name)}
    ours = {"PYTHONPATH": str(PACKAGE_ROOT)} if _is_ours(agent) and not _installed() else {}
    return allowed | {"HOME": str(home)} | ours | passed | agent.env


def find_program(program: str, environment: Mapping[str, str]) -> str:
    """Return the program's absolute path as the agent's PATH finds it.

    Raises Failure `command_not_found`.
    """
    found = shutil.which(program, path=environment.get("PATH", os.defpath))
    if found is None:
        message = f"no program {program!r}; install it, or correct the command"
        raise Failure(message, origin="agent", code="command_not_found")
    return str(Path(found).absolute())


def _is_ours(agent: AgentSettings) -> bool:
    command = agent.command
    return command[:2] == ("{python}", "-m") and "".join(command[2:3]).startswith("draftsman.")


def _installed() -> bool:
    """Whether every run of this interpreter finds the package; the user's site needs a HOME."""
    return any(Path(folder).resolve() == PACKAGE_ROOT for folder in site.getsitepackages())


def _forbidden(name: str) -> Failure:
    message = f"the agent's variable {name} is not allowed: no agent gets a database or our own"
    return Failure(message, origin="agent", code="environment", declared="PERMANENT")
