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

    max_attempts: int | None = Field(None, ge=1, le=100, examples=[3])
    """Runs that may be lost, or fail by the infrastructure or an exception. Unset: the type's."""
    max_retries: int | None = Field(None, ge=0, le=100, examples=[5])
    """Retries after errors of the work, exceptions included. Unset: the type's."""
    base_delay: float | None = Field(None, gt=0, le=_WEEK, examples=[1.0])
    """Seconds before the first retry, without jitter. Unset: the type's."""
    max_delay: float | None = Field(None, gt=0, le=_WEEK, examples=[60.0])
    """Maximum delay between retries, in seconds. Unset: the type's."""
    multiplier: float | None = Field(None, ge=1, le=10, examples=[2.0])
    """Multiplier of the delay after each retry. Unset: the type's."""
    timeout: float | None = Field(None, gt=0, examples=[3600.0])
    """Running time of all runs in seconds, without waits for people. Unset: the type's."""
    step_timeout: float | None = Field(None, gt=0, examples=[600.0])
    """Timeout of a step in seconds. Each timeout is limited by its outer timeout: job (`timeout`) >
    step > call > connect, and idle within call. Unset: the type's, else 600."""
    call_timeout: float | None = Field(None, gt=0, examples=[120.0])
    """Timeout of an external call in seconds, from start to the last byte. Unset: the type's."""
    connect_timeout: float | None = Field(None, gt=0, examples=[30.0])
    """Seconds to connect, or to start a tool. Unset: the type's."""
    idle_timeout: float | None = Field(None, gt=0, examples=[60.0])
    """Seconds between two chunks of a response. Unset: the type's; 60 for llm_generate, else
    none."""
    on_lost: Literal["retry", "resume", "fail", "new_job"] | None = Field(None, examples=["resume"])
    """Action when a worker dies: `retry` after a delay, `resume` at once from the checkpoint,
    `fail`, or `new_job`, which starts from the beginning. Unset: the type's."""

    @model_validator(mode="after")
    def _check_delays(self) -> Self:
        if self.base_delay and self.max_delay and self.base_delay > self.max_delay:
            raise ValueError(f"base_delay must not be more than max_delay, {self.max_delay:g}")
        return self

    def limits(self) -> dict[str, Any]:
        """Return the limits that are set."""
        return self.model_dump(include=set(LimitSettings.model_fields), exclude_none=True)


class TypeSettings(LimitSettings):
    """Limits of a job type. Unset keys keep the built-in limits (docs/job-types.md).

    [agents.NAME] and [tools.NAME] take the same limits and override them for their jobs; the
    overrides of a job, as of draftsman submit --override call_timeout=60, override both
    (docs/failure.md). Budgets and on_lost are fixed when a job is submitted; delays and the timeout
    come from the worker that runs it.
    """

    concurrency_key: str | None = Field(
        None, min_length=1, max_length=200, examples=["{repo}:{path}"]
    )
    """Concurrency key of requests without one: jobs with the same key run one at a time. {repo},
    {type}, {queue} and {agent} are those of the job; without a value for one of them it gets no
    key. Unset: none."""
    key_paths: Annotated[tuple[_KeyPath, ...], Field(max_length=1000)] = Field(
        (), examples=[["db/migrate/", "src/billing/"]]
    )
    """Folders and files: {path} in the key is the first of them that the title or text of the
    request names. Jobs on the same path run one at a time, others at once
    (docs/policies.md#work-that-collides)."""
    unhandled: Literal["wait", "fail"] = "wait"
    """"wait": a job waits while no live worker handles its type, however long. "fail": the leader,
    by its own configuration, fails the jobs of this type that could be claimed then."""

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
