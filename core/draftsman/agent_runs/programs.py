"""The agent and the kinds of agents of the core, as entry points of `draftsman.agents`."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field, field_validator

from draftsman.settings.agents import TIDY as TIDY_TABLE
from draftsman.settings.agents import AgentPlugin, AgentSettings

PROMPT_PLACEHOLDERS: Final = ("title", "text", "job", "branch", "history")
"""Values of a job that the prompt of a plain program may contain."""
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


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


TIDY: Final = AgentPlugin(table=TIDY_TABLE)
ACP: Final = AgentPlugin(adapter="draftsman.agents.acp")
PLAIN: Final = AgentPlugin(
    adapter="draftsman.agents.plain", settings=PlainSettings, needs_model=False
)
