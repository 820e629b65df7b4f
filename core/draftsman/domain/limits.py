"""Which limits count for a job. Pure.

Each layer changes what it names and leaves the rest: what is built in for the type,
`[types.TYPE]`, `[agents.NAME]`, the job's own `overrides`, and last the fields of its request
(`max_attempts`, `max_retries`, `on_lost`). Budgets and `on_lost` are fixed at intake; delays and
time-outs are looked up by the worker that runs the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from draftsman.domain.job import OnLost
from draftsman.domain.retry import RetryPolicy
from draftsman.domain.run import Claimed

WEEK: Final = 86_400.0 * 7
Seconds = Annotated[float, Field(gt=0, le=WEEK)]
Changes = Mapping[str, Any]
"""Fields of RetryPolicy that somebody set."""
_FIELDS: Final = frozenset(one.name for one in fields(RetryPolicy))
_DEFAULT: Final = RetryPolicy()


class Overrides(BaseModel):
    """What a job may say of its own limits, among its `overrides`."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    max_attempts: Annotated[int, Field(ge=0, le=100)] | None = None
    max_retries: Annotated[int, Field(ge=0, le=100)] | None = None
    base_delay: Seconds | None = None
    max_delay: Seconds | None = None
    multiplier: Annotated[float, Field(ge=1, le=10)] | None = None
    timeout: Seconds | None = None
    on_lost: Literal["retry", "resume", "fail", "new_job"] | None = None


def check_overrides(overrides: Mapping[str, Any]) -> None:
    """Raise ValueError, as validators do, for a limit that cannot be meant; others pass."""
    try:
        Overrides.model_validate(dict(overrides))
    except ValidationError as error:
        first = error.errors()[0]
        message = f"{first['loc'][0]} {first['input']!r}: {first['msg']}"
        raise ValueError(message) from None


@dataclass(frozen=True, slots=True)
class Limits:
    """What is configured for types, and the changes of agents, by name."""

    types: Mapping[str, RetryPolicy]
    agents: Mapping[str, Changes] = field(default_factory=dict)

    def of(
        self,
        type: str,
        agent: str | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> RetryPolicy:
        """Return the limits of a job."""
        policy = self.types.get(type, _DEFAULT)
        changes: dict[str, Any] = {}
        if agent is not None:
            changes |= self.agents.get(agent, {})
        if overrides:
            for name in overrides.keys() & _FIELDS:
                changes |= _accepted(name, overrides[name])
        return changed(policy, changes) if changes else policy

    def of_job(self, job: Claimed) -> RetryPolicy:
        """Return the limits of a claimed job."""
        return self.of(job.type, job.agent, job.overrides)


def changed(policy: RetryPolicy, changes: Changes) -> RetryPolicy:
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
