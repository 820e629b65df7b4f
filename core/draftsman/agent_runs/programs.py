"""The coding agents of draftsman and their kinds, as entry points of `draftsman.agents`."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pydantic import Field, field_validator

from draftsman.settings.agents import TIDY as TIDY_TABLE
from draftsman.settings.agents import AgentPlugin, AgentSettings, DemoCall

NO_REPO_CONFIG: Final = "OPENCODE_DISABLE_PROJECT_CONFIG"
"""Variable by which OpenCode does not load the configuration of a repository."""
PROMPT_PLACEHOLDERS: Final = ("title", "text", "job", "branch", "history")
"""Values of a job that the prompt of a plain program may contain."""
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


class ClaudeSettings(AgentSettings):
    """An agent of the kind claude."""

    allowed_tools: tuple[str, ...] = ()
    """Tools of an agent of kind claude that need no permission."""

    def adapter_options(self) -> list[str]:
        tools = [f"--allow={tool}" for tool in self.allowed_tools]
        return [*super().adapter_options(), *tools]


class PlainSettings(AgentSettings):
    """A program without a protocol."""

    prompt: str | None = Field(
        None, min_length=1, max_length=20_000, examples=["{title}\n\n{text}\n\n{history}"]
    )
    """Prompt of a plain program, instead of {prompt} in its command or on its standard input;
    {title}, {text}, {job}, {branch} and {history} are those of the job. Unset: title, text and
    history."""
    scratch: tuple[str, ...] = ()
    """Untracked files that a plain program leaves in the workspace for itself, as patterns of git;
    they are removed when it ends."""

    @field_validator("prompt")
    @classmethod
    def _check_prompt(cls, value: str | None) -> str | None:
        for name in _PLACEHOLDER.findall(value or ""):
            if name not in PROMPT_PLACEHOLDERS:
                allowed = ", ".join(f"{{{item}}}" for item in PROMPT_PLACEHOLDERS)
                raise ValueError(f"unknown placeholder {{{name}}}; allowed: {allowed}")
        return value

    def adapter_options(self) -> list[str]:
        prompt = [] if self.prompt is None else [f"--prompt={self.prompt}"]
        scratch = [f"--scratch={pattern}" for pattern in self.scratch]
        return [*super().adapter_options(), *prompt, *scratch]


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


TIDY: Final = AgentPlugin(table=TIDY_TABLE)
ACP: Final = AgentPlugin(adapter="draftsman.agents.acp")
PLAIN: Final = AgentPlugin(
    adapter="draftsman.agents.plain", settings=PlainSettings, needs_model=False
)
CLAUDE: Final = AgentPlugin(
    adapter="draftsman.agents.claude",
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
            "CLAUDE_CODE_MAX_RETRIES": "4",
            "DISABLE_AUTOUPDATER": "1",
        },
    },
)
CODEX: Final = AgentPlugin(
    adapter="draftsman.agents.codex",
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
