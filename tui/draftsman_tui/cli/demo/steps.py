"""The steps of a demo: lines of its terminal, made from events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from draftsman.formats.invisible import one_line
from draftsman.value_format import network_text
from draftsman_tui.terminal.output import CommandOutput, line, styled

if TYPE_CHECKING:
    from draftsman.events.event import Event

HIDDEN: Final = frozenset({
    "answer_received", "attachment_uploaded", "delivery_sent", "iteration_finished", "job_claimed",
})  # fmt: skip


def _validation(payload: dict[str, Any]) -> str:
    outcome = "passed" if payload.get("passed") else "failed"
    return f"{payload['name']} {outcome}: {payload.get('summary', '')}"


def _sandbox(payload: dict[str, Any]) -> str:
    network = network_text(payload.get("network"), "network open", "no network")
    weaker = "; weaker than bwrap: see draftsman doctor"
    warning = weaker if payload.get("mode") == "landlock" else ""
    return f"{payload.get('mode')}, {network}{warning}"


STEPS: Final[dict[str, tuple[str, str, Callable[[dict[str, Any]], str]]]] = {
    "job_created": ("queued", "cyan", lambda _: "waiting for a worker"),
    "job_started": ("run", "cyan", lambda _: "started"),
    "repo_resolved": ("clone", "cyan", lambda payload: f"at {payload['base_sha'][:12]}"),
    "sandbox_applied": ("sandbox", "cyan", _sandbox),
    "iteration_started": (
        "agent",
        "cyan",
        lambda payload: f"{payload['agent']}, iteration {payload['iteration']}",
    ),
    "validation_ran": ("validate", "cyan", _validation),
    "agent.validation_ran": ("validate", "cyan", _validation),
    "agent.command_executed": (
        "fix",
        "cyan",
        lambda payload: f"{payload['name']}: {payload.get('summary', '')}",
    ),
    "agent.permission": ("decision", "green", lambda payload: str(payload.get("decision"))),
    "needs_input": ("parked", "yellow", lambda _: "waiting for an answer"),
    "needs_approval": ("approval", "yellow", lambda _: "waiting for an approval"),
    "answer_refused": ("refused", "red", lambda payload: str(payload.get("reason"))),
    "job_resumed": ("resumed", "green", lambda payload: f"by {', '.join(payload.get('by', ()))}"),
    "job_released": ("rescued", "green", lambda _: "continues from its last checkpoint"),
    "branch_published": (
        "branch",
        "green",
        lambda payload: f"{payload['branch']} at {payload['commit'][:12]}",
    ),
    "job_completed": ("completed", "bold green", lambda _: ""),
}
"""Label, style and text of each event kind that is a step of the demo."""


def step(event: Event) -> tuple[str, str, str]:
    """Return label, text and style of an event."""
    if event.kind in STEPS:
        label, style, text = STEPS[event.kind]
        return label, text(event.payload), style
    detail = event.payload.get("error") or event.payload.get("reason") or ""
    return event.kind.removeprefix("job_")[:10], one_line(str(detail)), "red"


class Steps:
    """Prints steps with the seconds since the start."""

    def __init__(self, out: CommandOutput) -> None:
        self.began = time.time()
        self._out = out
        self._shown = 0.0
        """Seconds of the last step that was printed."""

    def info(self, label: str, text: str, style: str = "", at: float | None = None) -> None:
        """Print a step; `at` is a Unix time, by default now.

        The time of an event may be before that of the step that was printed before it: the time
        of that step is repeated then.
        """
        if self._out.json:
            return
        self._shown = max(self._shown, (at or time.time()) - self.began)
        seconds = f"{self._shown:6.1f} s  "
        self._out.print(line(styled(seconds, "dim"), styled(f"{label:<10}", style), text))

    def show(self, event: Event, job: str = "") -> None:
        """Print an event, if it is a step of the demo, with the name of its job."""
        if self._out.json:
            self._out.item(event)
        elif event.kind not in HIDDEN:
            label, text, style = step(event)
            self.info(label, f"{job}  {text}" if job else text, style, event.created_at.timestamp())
