"""Text rendering of events, logs and archived months."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from draftsman.domain.ids import actor_name
from draftsman.domain.retries.error_classes import ErrorClass
from draftsman_tui.common import times
from draftsman_tui.common.job_text import DENIED
from draftsman_tui.common.output import line, one_line, styled

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from draftsman.domain.event import Event


LONGEST = 100
"""Characters that a line shows of one value; --json has all."""
STYLES = {
    "completed": "green",
    "failed": "red",
    "dead_letter": "red",
    "expired": "red",
    "waiting_for_input": "yellow",
    "waiting_for_approval": "yellow",
}


def no_log(number: int, kept: int | None) -> str:
    """Return that a job has no log; `kept` is the months after its end for which it had one."""
    return f"D-{number} logged nothing" + (f", or it ended over {kept} months ago" if kept else "")


def event_text(event: Event, *, name: bool = False, now: datetime | None = None) -> Text:
    """Return one event on one line."""
    moved = f" {event.to_status.replace('_', ' ')}" if event.to_status else ""
    denied = event.payload.get("error_class") == ErrorClass.DENIED
    style = DENIED if denied else STYLES.get(event.to_status or "", "cyan")
    detail = "  ".join(f"{key}={_value(value)}" for key, value in event.payload.items())
    return line(
        styled(times.clock(event.created_at, now), "dim"),
        styled(f"  D-{event.job}" if name else "", "bold"),
        f"  {event.kind}",
        styled(f" →{moved}" if moved else "", style),
        styled(f"  {actor_name(event.actor)}", "dim"),
        f"  {detail}" if detail else "",
    )


def _value(value: object) -> str:
    text = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def missing_months(parts: Sequence[Any]) -> Iterator[str]:
    """Yield a line for each month that left: what is missing here, and where it is."""
    for one in parts:
        count = f"{one.events:,} event{'' if one.events == 1 else 's'}"
        yield f"{count} of {one.month:%Y-%m} left for {one.host}:{one.path}"
