"""Agents, with the settings of well-known agents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, PrivateAttr, field_validator

from draftsman.settings.job_types import LimitSettings
from draftsman.settings.network import Network

NO_REPO_CONFIG: Final = "OPENCODE_DISABLE_PROJECT_CONFIG"
"""Variable by which OpenCode does not load the configuration of a repository."""
KNOWN_AGENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "claude": {
        "kind": "claude",
        "command": ("claude",),
        "session_mode": "default",
        "session_files": (".claude/projects",),
        "allowed_tools": ("Read", "Glob", "Grep"),
        "env": {
            "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "4",
            "DISABLE_AUTOUPDATER": "1",
        },
    },
    "opencode": {
        "kind": "acp",
        "command": ("opencode", "acp"),
        "session_mode": "build",
        "session_files": (
            ".local/share/opencode/opencode.db",
            ".local/share/opencode/opencode.db-wal",
        ),
        "env": {
            "OPENCODE_PERMISSION": '{"*": "ask", "read": "allow", "list": "allow", "glob": "allow",'
            ' "grep": "allow", "todoread": "allow", "todowrite": "allow"}',
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            NO_REPO_CONFIG: "1",
        },
    },
    "codex": {
        "kind": "codex",
        "command": ("codex", "app-server"),
        "session_mode": "untrusted",
        "session_files": (".codex/sessions",),
    },
    "qwen": {
        "kind": "acp",
        "command": ("qwen", "--acp", "--auth-type", "openai"),
        "session_mode": "default",
        "session_files": (".qwen/projects",),
    },
    "gemini": {
        "kind": "acp",
        "command": ("gemini", "--acp"),
        "session_mode": "default",
        "session_files": (".gemini/projects.json", ".gemini/tmp"),
        "pass_env": ("GEMINI_API_KEY",),
    },
    "aider": {
        "kind": "plain",
        "command": (
            *("aider", "--message", "{prompt}", "--yes-always", "--no-stream", "--no-pretty"),
            *("--edit-format", "diff", "--no-check-update", "--no-analytics"),
            *("--no-auto-commits", "--no-dirty-commits", "--no-gitignore"),
            *("--no-suggest-shell-commands", "--no-show-release-notes"),
            *("--no-show-model-warnings", "--no-fancy-input"),
        ),
        "prompt": "Work on this request: {title}\n\n{text}\n\n{history}",
        "scratch": (".aider*",),
        "env": {
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "OPENAI_API_BASE": "{gateway_url}/v1",
        },
    },
    "goose": {
        "kind": "acp",
        "command": ("goose", "acp"),
        "session_mode": "approve",
        "session_files": (
            ".local/share/goose/sessions/sessions.db",
            ".local/share/goose/sessions/sessions.db-wal",
        ),
        "env": {
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_DISABLE_SESSION_NAMING": "true",
            "GOOSE_DISABLE_TOOL_CALL_SUMMARY": "true",
            "GOOSE_PROVIDER": "openai",
            "GOOSE_TELEMETRY_OFF": "1",
        },
    },
}
"""Keys of `[agents.NAME]` of well-known agents, for which an empty table is enough; keys of the
configuration override them."""


TIDY: Final[Mapping[str, Any]] = {"command": ("{python}", "-m", "draftsman.agents.tidy")}
"""The included agent, which is available without a table too."""

RepoConfigName = Literal["claude", "codex", "opencode"]
"""Agents whose own configuration of a repository can be allowed; it is not loaded otherwise."""


def repo_config_name(kind: str, command: Sequence[str]) -> str:
    """Return the name by which a profile allows the agent's own configuration."""
    return kind if kind in ("claude", "codex") else Path(command[0]).name.removesuffix(".exe")


def with_known_agents(agents: Any) -> Any:
    """Return the tables of `[agents]` with the keys of known agents that they do not set."""
    if not isinstance(agents, Mapping):
        return agents
    return {name: _complete(name, table) for name, table in agents.items()}


def _complete(name: str, table: Any) -> Any:
    known = TIDY if name == "tidy" else KNOWN_AGENTS.get(name)
    if known is None or not isinstance(table, Mapping):
        return table
    env = {**known.get("env", {}), **(table.get("env") or {})}
    return {**known, **table, "env": env}


AgentKind = Literal["json", "acp", "claude", "codex", "plain"]
PROMPT_PLACEHOLDERS = ("title", "text", "job", "branch", "history")
"""Values of a job that the prompt of a plain program may contain."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class AgentSettings(LimitSettings):
    """Programs that use the agent protocol. tidy is always available.

    They have the limits of [types], too.
    """

    command: tuple[str, ...] = Field(
        min_length=1, examples=[["{python}", "-m", "draftsman.agents.tidy"]]
    )
    """Program and arguments; `{python}` is the interpreter that runs draftsman."""
    kind: AgentKind = "json"
    """Protocol of the program: json, the agent protocol (docs/agent-protocol.md); acp, the Agent
    Client Protocol; claude, that of Claude Code; codex; or plain, a program without a protocol
    (docs/coding-agents.md). For tidy, claude, codex, opencode, qwen, gemini, goose and aider an
    empty table is enough."""
    prompt: str | None = Field(
        None, min_length=1, max_length=20_000, examples=["{title}\n\n{text}\n\n{history}"]
    )
    """Prompt of a plain program, instead of {prompt} in its command or on its standard input;
    {title}, {text}, {job}, {branch} and {history} are those of the job. Unset: title, text and
    history."""
    scratch: tuple[str, ...] = ()
    """Untracked files that a plain program leaves in the workspace for itself, as patterns of git;
    they are removed when it ends."""
    session_mode: str | None = Field(None, min_length=1, max_length=100, examples=["build"])
    """Mode of a session; it is set and verified. Unset: the agent's own default."""
    session_files: tuple[str, ...] = ()
    """Files and folders below HOME with the agent's session; stored with each checkpoint."""
    allowed_tools: tuple[str, ...] = ()
    """Tools of an agent of kind claude that need no permission."""
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
    def repo_config(self) -> bool:
        """Whether it loads its own configuration of the repository."""
        return self._repo_config

    def with_repo_config(self) -> Self:
        """Return the settings of an agent that loads its own configuration of the repository."""
        env = {name: value for name, value in self.env.items() if name != NO_REPO_CONFIG}
        changed = self.model_copy(update={"env": env})
        changed._repo_config = True
        return changed

    @field_validator("prompt")
    @classmethod
    def _check_prompt(cls, value: str | None) -> str | None:
        for name in _PLACEHOLDER.findall(value or ""):
            if name not in PROMPT_PLACEHOLDERS:
                allowed = ", ".join(f"{{{item}}}" for item in PROMPT_PLACEHOLDERS)
                raise ValueError(f"unknown placeholder {{{name}}}; allowed: {allowed}")
        return value


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
