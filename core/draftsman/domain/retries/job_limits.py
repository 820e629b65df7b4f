"""Which limits count for a job. Pure.

Each layer changes what it names and leaves the rest: what is built in for the type,
`[types.TYPE]`, `[agents.NAME]`, `[tools.NAME]`, the job's own `overrides`, and last the fields of
its request (`max_attempts`, `max_retries`, `on_lost`). Budgets and `on_lost` are fixed at intake;
delays and time-outs are looked up by the worker that runs the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from draftsman import field_errors
from draftsman.domain.job import OnLost
from draftsman.domain.retries.retry_policy import RetryPolicy
from draftsman.domain.run import ClaimedJob

WEEK: Final = 86_400.0 * 7
TOOL_TYPE: Final = "execute_tool"
Seconds = Annotated[float, Field(gt=0, le=WEEK)]
LimitChanges = Mapping[str, Any]
"""Fields of RetryPolicy that somebody set."""
_FIELDS: Final = frozenset(one.name for one in fields(RetryPolicy))
_DEFAULT: Final = RetryPolicy()


class Overrides(BaseModel):
    """What a job may say of its own limits, among its `overrides`."""

    model_config = ConfigDict(defer_build=True, extra="ignore", strict=True, allow_inf_nan=False)

    max_attempts: Annotated[int, Field(ge=0, le=100)] | None = None
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


def check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raise ValueError, as validators do, for a limit that cannot be meant; others pass."""
    try:
        Overrides.model_validate(dict(overrides))
    except ValidationError as error:
        key, problem = field_errors.first_error(error)
        raise ValueError(f"{key} {error.errors()[0]['input']!r}: {problem}") from None


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What is configured for types, and the changes of agents and tools, by name."""

    types: Mapping[str, RetryPolicy]
    agents: Mapping[str, LimitChanges] = field(default_factory=dict)
    tools: Mapping[str, LimitChanges] = field(default_factory=dict)
    replaced: Set[str] = frozenset()
    """Built-in types that have a handler of the configuration: their payload is its affair."""
    _nested: dict[str, RetryPolicy] = field(init=False)
    """What most jobs get: nothing but their type's limits."""

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
        """Return the limits of a job, every inner time-out cut to the one around it."""
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
        """Return the limits of a claimed job; looks at no more of its columns than it must."""
        payload = job.payload if job.type == TOOL_TYPE else None
        return self.of(job.type, job.agent, payload, job.overrides)


def with_limit_changes(policy: RetryPolicy, changes: LimitChanges) -> RetryPolicy:
    """Return the policy with some of its fields set."""
    if "on_lost" in changes:
        changes = {**changes, "on_lost": OnLost(changes["on_lost"])}
    return replace(policy, **changes)


def _accepted(name: str, value: Any) -> dict[str, Any]:
    """Return the one override, or nothing when an older row holds what is not allowed."""
    try:
        return Overrides.model_validate({name: value}).model_dump(exclude_none=True)
    except ValidationError:
        return {}
