"""Writes the diagram and the table of docs/state-machine.md from TRANSITIONS.

python -m tests.docs.state_machine
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from draftsman.jobs.job import FUSED, INITIAL, TERMINAL, TRANSITIONS, Status
from tests.docs.pages import DOCS, filled

PAGE: Final = DOCS / "state-machine.md"
S = Status
STOPPED: Final = "a person cancels it"
TRIGGERS: Final[dict[tuple[Status, Status], str]] = {
    (S.SCHEDULED, S.QUEUED): "it is due, and never ran",
    (S.SCHEDULED, S.RESUMED): "it is due, and ran before: it slept",
    (S.SCHEDULED, S.CANCELED): STOPPED,
    (S.QUEUED, S.CLAIMED): "a worker claims it",
    (S.QUEUED, S.CANCELED): STOPPED,
    (S.CLAIMED, S.RUNNING): "the worker has a slot for it: a run is opened",
    (S.CLAIMED, S.QUEUED): "the worker drained or died before the start; not an attempt",
    (S.CLAIMED, S.RESUMED): "the same, for a job that ran before",
    (S.CLAIMED, S.CANCELED): STOPPED,
    (
        S.RUNNING,
        S.WAITING_FOR_INPUT,
    ): "its handler asks a question; the run ends and frees its slot",
    (S.RUNNING, S.WAITING_FOR_APPROVAL): "its handler requests an approval; the same",
    (S.RUNNING, S.SCHEDULED): "its handler sleeps; not an attempt",
    (S.RUNNING, S.COMPLETED): "its handler returns a result",
    (S.RUNNING, S.FAILED): "an error that a retry cannot help, or lost with `on_lost` = "
    "`fail` or `new_job`",
    (S.RUNNING, S.DEAD_LETTER): "an error or a lost worker, and no attempts or retries are left",
    (S.RUNNING, S.RETRYING): "a temporary error, or lost with `on_lost` = `retry`",
    (
        S.RUNNING,
        S.CANCELED,
    ): "a person canceled it, and its run ended; or its handler returns `Cancel`",
    (S.RUNNING, S.RESUMED): "released at its checkpoint by a shutdown (not an attempt), or "
    "lost with `on_lost` = `resume`",
    (S.WAITING_FOR_INPUT, S.RESUMED): "answered; or expired with a default or `continue`",
    (S.WAITING_FOR_INPUT, S.EXPIRED): "the question expired, after its escalation if any",
    (S.WAITING_FOR_INPUT, S.CANCELED): STOPPED,
    (S.WAITING_FOR_APPROVAL, S.WAITING_FOR_INPUT): "its approvals are decided, and another question"
    " of the run is open",
    (S.WAITING_FOR_APPROVAL, S.RESUMED): "approved with its quorum; or denied with "
    "`on_deny` = `continue`; or changes were requested",
    (S.WAITING_FOR_APPROVAL, S.FAILED): "denied",
    (S.WAITING_FOR_APPROVAL, S.EXPIRED): "the approval expired, after its escalation if any",
    (S.WAITING_FOR_APPROVAL, S.CANCELED): STOPPED,
    (S.RESUMED, S.CLAIMED): "a worker claims it",
    (S.RESUMED, S.CANCELED): STOPPED,
    (S.RETRYING, S.QUEUED): "its next attempt is due",
    (S.RETRYING, S.CANCELED): STOPPED,
}


def page(text: str) -> str:
    """Return the page with a current diagram and table."""
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
    yield "| from | to | event | trigger |"
    yield "|---|---|---|---|"
    for status in S:
        if status in INITIAL:
            yield f"| (new) | {status} | `job_created` | {_NEW[status]} |"
    for (before, after), kind in TRANSITIONS.items():
        yield f"| {before} | {after} | `{kind}` | {TRIGGERS[before, after]} |"
    yield ""
    for (before, after), between in FUSED.items():
        yield f"- {before} → {after} is a single write through {between}, with both events."


_NEW: Final = {
    S.SCHEDULED: "a request that is due later",
    S.QUEUED: "a request",
}

if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
