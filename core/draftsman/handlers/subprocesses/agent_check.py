"""Check of a configured agent: whether a run could start it, and its version."""

from __future__ import annotations

from dataclasses import dataclass

from draftsman.handlers.sandbox.sandbox_plan import SandboxMode
from draftsman.handlers.subprocesses.command_check import (
    find_command_problem,
    read_version,
    relative_arguments,
)
from draftsman.handlers.subprocesses.environment import ADAPTERS, is_own_agent
from draftsman.settings import AgentSettings
from draftsman.version import installed


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """The result of a check; without a `problem` a run could start the agent."""

    name: str
    kind: str
    command: tuple[str, ...]
    network: bool
    version: str | None = None
    problem: str | None = None
    warning: str | None = None
    hint: str | None = None

    @property
    def installed(self) -> bool:
        """Whether a run could start the agent."""
        return self.problem is None


def check_agent(name: str, agent: AgentSettings, sandbox: SandboxMode | None) -> AgentCheck:
    """Check an agent's command inside the sandbox, without starting a run.

    `sandbox` is None if no sandbox works here: then only the files of this machine are checked.
    """
    program = agent.model_copy(update={"kind": "json"})  # without the adapter, which is ours
    problem, hint = find_command_problem(program, sandbox) or (None, None)
    warning = None
    if problem is None and (warning := relative_arguments(program)) is not None:
        hint = "use an absolute path"
    version = agent.version or (installed() if is_own_agent(agent) else None)
    if version is None and problem is None and agent.kind in ADAPTERS and sandbox is not None:
        version = read_version(program, sandbox)
    return AgentCheck(
        name, agent.kind, agent.command, agent.network, version, problem, warning, hint
    )
