"""The steps of a demo: lines of its terminal, made from events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from draftsman.formats.invisible import one_line
from draftsman.jobs.details.sections.event_sentences import event_sentence
from draftsman.jobs.details.sections.section import plain
from draftsman_tui.terminal.output import CommandOutput, line, styled

if TYPE_CHECKING:
    from draftsman.events.event import Event
    from draftsman.jobs.details.sections.section import Reader

HIDDEN: Final = frozenset({
    "answer_received", "attachment_uploaded", "delivery_sent", "iteration_finished", "job_claimed",
})  # fmt: skip


STEPS: Final[dict[str, tuple[str, str]]] = {
    "job_created": ("queued", "cyan"),
    "job_started": ("run", "cyan"),
    "repo_resolved": ("clone", "cyan"),
    "sandbox_applied": ("sandbox", "cyan"),
    "iteration_started": ("agent", "cyan"),
    "validation_ran": ("validate", "cyan"),
    "agent.validation_ran": ("validate", "cyan"),
    "agent.command_executed": ("fix", "cyan"),
    "agent.permission": ("decision", "green"),
    "needs_input": ("parked", "yellow"),
    "needs_approval": ("approval", "yellow"),
    "answer_refused": ("refused", "red"),
    "job_resumed": ("resumed", "green"),
    "job_released": ("rescued", "green"),
    "branch_published": ("branch", "green"),
    "job_completed": ("completed", "bold green"),
}
"""Label and style of each event kind that is a step of the demo."""


def label_of(kind: str) -> tuple[str, str]:
    """Return label and style of an event kind; one that is no step of the story has its word."""
    word = kind.removeprefix("job_").partition("_")[0]
    return STEPS.get(kind, (word[:9], "red"))


def step(event: Event, reader: Reader) -> tuple[str, str, str]:
    """Return label, sentence and style of an event."""
    label, style = label_of(event.kind)
    text = one_line(plain(event_sentence(event, reader)))
    if event.payload.get("mode") == "landlock":
        text += "; weaker than bwrap: see draftsman doctor"
    return label, text, style


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

    def show(self, event: Event, reader: Reader, job: str = "") -> None:
        """Print an event, if it is a step of the demo, with the name of its job."""
        if self._out.json:
            self._out.item(event)
        elif event.kind not in HIDDEN:
            label, text, style = step(event, reader)
            self.info(label, f"{job}  {text}" if job else text, style, event.created_at.timestamp())
