"""Schedules that a job type declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from draftsman.errors import ConfigError, UsageError
from draftsman.job_types.parameters import Parameters
from draftsman.schedules.names import check_name
from draftsman.schedules.phrases import whole_phrase
from draftsman.schedules.schedule import parse_rule


class Every:
    """When the jobs of a type are submitted, and with which parameters.

    Every("monday at 7:00", zone="Europe/Berlin", region="us")

    The text is a phrase of docs/schedules.md without its first word, or a cron expression. A
    schedule has the name of its type; a further one has a `suffix`, by default a number.
    `parameters` are those that have the name of an argument.
    """

    def __init__(
        self,
        text: str,
        /,
        *,
        zone: str = "UTC",
        suffix: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        self.text = text
        self.zone = zone
        self.suffix = suffix
        self.parameters = {**(parameters or {}), **more}


def described_schedules(
    name: str, parameters: Parameters, schedule: Every | Sequence[Every] | None
) -> tuple[dict[str, Any], ...]:
    """Return the schedules of a type as data; raises ConfigError, also for its parameters."""
    every = [schedule] if isinstance(schedule, Every) else list(schedule or ())
    described: list[dict[str, Any]] = []
    for number, each in enumerate(every, 1):
        suffix = each.suffix or (str(number) if number > 1 else "")
        full_name = f"{name}-{suffix}" if suffix else name
        if any(other["name"] == full_name for other in described):
            raise ConfigError(f"{name}: schedule: {full_name} is declared twice; use suffix=")
        try:
            check_name(full_name)
            described.append({"name": full_name} | _rule(each) | _payload(each, parameters))
        except UsageError as error:
            raise ConfigError(f"{name}: schedule {each.text!r}: {error}") from None
    return tuple(described)


def _rule(every: Every) -> dict[str, str]:
    """Return the rule in its normal form, and its zone; raises UsageError."""
    if len(every.text.split()) == 5 and every.text[:1] in "0123456789*":
        return {"rule": parse_rule(every.text, every.zone), "zone": every.zone}
    phrase = whole_phrase(f"every {every.text}")
    zone = phrase.zone or every.zone
    return {"rule": phrase.rule(zone, datetime.now(UTC)), "zone": zone}


def _payload(every: Every, parameters: Parameters) -> dict[str, Any]:
    return {"payload": parameters.checked(every.parameters)}
