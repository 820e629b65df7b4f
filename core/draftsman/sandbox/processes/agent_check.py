"""Check of a configured agent: whether a run could start it, its version and its model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from draftsman.errors import Failure
from draftsman.outbound import secret_values
from draftsman.outbound.secret_values import MissingSecret
from draftsman.sandbox.processes.command_check import (
    find_command_problem,
    read_version,
    relative_arguments,
)
from draftsman.sandbox.processes.environment import ADAPTERS, is_own_agent
from draftsman.sandbox.sandbox_plan import SandboxMode
from draftsman.settings import AgentSettings, GatewaySettings
from draftsman.version import installed


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """The result of a check; without a `problem` a run could start the agent."""

    name: str
    kind: str
    command: tuple[str, ...]
    network: bool | tuple[str, ...]
    version: str | None = None
    problem: str | None = None
    warning: str | None = None
    hint: str | None = None
    model: str | None = None
    """The way to its model; None for agents without a kind that has one."""

    @property
    def installed(self) -> bool:
        """Whether a run could start the agent."""
        return self.problem is None


def check_agent(
    name: str,
    agent: AgentSettings,
    sandbox: SandboxMode | None,
    gateways: Mapping[str, GatewaySettings] | None = None,
) -> AgentCheck:
    """Check an agent's command inside the sandbox, without starting a run.

    `sandbox` is None if no sandbox works here: then only the files of this machine are checked.
    With `gateways`, the way to its model is checked, too.
    """
    program = agent.model_copy(update={"kind": "json"})  # without the adapter, which is ours
    problem, hint = find_command_problem(program, sandbox) or (None, None)
    if problem is None and sandbox is not None:
        try:
            sandbox.check_network(agent.network)
        except Failure as error:
            problem, hint = str(error), "see docs/sandbox.md#network"
    warning = None
    if problem is None and (warning := relative_arguments(program)) is not None:
        hint = "use an absolute path"
    version = agent.version or (installed() if is_own_agent(agent) else None)
    if version is None and problem is None and agent.kind in ADAPTERS and sandbox is not None:
        version = read_version(program, sandbox)
    model = None
    if gateways is not None and agent.kind in ADAPTERS:
        model, model_warning = find_model(agent, gateways, os.environ)
        if problem is None and warning is None and model_warning is not None:
            warning, hint = model_warning, "see docs/coding-agents.md#network-and-keys"
    return AgentCheck(
        name, agent.kind, agent.command, agent.network, version, problem, warning, hint, model
    )


def find_model(
    agent: AgentSettings,
    gateways: Mapping[str, GatewaySettings],
    environment: Mapping[str, str],
) -> tuple[str, str | None]:
    """Return the way of an agent to its model, and a warning if it is not complete."""
    if agent.gateway is not None:
        way = f"gateway {agent.gateway}"
        key = gateways[agent.gateway].api_key
        if key is None:
            return f"{way}, without a key", None
        try:
            secret_values.read_secret(key, way)
        except MissingSecret as error:
            return f"{way}, no key", error.problem
        return f"{way}, with a key", None
    if not agent.network:
        text = "it has no gateway and no network to reach a model"
        return "none", None if agent.kind == "plain" else text
    names = ", ".join(agent.pass_env) or "its own configuration"
    missing = [variable for variable in agent.pass_env if not environment.get(variable)]
    problem = f"{', '.join(missing)} of pass_env is not set here" if missing else None
    return f"network, with {names}", problem
