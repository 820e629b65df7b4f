"""Agents, and the plugins with their adapters and settings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializeAsAny,
    field_validator,
)

from draftsman import plugins
from draftsman.errors import ConfigError
from draftsman.settings.job_types import LimitSettings
from draftsman.settings.network import Network

TIDY: Final[Mapping[str, Any]] = {"command": ("{python}", "-m", "draftsman.agents.tidy")}
"""The included agent, which is available without a table too."""

PROTOCOL: Final = "json"
"""The kind of programs that speak the agent protocol themselves."""


class AgentSettings(LimitSettings):
    """Programs that use the agent protocol. tidy is always available.

    They have the limits of [types], too.
    """

    command: tuple[str, ...] = Field(
        min_length=1, examples=[["{python}", "-m", "draftsman.agents.tidy"]]
    )
    """Program and arguments; `{python}` is the interpreter that runs draftsman."""
    usable: ClassVar[bool] = True
    """Whether the package of the kind can be loaded."""
    kind: str = PROTOCOL
    """Protocol of the program: json, the agent protocol (docs/agent-protocol.md); acp, the Agent
    Client Protocol; claude, that of Claude Code; codex; plain, a program without a protocol; or
    that of another package (docs/coding-agents.md). For tidy, claude, codex, opencode, qwen,
    gemini, goose and aider an empty table is enough."""
    session_mode: str | None = Field(None, min_length=1, max_length=100, examples=["build"])
    """Mode of a session; it is set and verified. Unset: the agent's own default."""
    session_files: tuple[str, ...] = ()
    """Files and folders below HOME with the agent's session; stored with each checkpoint."""
    version: str | None = Field(None, max_length=100, examples=["1.4.0"])
    """Version of the agent, recorded with each of its runs. Unset: none."""
    env: dict[str, str] = Field({})
    """Variables set for it."""
    pass_env: tuple[str, ...] = ()
    """Names of variables that it inherits in addition to the standard variables."""
    network: Network = False
    """Its network: false; true, that of the host; or a list of groups and hosts, such as
    ["mirrors", "git.example:443"] (docs/sandbox.md)."""
    gateway: str | None = Field(None, examples=["anthropic"])
    """Gateway for its model: a name of [gateways]. Unset: it has a key and a network itself."""
    submit_jobs: bool = False
    """Whether it may submit jobs for its repository, by the MCP server of its gateway
    (docs/mcp.md)."""

    _repo_config: bool = PrivateAttr(False)

    @property
    def plugin(self) -> AgentPlugin:
        """What the package of the kind declares; raises ConfigError if it cannot be loaded."""
        return AgentPlugin() if self.kind == PROTOCOL else _plugin(self.kind)

    def adapter_options(self) -> list[str]:
        """Return the options of the adapter for the keys of the table."""
        mode = [] if self.session_mode is None else [f"--mode={self.session_mode}"]
        config = ["--repo-config"] if self.repo_config else []
        return [*mode, *(f"--home={path}" for path in self.session_files), *config]

    @property
    def repo_config(self) -> bool:
        """Whether it loads its own configuration of the repository."""
        return self._repo_config

    @property
    def repo_config_name(self) -> str | None:
        """Name by which a profile allows its own configuration; None if none can be allowed."""
        program = Path(self.command[0]).name.removesuffix(".exe")
        names = (name for name in (self.kind, program) if name in repo_config_names())
        return next(names, None)

    def with_repo_config(self) -> Self:
        """Return the settings of an agent that loads its own configuration of the repository."""
        name = self.repo_config_name
        prevented = () if name is None else _plugin(name).no_repo_config
        env = {key: value for key, value in self.env.items() if key not in prevented}
        changed = self.model_copy(update={"env": env})
        changed._repo_config = True
        return changed

    @classmethod
    def of(cls, table: Any) -> AgentSettings:
        """Return the settings of a table by its kind; raises ValidationError."""
        return cls.for_table(table).model_validate(table)

    @classmethod
    def for_table(cls, table: Any) -> type[AgentSettings]:
        """Return the model of a table, by its kind."""
        kind = table.get("kind") if isinstance(table, Mapping) else None
        if kind not in plugins.names(plugins.AGENTS):
            return AgentSettings
        try:
            return _plugin(kind).settings
        except ConfigError:
            return UnusableAgentSettings

    @field_validator("kind")
    @classmethod
    def _check_kind(cls, value: str) -> str:
        if value == PROTOCOL:
            return value
        known = plugins.names(plugins.AGENTS)
        if value not in known:
            kinds = ", ".join([PROTOCOL, *known])
            raise ValueError(f"no installed package has this kind of agent; known: {kinds}")
        table = _plugin(value).table if cls.usable else None
        if table is not None and (kind := table.get("kind", PROTOCOL)) != value:
            raise ValueError(f"is a program, not a kind; its kind is {kind}")
        return value


class UnusableAgentSettings(AgentSettings):
    """An agent whose package cannot be loaded: each use raises ConfigError, and harms no other."""

    model_config = ConfigDict(extra="ignore")
    usable = False


AnyAgent = Annotated[AgentSettings, SerializeAsAny(), BeforeValidator(AgentSettings.of)]
"""A table of `[agents]`, of any kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCall:
    """What a known agent needs for the scripted model of a demo, which makes one call of a tool.

    In texts, `{command}` is the command of the demo and `{model}` the name of its model.
    """

    provider: str
    """API of the model, as that of a gateway."""
    tool: str | None = None
    """The tool that runs commands. None: an agent without tools, which reads edits in the text of
    its model."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the tool."""
    command: tuple[str, ...] = ()
    """Arguments after the command of the agent."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlugin:
    """A coding agent, a kind of them, or both: an entry point of `draftsman.agents` with its name.

    Its module must import little, because it is imported with the configuration.
    """

    adapter: str | None = None
    """Module that speaks the agent protocol for the program, run in the sandbox as
    `python -m ADAPTER --name=PROGRAM OPTIONS -- COMMAND`. None: the program speaks it itself."""
    settings: type[AgentSettings] = AgentSettings
    """Model of the tables of this kind, with the keys and options that only its adapter has."""
    table: Mapping[str, Any] | None = None
    """Keys of the table `[agents.NAME]` with the name of the plugin, which is complete then; keys
    of the configuration override them. None: this is a kind of several programs."""
    needs_model: bool = True
    """Whether a program without a gateway and without a network cannot work."""
    has_repo_config: bool = False
    """Whether a profile may allow the agent's own configuration of a repository, by the name of
    the plugin; it is not loaded otherwise."""
    no_repo_config: tuple[str, ...] = ()
    """Variables of `table` that prevent it."""
    demo: DemoCall | None = None
    """How `draftsman demo` works without a model. None: the demo needs a gateway."""


def known_table(name: str) -> Mapping[str, Any]:
    """Return the keys that an agent with this name has by itself; raises ConfigError."""
    known = _plugin(name).table if name in plugins.names(plugins.AGENTS) else None
    return known or {}


def repo_config_names() -> list[str]:
    """Return the agents whose own configuration of a repository can be allowed."""
    return [name for name, plugin in _usable() if plugin.has_repo_config]


def demo_calls() -> dict[str, DemoCall]:
    """Return the calls of the agents that a demo works with, those with tools first."""
    calls = [(name, plugin.demo) for name, plugin in _usable() if plugin.demo is not None]
    return dict(sorted(calls, key=lambda item: item[1].tool is None))


def with_known_agents(agents: Any) -> Any:
    """Return the tables of `[agents]` with the keys of known agents that they do not set."""
    if not isinstance(agents, Mapping):
        return agents
    return {name: _complete(name, table) for name, table in agents.items()}


def _complete(name: str, table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    try:
        known = known_table(name)
    except ConfigError:
        return {"kind": name, "command": (name,), **table}
    if not known:
        return table
    env = {**known.get("env", {}), **(table.get("env") or {})}
    return {**known, **table, "env": env}


def _plugin(name: str) -> AgentPlugin:
    return plugins.load(plugins.find(plugins.AGENTS, name), AgentPlugin)


def _usable() -> Iterator[tuple[str, AgentPlugin]]:
    """Yield the agents that can be loaded, by name."""
    for name in plugins.names(plugins.AGENTS):
        with contextlib.suppress(ConfigError):
            yield name, _plugin(name)


def check_agents(
    agents: Mapping[str, AgentSettings], default: str | None, gateways: Mapping[str, object]
) -> None:
    """Raise ValueError for an unknown default agent, or an unknown gateway of an agent."""
    if default is not None and default not in agents:
        known = ", ".join(sorted(agents))
        raise ValueError(f"unknown default_agent {default!r}; agents: {known}")
    for name, agent in agents.items():
        if agent.gateway is not None and agent.gateway not in gateways:
            known = ", ".join(sorted(gateways)) or "none"
            raise ValueError(
                f"agents.{name}.gateway: no gateway {agent.gateway!r}; gateways: {known}"
            )
