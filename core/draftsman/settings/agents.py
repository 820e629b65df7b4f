"""Settings of agents."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, PrivateAttr, field_validator

from draftsman.settings.known_agents import NO_REPO_CONFIG
from draftsman.settings.network import Network
from draftsman.settings.tables import LimitSettings

AgentKind = Literal["json", "acp", "claude", "codex", "plain"]
PROMPT_PLACEHOLDERS = ("title", "text", "job", "branch", "history")
"""Values of a job that the prompt of a plain program may contain."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class AgentSettings(LimitSettings):
    """An agent for `run_agent`, and the limits of its jobs."""

    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments; `{python}` is this interpreter."""
    kind: AgentKind = "json"
    """Protocol of the program: `json`, the agent protocol; `acp`, the Agent Client Protocol;
    `claude`, that of Claude Code; `codex`, its app-server; or `plain`, none."""
    prompt: str | None = Field(None, min_length=1, max_length=20_000)
    """Prompt of a plain program, with placeholders; None: title, text and history."""
    scratch: tuple[str, ...] = ()
    """Untracked files of a plain program in the workspace, as patterns of git; they are removed."""
    session_mode: str | None = Field(None, min_length=1, max_length=100)
    """Mode of a session, which is set and verified; None: the agent's own default."""
    session_files: tuple[str, ...] = ()
    """Files and folders below HOME with the agent's session; stored with checkpoints."""
    allowed_tools: tuple[str, ...] = ()
    """Tools of an agent of kind `claude` that need no permission."""
    version: str | None = Field(None, max_length=100)
    """Version of the agent, recorded with each run."""
    env: dict[str, str] = Field({})
    """Environment variables."""
    pass_env: tuple[str, ...] = ()
    """Names of inherited variables, besides the allowlist."""
    network: Network = False
    """Its network, within that of its repository's profile."""
    gateway: str | None = None
    """Gateway for its model: a name in `[gateways]`; None: it has a key and a network itself."""
    submit_jobs: bool = False
    """Whether it may submit jobs for its repository, by the MCP server of its gateway."""

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
