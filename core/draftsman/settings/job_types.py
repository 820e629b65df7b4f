"""Job types, and the limits of types, agents and tools."""

from __future__ import annotations

from string import Formatter
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from draftsman.field_errors import matching
from draftsman.settings.section import Section

_WEEK = 86_400.0 * 7
KEY_PLACEHOLDERS = ("repo", "path", "type", "queue", "agent")
"""Values of a job that a concurrency key of its type may contain."""
_KeyPath = Annotated[
    str,
    Field(max_length=200),
    matching(
        r"(?!\.{0,2}/)[^*?\[\s]+",
        "must be a folder or a file from the top folder, without a pattern",
    ),
]


class LimitSettings(Section):
    """Limits of a job type, an agent or a tool; unset limits are inherited."""

    max_attempts: int | None = Field(None, ge=1, le=100)
    """Runs that may be lost, or fail by the infrastructure or an unexpected exception."""
    max_retries: int | None = Field(None, ge=0, le=100)
    """Retries after errors of the work itself, unexpected exceptions included."""
    base_delay: float | None = Field(None, gt=0, le=_WEEK)
    """Seconds before the first application retry, before jitter."""
    max_delay: float | None = Field(None, gt=0, le=_WEEK)
    """Maximum seconds between two application retries."""
    multiplier: float | None = Field(None, ge=1, le=10)
    """Growth factor of the delay between retries."""
    timeout: float | None = Field(None, gt=0)
    """Seconds of running time of all runs, without waiting for people."""
    step_timeout: float | None = Field(None, gt=0)
    """Timeout of a step, in seconds."""
    call_timeout: float | None = Field(None, gt=0)
    """Timeout of an outbound call, in seconds."""
    connect_timeout: float | None = Field(None, gt=0)
    """Timeout of a connection, or of the start of a tool, in seconds."""
    idle_timeout: float | None = Field(None, gt=0)
    """Timeout between two chunks of a response, in seconds."""
    on_lost: Literal["retry", "resume", "fail", "new_job"] | None = None
    """Policy for a job whose worker died during a run."""

    @model_validator(mode="after")
    def _check_delays(self) -> Self:
        if self.base_delay and self.max_delay and self.base_delay > self.max_delay:
            raise ValueError(f"base_delay must not be more than max_delay, {self.max_delay:g}")
        return self

    def limits(self) -> dict[str, Any]:
        """Return the limits that are set."""
        return self.model_dump(include=set(LimitSettings.model_fields), exclude_none=True)


class TypeSettings(LimitSettings):
    """Limits of a job type; unset limits are the built-in limits."""

    concurrency_key: str | None = Field(None, min_length=1, max_length=200)
    """Concurrency key of jobs whose request has none; `{repo}` is the repository of the job."""
    key_paths: Annotated[tuple[_KeyPath, ...], Field(max_length=1000)] = ()
    """Folders and files: `{path}` of the key is the first of them that the request names."""
    unhandled: Literal["wait", "fail"] = "wait"
    """What happens to a job while no live worker handles its type."""

    @field_validator("concurrency_key")
    @classmethod
    def _check_placeholders(cls, value: str | None) -> str | None:
        for _, name, spec, conversion in Formatter().parse(value or ""):
            if name is not None and (name not in KEY_PLACEHOLDERS or spec or conversion):
                allowed = ", ".join(f"{{{item}}}" for item in KEY_PLACEHOLDERS)
                raise ValueError(f"unknown placeholder {{{name}}}; allowed: {allowed}")
        return value

    @model_validator(mode="after")
    def _check_paths(self) -> Self:
        if ("{path}" in (self.concurrency_key or "")) != bool(self.key_paths):
            raise ValueError("concurrency_key with {path}, and key_paths, need each other")
        return self
