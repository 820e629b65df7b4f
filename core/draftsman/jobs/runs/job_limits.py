"""Effective limits of a job. Pure.

Each layer overrides single limits of the layers before: the built-in limits of the type,
`[types.TYPE]`, `[agents.NAME]`, `[tools.NAME]`, the job's `overrides`, and the fields of its
request (`max_attempts`, `max_retries`, `on_lost`). Budgets and `on_lost` are fixed when the job is
submitted; delays and timeouts are those of the worker that runs it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from draftsman import field_errors
from draftsman.errors import RejectedField
from draftsman.jobs.job import OnLost
from draftsman.jobs.retries import BUILT_IN, RetryPolicy
from draftsman.jobs.runs.run import ClaimedJob

if TYPE_CHECKING:
    from draftsman.settings import Settings

WEEK: Final = 86_400.0 * 7
TOOL_TYPE: Final = "execute_tool"
Seconds = Annotated[float, Field(gt=0, le=WEEK)]
LimitChanges = Mapping[str, Any]
"""Fields of RetryPolicy to override."""
_FIELDS: Final = frozenset(item.name for item in fields(RetryPolicy))
_DEFAULT: Final = RetryPolicy()


class Overrides(BaseModel):
    """Limits among the `overrides` of a job."""

    model_config = ConfigDict(defer_build=True, extra="ignore", strict=True, allow_inf_nan=False)

    max_attempts: Annotated[int, Field(ge=1, le=100)] | None = None
    max_retries: Annotated[int, Field(ge=0, le=100)] | None = None
    base_delay: Seconds | None = None
    max_delay: Seconds | None = None
    multiplier: Annotated[float, Field(ge=1, le=10)] | None = None
    timeout: Seconds | None = None
    step_timeout: Seconds | None = None
    call_timeout: Seconds | None = None
    connect_timeout: Seconds | None = None
    idle_timeout: Seconds | None = None
    on_lost: Literal["retry", "resume", "fail", "new_job"] | None = None


KNOWN_OVERRIDES: Final = ("answers", *sorted(Overrides.model_fields))
"""Limits, and answers to questions that the job will ask."""
TYPING_ERROR: Final = 0.8
"""Similarity from which an unknown override is taken for a misspelled limit."""


def check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raise ValueError for an invalid or misspelled limit; a handler may read other overrides."""
    for name in overrides:
        if name not in KNOWN_OVERRIDES and (near := _near(name, TYPING_ERROR)):
            raise ValueError(f"unknown override {name[:60]}; did you mean {near}?")
    try:
        Overrides.model_validate(dict(overrides))
    except ValidationError as error:
        key, problem = field_errors.first_error(error)
        raise ValueError(f"{key} {error.errors()[0]['input']!r}: {problem}") from None


def check_override_names(
    type: str, overrides: Mapping[str, Any], replaced: Container[str] = ()
) -> None:
    """Raise RejectedField for an override that a built-in type does not read.

    `replaced` has the built-in types with a configured handler.
    """
    if type not in BUILT_IN or type in replaced:
        return
    for name in overrides:
        if name not in KNOWN_OVERRIDES:
            near = _near(name, 0.6)
            hint = f"did you mean {near}?" if near else f"known: {', '.join(KNOWN_OVERRIDES)}"
            problem = f"unknown override {name[:60]}; {hint}"
            raise RejectedField(
                f"overrides: {problem}",
                field="overrides",
                rule="unknown",
                problem=problem,
                value=name,
                known=KNOWN_OVERRIDES,
            )


def _near(name: str, cutoff: float) -> str:
    return " or ".join(get_close_matches(name, KNOWN_OVERRIDES, 3, cutoff))


@dataclass(frozen=True, slots=True)
class JobLimits:
    """Limits of job types, and their overrides by agents and tools."""

    types: Mapping[str, RetryPolicy]
    agents: Mapping[str, LimitChanges] = field(default_factory=dict)
    tools: Mapping[str, LimitChanges] = field(default_factory=dict)
    replaced: Set[str] = frozenset()
    """Built-in types with a configured handler, which validates the payload itself."""
    concurrency_keys: Mapping[str, str] = field(default_factory=dict)
    """Default concurrency keys of types, with placeholders."""
    configured: Mapping[str, LimitChanges] = field(default_factory=dict)
    """The limits of types that the configuration sets."""
    key_paths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Paths of types, of which their keys have the first that a request names."""
    _nested: dict[str, RetryPolicy] = field(init=False)
    """Cached limits of jobs without overrides."""

    def __post_init__(self) -> None:
        nested = {name: policy.nested() for name, policy in self.types.items()}
        object.__setattr__(self, "_nested", nested)

    def of(
        self,
        type: str,
        agent: str | None = None,
        payload: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> RetryPolicy:
        """Return the limits of a job, with each timeout capped by the enclosing timeout."""
        changes: dict[str, Any] = {}
        if agent is not None:
            changes |= self.agents.get(agent, {})
        if type == TOOL_TYPE and payload is not None:
            changes |= self.tools.get(str(payload.get("tool")), {})
        if overrides:
            for name in overrides.keys() & _FIELDS:
                changes |= _accepted(name, overrides[name])
        if not changes:
            return self._nested.get(type, _DEFAULT)
        return with_limit_changes(self.types.get(type, _DEFAULT), changes).nested()

    def of_job(self, job: ClaimedJob) -> RetryPolicy:
        """Return the limits of a claimed job; parses only the required columns."""
        agent = None if job.request is None else job.request.agent
        if agent is None and not job.has_overrides and job.type != TOOL_TYPE:
            return self._nested.get(job.type, _DEFAULT)
        payload = job.payload if job.type == TOOL_TYPE else None
        return self.of(job.type, agent, payload, job.overrides)


def configured_limits(settings: Settings) -> JobLimits:
    """Return the limits of job types, agents and tools; the configuration overrides built-ins."""
    types = dict(BUILT_IN)
    for name, section in settings.types.items():
        types[name] = with_limit_changes(types.get(name, _DEFAULT), section.limits())
    return JobLimits(
        types=types,
        agents={name: agent.limits() for name, agent in settings.agents.items()},
        tools={name: tool.limits() for name, tool in settings.tools.items()},
        replaced=settings.handlers.keys() & BUILT_IN.keys(),
        configured={name: section.limits() for name, section in settings.types.items()},
        concurrency_keys={
            name: section.concurrency_key
            for name, section in settings.types.items()
            if section.concurrency_key is not None
        },
        key_paths={
            name: section.key_paths for name, section in settings.types.items() if section.key_paths
        },
    )


def with_limit_changes(policy: RetryPolicy, changes: LimitChanges) -> RetryPolicy:
    """Return the policy with the changed fields."""
    if "on_lost" in changes:
        changes = {**changes, "on_lost": OnLost(changes["on_lost"])}
    return replace(policy, **changes)


def _accepted(name: str, value: Any) -> dict[str, Any]:
    """Return the override, or nothing for an invalid value in an older row."""
    try:
        return Overrides.model_validate({name: value}).model_dump(exclude_none=True)
    except ValidationError:
        return {}
