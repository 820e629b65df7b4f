"""Settings of well-known agents: an empty table `[agents.opencode]` is enough to use one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

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
"""Keys of `[agents.NAME]` by name; keys of the configuration override them."""


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
