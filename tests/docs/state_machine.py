"""Writes the diagram and the table of docs/state-machine.md from TRANSITIONS.

python -m tests.docs.state_machine
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from draftsman.domain.job import FUSED, INITIAL, TERMINAL, TRANSITIONS, Status
from tests.docs.pages import DOCS, filled

PAGE: Final = DOCS / "state-machine.md"
S = Status
STOPPED: Final = "a person cancels it"
TRIGGERS: Final[dict[tuple[Status, Status], str]] = {
    (S.SCHEDULED, S.QUEUED): "its time came, and it never ran",
    (S.SCHEDULED, S.RESUMED): "its time came, and it ran before: it slept",
    (S.SCHEDULED, S.CANCELED): STOPPED,
    (S.QUEUED, S.CLAIMED): "a worker takes it",
    (S.QUEUED, S.CANCELED): STOPPED,
    (S.CLAIMED, S.RUNNING): "the worker has a slot for it: a run is opened",
    (S.CLAIMED, S.QUEUED): "the worker drained or died before it started it; costs nothing",
    (S.CLAIMED, S.RESUMED): "the same, for a job that ran before",
    (S.CLAIMED, S.CANCELED): STOPPED,
    (S.RUNNING, S.WAITING_FOR_INPUT): "its handler asks people; the run ends and frees its slot",
    (S.RUNNING, S.WAITING_FOR_APPROVAL): "its handler stops at a gate; the same",
    (S.RUNNING, S.SCHEDULED): "its handler sleeps; costs nothing",
    (S.RUNNING, S.COMPLETED): "its handler is done",
    (S.RUNNING, S.FAILED): "an error that trying again does not help, or lost with `on_lost` = "
    "`fail` or `new_job`",
    (S.RUNNING, S.DEAD_LETTER): "an error or a lost worker, and no attempts or retries are left",
    (S.RUNNING, S.RETRYING): "a passing error, or lost with `on_lost` = `retry`",
    (S.RUNNING, S.CANCELED): "a person canceled it, and its run ended; or its handler cancels",
    (S.RUNNING, S.RESUMED): "handed back at its checkpoint by a shutdown, which costs nothing, or "
    "lost with `on_lost` = `resume`",
    (S.WAITING_FOR_INPUT, S.RESUMED): "answered; or nobody did in time, and the question has a "
    "default or says to continue",
    (S.WAITING_FOR_INPUT, S.EXPIRED): "nobody answered in time, nor when others were asked",
    (S.WAITING_FOR_INPUT, S.CANCELED): STOPPED,
    (S.WAITING_FOR_APPROVAL, S.RESUMED): "approved by as many as it needs; or denied, and the "
    "handler takes that",
    (S.WAITING_FOR_APPROVAL, S.FAILED): "denied",
    (S.WAITING_FOR_APPROVAL, S.EXPIRED): "nobody decided in time, nor when others were asked",
    (S.WAITING_FOR_APPROVAL, S.CANCELED): STOPPED,
    (S.RESUMED, S.CLAIMED): "a worker takes it",
    (S.RESUMED, S.CANCELED): STOPPED,
    (S.RETRYING, S.QUEUED): "its next try is due",
    (S.RETRYING, S.CANCELED): STOPPED,
}


def page(text: str) -> str:
    """Return the page with its diagram and its table made anew."""
    return filled(text, [*_diagram(), "", *_table()])


def _diagram() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    for status in S:
        if status in INITIAL:
            yield f"    [*] --> {status}"
    for before, after in TRANSITIONS:
        yield f"    {before} --> {after}"
    for status in S:
        if status in TERMINAL:
            yield f"    {status} --> [*]"
    yield "```"


def _table() -> Iterator[str]:
    yield "| from | to | event | what triggers it |"
    yield "|---|---|---|---|"
    for status in S:
        if status in INITIAL:
            yield f"| (new) | {status} | `job_created` | {_NEW[status]} |"
    for (before, after), kind in TRANSITIONS.items():
        yield f"| {before} | {after} | `{kind}` | {TRIGGERS[before, after]} |"
    yield ""
    for (before, after), between in FUSED.items():
        yield f"- {before} → {after} is written at once: {between} is passed on the way, and both"
        yield "  events are left."


_NEW: Final = {
    S.SCHEDULED: "a request that is due later",
    S.QUEUED: "a request",
}

if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
