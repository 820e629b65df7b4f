"""Phases of a job: in the queue, in runs and waiting for people. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from rich.cells import cell_len

from draftsman.entities.cells import ROLES, Cell
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.ids import run_text
from draftsman.jobs.job import Job, Status
from draftsman.jobs.runs.run import MEANINGS, Run, RunStatus
from draftsman.people.spans import actor_spans, spans_text
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman.text import humanize
from draftsman_tui.dashboard.jobs.details.row_layout import Row
from draftsman_tui.dashboard.widgets.column_layout import fit

QUEUE = "queued"
RUN = "runs"
WAIT = "waits"
LOOKS: Final = {QUEUE: ("░", "dim"), RUN: ("█", "busy"), WAIT: ("▒", "asks")}
"""Sign and role of each kind: signs differ as well, for terminals without colors."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Part of a job's time. `name` and `outcome` describe it: `run 2`, `failed`."""

    kind: str
    start: datetime
    end: datetime
    name: str
    outcome: str = ""
    role: str = ""
    """Role of the outcome."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end - self.start).total_seconds()


def job_phases(
    job: Job, runs: Sequence[Run], questions: Sequence[Question], now: datetime
) -> list[Phase]:
    """Return the phases of a job in order, from its creation until its end or now."""
    end = job.finished_at or now
    busy = [*_runs(runs, end), *_waits(runs, questions, end)]
    phases: list[Phase] = []
    at = job.created_at
    gap = "scheduled" if job.run_at and not runs else "queued"
    for phase in sorted(busy, key=lambda phase: phase.start):
        start = max(phase.start, at)
        if start > at:
            phases.append(Phase(QUEUE, at, start, gap))
        if phase.end > start:
            phases.append(replace(phase, start=start))
        at = max(at, phase.end)
        gap = "retrying" if phase.outcome == RunStatus.FAILED else "queued"
    if end > at:
        if job.status in (Status.SCHEDULED, Status.RETRYING):
            gap = str(job.status)
        phases.append(Phase(QUEUE, at, end, gap))
    return phases


def _runs(runs: Sequence[Run], end: datetime) -> Iterator[Phase]:
    for run in runs:
        status = str(run.status)
        name = run_text(run.ordinal)
        stop = run.finished_at or end
        yield Phase(
            RUN, run.started_at, stop, name=name, outcome=status, role=ROLES[MEANINGS[run.status]]
        )


def _waits(runs: Sequence[Run], questions: Sequence[Question], end: datetime) -> Iterator[Phase]:
    """Yield the waits for people: no run starts, and nothing else is asked, before one ends."""
    starts = [run.started_at for run in runs] + [question.asked_at for question in questions]
    at_once: defaultdict[datetime, list[Question]] = defaultdict(list)
    for question in questions:
        at_once[question.asked_at].append(question)
    for simultaneous in at_once.values():
        first = simultaneous[0]
        later = [start for start in starts if start > first.asked_at]
        name = "approval" if first.kind is QuestionKind.APPROVAL else "question"
        numbers = ", ".join(f"/{question.ordinal}" for question in simultaneous)
        is_answered = any(question.answered_at for question in simultaneous)
        is_open = any(question.status is QuestionStatus.OPEN for question in simultaneous)
        yield Phase(
            WAIT,
            first.asked_at,
            min([max(_closed_at(question, end) for question in simultaneous), end, *later]),
            name=f"{name} {numbers}" if len(simultaneous) == 1 else f"questions {numbers}",
            outcome=one_line("; ".join(map(_outcome, simultaneous))),
            role="asks" if is_open else "good" if is_answered else "warns",
        )


def _closed_at(question: Question, end: datetime) -> datetime:
    if question.status is QuestionStatus.OPEN:
        return end
    return question.answered_at or question.expires_at or end


def _outcome(question: Question) -> str:
    """Return the result of a question, with its people: `answered by ben`."""
    people = spans_text(actor_spans((question.resolution or {}).get("by", ())))
    outcome = humanize(question.outcome)
    return f"{outcome} by {people}" if people else outcome


def bar(phases: Sequence[Phase], width: int) -> Row:
    """Return the phases as a bar of so many cells, and the time of each kind."""
    totals = {kind: sum(phase.seconds for phase in phases if phase.kind == kind) for kind in LOOKS}
    words = [
        Cell(f"  {LOOKS[kind][0]} {kind} {times.span(seconds)}", LOOKS[kind][1])
        for kind, seconds in totals.items()
        if seconds >= 1
    ]
    room = width - sum(len(word.text) for word in words)
    whole = sum(totals.values())
    if whole <= 0 or room < len(phases):
        return tuple(words)
    cells = []
    done = 0.0
    drawn = 0
    for phase in phases:
        done += phase.seconds
        size = max(1, round(done / whole * room) - drawn)
        size = min(size, room - drawn)
        drawn += size
        sign, role = LOOKS[phase.kind]
        cells.append(Cell(sign * size, role))
    return (*cells, *words)


# Chart of the phases of a job: a bar for each, on a common axis of time. Pure.
#
# Where long phases without a run would hide the runs, they are shortened: their bars and the axis
# have a break, and every length is also written.
BREAK: Final = "//"
"""Sign of a shortened phase."""
SHORTENED: Final = 6
"""Cells of a shortened phase."""
MIN_SHARE: Final = 0.1
"""Share of the axis that the runs have, if shortening makes this possible."""
MIN_AXIS: Final = 20
"""Minimum cells of the axis; a narrower screen has only the lengths."""
OUTCOME: Final = 34
"""Maximum cells of an outcome."""
SPAN: Final = 7
"""Cells of a length."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """Phases and the first and last cell of each, and the indexes of those that are shortened."""

    phases: Sequence[Phase]
    cells: Sequence[tuple[int, int]]
    shortened: Collection[int]
    width: int


def chart(phases: Sequence[Phase], width: int, most: int, *, over: bool) -> list[Row]:
    """Return at most so many rows: the axis, then a row for each phase, the newest last.

    `over`: the job is finished, and no phase continues.
    """
    if not phases:
        return []
    count = most - 1 if len(phases) < most else most - 2
    earlier = phases[:-count]
    newest = phases[-count:]
    name = max(len(phase.name) for phase in newest)
    if earlier:
        name = max(name, len(_earlier_name(earlier)))
    outcome = min(OUTCOME, max(cell_len(phase.outcome) for phase in newest), max(8, width // 5))
    label = name + 2 + outcome + 1 + SPAN + 2
    room = width - label
    axis = _axis(newest, room) if room >= MIN_AXIS else None
    rows = [_axis_row(axis, label, over=over)] if axis is not None else []
    if earlier:
        length = times.span(sum(phase.seconds for phase in earlier))
        text = f"{_earlier_name(earlier):<{name + 2 + outcome + 1}}{length:>{SPAN}}"
        rows.append((Cell(text, "dim"),))
    for nth, phase in enumerate(newest):
        row = (
            Cell(f"{phase.name:<{name}}  ", LOOKS[phase.kind][1]),
            Cell(f"{fit(phase.outcome, outcome)} ", phase.role),
            Cell(f"{times.span(phase.seconds):>{SPAN}}  "),
        )
        rows.append(row if axis is None else (*row, *_bar(axis, nth)))
    return rows


def _earlier_name(earlier: Sequence[Phase]) -> str:
    return f"{len(earlier):,} earlier"


def _bar(axis: _Axis, nth: int) -> Row:
    start, end = axis.cells[nth]
    sign, role = LOOKS[axis.phases[nth].kind]
    text = sign * (end - start)
    if nth in axis.shortened:
        middle = (end - start - len(BREAK)) // 2
        text = text[:middle] + BREAK + text[middle + len(BREAK) :]
    return (Cell(" " * start), Cell(text, role))


def _axis(phases: Sequence[Phase], width: int) -> _Axis:
    """Place the phases on an axis of so many cells, each on one cell at least."""
    shortened = _shortened(phases, width)
    seconds = sum(phase.seconds for nth, phase in enumerate(phases) if nth not in shortened)
    room = width - SHORTENED * len(shortened)
    cells = []
    at = 0
    exact = 0.0
    for nth, phase in enumerate(phases):
        share = phase.seconds / seconds * room if seconds else room / len(phases)
        exact += SHORTENED if nth in shortened else share
        later = len(phases) - nth - 1
        end = max(at + 1, min(round(exact), width - later))
        cells.append((at, end))
        at = end
    return _Axis(phases, cells, shortened, width)


def _shortened(phases: Sequence[Phase], width: int) -> set[int]:
    """Return the longest phases without a run, as long as these leave the runs a small share."""
    shortened: set[int] = set()
    running = sum(phase.seconds for phase in phases if phase.kind == RUN)
    idle = [nth for nth, phase in enumerate(phases) if phase.kind != RUN]
    for nth in sorted(idle, key=lambda nth: -phases[nth].seconds):
        scaled_seconds = sum(
            phase.seconds for nth, phase in enumerate(phases) if nth not in shortened
        )
        room = width - SHORTENED * len(shortened)
        is_wide = scaled_seconds > 0 and phases[nth].seconds / scaled_seconds * room > SHORTENED
        if not running or running / scaled_seconds >= MIN_SHARE or not is_wide or 2 * room < width:
            break
        shortened.add(nth)
    return shortened


def _axis_row(axis: _Axis, label: int, *, over: bool) -> Row:
    """Return the times at which phases begin, as many as fit, and the end."""
    moments = [phase.start for phase in axis.phases]
    end = "end" if over else "now"
    last = f"{_clock(axis.phases[-1].end, moments[0], axis.phases[-1].end)} {end}" if over else end
    text = ""
    previous = None
    for moment, (start, _) in zip(moments, axis.cells, strict=True):
        word = _clock(moment, previous, axis.phases[-1].end)
        if start and start < len(text) + 2:
            continue
        if start + len(word) + 2 + len(last) > axis.width:
            continue
        text = text.ljust(start) + word
        previous = moment
    text = text.ljust(axis.width - len(last)) + last
    note = f"{BREAK} shortened" if axis.shortened else ""
    return (Cell(f"{note:<{label}}", "dim"), Cell(text, "dim"))


def _clock(moment: datetime, previous: datetime | None, end: datetime) -> str:
    """Return a local time, with the date if it is not that of the previous time."""
    return times.clock(moment, end if previous is None else previous, narrow=True)
