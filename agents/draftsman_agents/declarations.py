"""The declarations of the coding agents, as entry points of `draftsman.agents`."""

from __future__ import annotations

import json
from typing import Any, Final

from draftsman.settings.agents import AgentPlugin, AgentSettings, DemoCall

NO_REPO_CONFIG: Final = "OPENCODE_DISABLE_PROJECT_CONFIG"
"""Variable by which OpenCode does not load the configuration of a repository."""


class ClaudeSettings(AgentSettings):
    """An agent of the kind claude."""

    allowed_tools: tuple[str, ...] = ()
    """Tools of an agent of kind claude that need no permission."""

    def adapter_options(self) -> list[str]:
        tools = [f"--allow={tool}" for tool in self.allowed_tools]
        return [*super().adapter_options(), *tools]


_DESCRIBED: Final[dict[str, Any]] = {
    "command": "{command}",
    "description": "Remove an unused import",
}
_DEMO_OF_OPENCODE: Final = {
    "model": "demo/{model}",
    "small_model": "demo/{model}",
    "provider": {
        "demo": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{gateway_url}/v1", "apiKey": "{gateway_token}"},
            "models": {"{model}": {"name": "{model}"}},
        }
    },
}
CLAUDE: Final = AgentPlugin(
    adapter="draftsman_agents.claude",
    settings=ClaudeSettings,
    has_repo_config=True,
    demo=DemoCall(provider="anthropic", tool="Bash", arguments=_DESCRIBED),
    table={
        "kind": "claude",
        "command": ("claude",),
        "session_mode": "default",
        "session_files": (".claude/projects",),
        "allowed_tools": ("Read", "Glob", "Grep"),
        "env": {
            "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
            "CLAUDE_CODE_MAX_RETRIES": "4",
            "DISABLE_AUTOUPDATER": "1",
        },
    },
)
CODEX: Final = AgentPlugin(
    adapter="draftsman_agents.codex",
    has_repo_config=True,
    demo=DemoCall(
        provider="openai",
        tool="exec_command",
        arguments={"cmd": "{command}"},
        command=("-c", 'model="{model}"'),
    ),
    table={
        "kind": "codex",
        "command": ("codex", "app-server"),
        "session_mode": "untrusted",
        "session_files": (".codex/sessions",),
    },
)
OPENCODE: Final = AgentPlugin(
    has_repo_config=True,
    no_repo_config=(NO_REPO_CONFIG,),
    demo=DemoCall(
        provider="openai",
        tool="bash",
        arguments=_DESCRIBED,
        env={
            "OPENCODE_CONFIG_CONTENT": json.dumps(_DEMO_OF_OPENCODE),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
    ),
    table={
        "kind": "acp",
        "command": ("opencode", "acp", "--port", "{port}"),  # it talks to a server of its own
        "session_mode": "build",
        "session_files": (
            ".local/share/opencode/opencode.db",
            ".local/share/opencode/opencode.db-wal",
        ),
        "env": {
            "OPENCODE_PERMISSION": '{"*": "ask", "read": "allow", "list": "allow", "glob": "allow",'
            ' "grep": "allow", "todoread": "allow", "todowrite": "allow"}',
            "OPENCODE_SERVER_PASSWORD": "{port_secret}",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            NO_REPO_CONFIG: "1",
        },
    },
)
QWEN: Final = AgentPlugin(
    demo=DemoCall(
        provider="openai",
        tool="run_shell_command",
        arguments={**_DESCRIBED, "is_background": False},
        env={"OPENAI_MODEL": "{model}"},
    ),
    table={
        "kind": "acp",
        "command": ("qwen", "--acp", "--auth-type", "openai"),
        "session_mode": "default",
        "session_files": (".qwen/projects",),
    },
)
GEMINI: Final = AgentPlugin(
    demo=DemoCall(
        provider="google",
        tool="run_shell_command",
        arguments={**_DESCRIBED, "is_background": False},
    ),
    table={
        "kind": "acp",
        "command": ("gemini", "--acp"),
        "session_mode": "default",
        "session_files": (".gemini/projects.json", ".gemini/tmp"),
        "pass_env": ("GEMINI_API_KEY",),
    },
)
GOOSE: Final = AgentPlugin(
    demo=DemoCall(
        provider="openai",
        tool="shell",
        arguments={"command": "{command}"},
        env={"GOOSE_MODEL": "{model}"},
    ),
    table={
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
)
AIDER: Final = AgentPlugin(
    demo=DemoCall(provider="openai", command=("--model", "openai/{model}")),
    table={
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
)
