"""Activity of an agent: a stream of messages, tools, files, plan and usage, and its text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol

from draftsman.formats.amounts import counted, format_money
from draftsman.formats.truncation import truncate
from draftsman.text import first_line

TEXT: Final = 4000
"""Maximum characters of a row; a longer message is continued by the next row."""
TITLE: Final = 500
"""Maximum characters of the title of a call, of a path and of a step of the plan."""
BATCH_ROWS: Final = 100
BATCH_CHARACTERS: Final = 64 * 1024
"""Maximum rows and characters of a batch; the buffer omits further activity."""
PLAN_ENTRIES: Final = 50
"""Maximum steps of a plan."""
HOLD: Final = 3.0
"""Seconds that the last line of a message waits for its end, so that secrets in it are found."""


class ActivityKind(StrEnum):
    """Kind of a row of the stream; the worker writes `usage` and `note`, the agent the others."""

    MESSAGE = "message"
    THOUGHT = "thought"
    TOOL = "tool"
    FILE = "file"
    PLAN = "plan"
    USAGE = "usage"
    NOTE = "note"


TEXT_KINDS: Final = frozenset({ActivityKind.MESSAGE, ActivityKind.THOUGHT})
"""Kinds whose text may be continued."""


class ActivityState(StrEnum):
    """State of a call of a tool, of a file, or of a step of the plan."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Activity:
    """A row before it is stored; `continues`: it goes on with the text of the row before it.

    `detail` has the kind of a `tool`, the `entries` of a plan, or the counts of a usage.
    """

    kind: ActivityKind
    text: str
    state: ActivityState | None = None
    key: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    continues: bool = False


@dataclass(frozen=True, slots=True)
class ActivityRow:
    """A stored row; `seq` is its position in its run."""

    run: int
    seq: int
    kind: str
    state: str | None
    key: str | None
    text: str
    detail: dict[str, Any]
    continues: bool
    created_at: datetime


def plan_progress(entries: Any) -> tuple[int, int]:
    """Return how many steps of a plan are completed, and their number."""
    steps = entries if isinstance(entries, list | tuple) else ()
    return sum(step.get("state") == ActivityState.COMPLETED for step in steps), len(steps)


def of_usage(amounts: Mapping[str, Any]) -> Activity:
    """Return the usage of a run so far."""
    names = ("input_tokens", "output_tokens", "cost_usd")
    counts = {name: amounts[name] for name in names if amounts.get(name)}
    return Activity(ActivityKind.USAGE, "", key="usage", detail=counts)


class ActivityBuffer:
    """Activity that is not stored yet; `mask` replaces secrets in a text."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._rows: list[Activity] = []
        self._characters = 0
        self._omitted = 0
        self._held_since: float | None = None

    def __bool__(self) -> bool:
        return bool(self._rows or self._omitted)

    def add(self, item: Activity) -> None:
        """Add activity, or count it as omitted if the batch is full."""
        if item.kind in TEXT_KINDS:
            self._add_text(item)
            return
        item = self._cleaned(item)
        for at, other in enumerate(self._rows):
            if (other.kind, other.key) == (item.kind, item.key):
                self._rows[at] = item
                return
        self._append(item)

    def _cleaned(self, item: Activity) -> Activity:
        """Mask secrets before texts are shortened: a part of a secret would not be found."""
        key = None if item.key is None else truncate(self._mask(item.key), TITLE)
        detail = self._masked(item.detail)
        if "entries" in detail:
            steps = detail["entries"]
            entries = [step | {"text": truncate(step["text"], TITLE)} for step in steps]
            detail = detail | {"entries": entries}
        return replace(item, text=truncate(self._mask(item.text), TITLE), key=key, detail=detail)

    def take(self, now: float, *, final: bool = False) -> list[Activity]:
        """Return the batch, without a line whose end may still come; `now` is monotonic."""
        rows = self._rows
        self._rows = []
        self._characters = 0
        if not final:
            rows = self._hold_back(rows, now)
        if self._omitted and (final or rows):
            text = f"{self._omitted:,} characters of activity omitted"
            rows.append(Activity(ActivityKind.NOTE, text))
            self._omitted = 0
        return [
            replace(row, text=self._mask(row.text), detail=self._masked(row.detail)) for row in rows
        ]

    def _add_text(self, item: Activity) -> None:
        text = item.text
        continues = item.continues
        if continues and self._rows and self._rows[-1].kind is item.kind:
            last = self._rows[-1]
            room = max(0, min(TEXT - len(last.text), BATCH_CHARACTERS - self._characters))
            part = _first_part(text, room)
            self._rows[-1] = replace(last, text=last.text + part)
            self._characters += len(part)
            text = text[len(part) :]
        while text:
            part = _first_part(text, TEXT)
            if not self._append(replace(item, text=part, continues=continues)):
                self._omitted += len(text) - len(part)
                return
            text = text[len(part) :]
            continues = True

    def _append(self, item: Activity) -> bool:
        full = len(self._rows) >= BATCH_ROWS
        if full or self._characters + len(item.text) > BATCH_CHARACTERS:
            self._omitted += len(item.text)
            return False
        self._rows.append(item)
        self._characters += len(item.text)
        return True

    def _hold_back(self, rows: list[Activity], now: float) -> list[Activity]:
        """Keep the unfinished line at the end of a message for the next batch."""
        last = rows[-1] if rows else None
        if last is None or last.kind not in TEXT_KINDS or len(last.text) >= TEXT:
            self._held_since = None
            return rows
        head, newline, tail = last.text.rpartition("\n")
        if newline and not tail:
            self._held_since = None
            return rows
        if self._held_since is None or newline:
            self._held_since = now
        if now - self._held_since >= HOLD:
            self._held_since = None
            return rows
        held = replace(last, text=tail, continues=last.continues or bool(newline))
        self._rows = [held]
        self._characters = len(tail)
        complete = rows[:-1]
        if newline:
            complete.append(replace(last, text=head + newline))
        return complete

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._mask(value)
        if isinstance(value, Mapping):
            return {key: self._masked(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(item) for item in value]
        return value


def _first_part(text: str, most: int) -> str:
    """Return the beginning of a text, cut after white space, so that no secret is cut."""
    if len(text) <= most:
        return text
    end = max(text.rfind(" ", 0, most), text.rfind("\n", 0, most)) + 1
    return text[: end or most]


# Activity as lines of text, for terminals and chat.


MARKS: Final[Mapping[str, str]] = {
    ActivityState.PENDING: "?",
    ActivityState.RUNNING: "▸",
    ActivityState.COMPLETED: "✓",
    ActivityState.FAILED: "✗",
}
"""State of a call of a tool, as a mark."""


class ActivityFields(Protocol):
    """What the text of an activity is made from."""

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def text(self) -> str:
        """Its text."""

    @property
    def state(self) -> str | None:
        """Its state."""

    @property
    def detail(self) -> Mapping[str, Any]:
        """Its details."""


def activity_text(row: ActivityFields) -> str:
    """Return a row as text: `✓ execute: npm test`, `[plan] 3 of 7 steps: write tests`."""
    match row.kind:
        case ActivityKind.MESSAGE | ActivityKind.THOUGHT:
            return row.text
        case ActivityKind.TOOL:
            return call_text(row.state, row.detail.get("tool"), row.text)
        case ActivityKind.FILE:
            return f"[{row.state or 'changed'}] {row.text}"
        case ActivityKind.PLAN:
            return f"[plan] {plan_text(row.detail.get('entries'))}"
        case ActivityKind.USAGE:
            return f"[usage] {usage_text(row.detail)}"
        case _:
            return f"[{row.kind}] {row.text}"


def call_text(state: str | None, tool: str | None, title: str) -> str:
    """Return a call of a tool as text: `▸ execute: npm test`."""
    return f"{MARKS.get(state or '', '·')} {call_title(tool, title)}"


def call_title(tool: str | None, title: str) -> str:
    """Return what a call of a tool does: `execute: npm test`."""
    return f"{tool}: {title}" if tool and tool != title else title


def plan_text(entries: Any) -> str:
    """Return the progress of a plan and its current step: `3 of 7 steps: write tests`."""
    done, steps = plan_progress(entries)
    current = next((item for item in entries or () if item.get("state") == "running"), None)
    progress = f"{done} of {counted(steps, 'step')}"
    return f"{progress}: {current.get('text')}" if current else progress


def usage_text(counts: Mapping[str, Any]) -> str:
    """Return the usage of a run so far: `12,345 tokens in, 678 out, $0.12`."""
    amounts = [
        f"{counted(counts['input_tokens'], 'token')} in" if counts.get("input_tokens") else "",
        f"{counted(counts['output_tokens'], 'token')} out" if counts.get("output_tokens") else "",
        format_money(counts["cost_usd"], cents=True) if counts.get("cost_usd") else "",
    ]
    return ", ".join(amount for amount in amounts if amount) or "no tokens"


# Progress of an agent in a line: its plan and its newest activity.


WIDTH: Final = 120
"""Maximum characters of a line."""
SHOWN: Final = frozenset({ActivityKind.MESSAGE, ActivityKind.TOOL, ActivityKind.FILE})
"""Kinds that the line may show; thoughts are in the log only."""


class AgentProgress:
    """The newest plan and the newest line of a run."""

    def __init__(self) -> None:
        self.plan = ""
        self.line = ""
        self.title = ""
        """The line without the mark of its state."""
        self.state = ""
        """State of the call of a tool that the line shows; "" for any other line."""

    def add(self, row: Activity | ActivityRow) -> None:
        """Follow a row."""
        if row.kind == ActivityKind.PLAN:
            self.plan = first_line(plan_text(row.detail.get("entries")), WIDTH)
        elif row.kind in SHOWN and (line := _last_line(activity_text(row))):
            self.line = line
            is_call = row.kind == ActivityKind.TOOL
            self.state = (row.state or "") if is_call else ""
            title = call_title(row.detail.get("tool"), row.text)
            self.title = first_line(title, WIDTH) if is_call else line

    @property
    def text(self) -> str:
        """Plan and line: `3 of 7 steps: write tests · ▸ execute: npm test`."""
        return " · ".join(part for part in (self.plan, self.line) if part)


def _last_line(text: str) -> str:
    return first_line("\n".join(reversed(text.splitlines())), WIDTH)
