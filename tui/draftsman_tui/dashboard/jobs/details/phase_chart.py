"""Chart of the phases of a job: a bar for each, on a common axis of time. Pure.

Where long phases without a run would hide the runs, they are shortened: their bars and the axis
have a break, and every length is also written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rich.cells import cell_len

from draftsman_tui.dashboard.jobs.details.phases import LOOKS, RUN, Phase
from draftsman_tui.dashboard.jobs.details.row_layout import Row
from draftsman_tui.dashboard.tables.resource import Cell
from draftsman_tui.dashboard.widgets.column_layout import fit
from draftsman_tui.terminal import times

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

    parts: Sequence[Phase]
    cells: Sequence[tuple[int, int]]
    shortened: Collection[int]
    width: int


def chart(parts: Sequence[Phase], width: int, most: int, *, over: bool) -> list[Row]:
    """Return at most so many rows: the axis, then a row for each phase, the newest last.

    `over`: the job is finished, and no phase continues.
    """
    if not parts:
        return []
    count = most - 1 if len(parts) < most else most - 2
    earlier, shown = parts[:-count], parts[-count:]
    name = max(len(part.name) for part in shown)
    if earlier:
        name = max(name, len(_earlier_name(earlier)))
    outcome = min(OUTCOME, max(cell_len(part.outcome) for part in shown), max(8, width // 5))
    label = name + 2 + outcome + 1 + SPAN + 2
    room = width - label
    axis = _axis(shown, room) if room >= MIN_AXIS else None
    rows = [_axis_row(axis, label, over=over)] if axis is not None else []
    if earlier:
        length = times.span(sum(part.seconds for part in earlier))
        text = f"{_earlier_name(earlier):<{name + 2 + outcome + 1}}{length:>{SPAN}}"
        rows.append((Cell(text, "dim"),))
    for nth, part in enumerate(shown):
        row = (
            Cell(f"{part.name:<{name}}  ", LOOKS[part.kind][1]),
            Cell(f"{fit(part.outcome, outcome)} ", part.role),
            Cell(f"{times.span(part.seconds):>{SPAN}}  "),
        )
        rows.append(row if axis is None else (*row, *_bar(axis, nth)))
    return rows


def _earlier_name(earlier: Sequence[Phase]) -> str:
    return f"{len(earlier):,} earlier"


def _bar(axis: _Axis, nth: int) -> Row:
    start, end = axis.cells[nth]
    sign, role = LOOKS[axis.parts[nth].kind]
    text = sign * (end - start)
    if nth in axis.shortened:
        middle = (end - start - len(BREAK)) // 2
        text = text[:middle] + BREAK + text[middle + len(BREAK) :]
    return (Cell(" " * start), Cell(text, role))


def _axis(parts: Sequence[Phase], width: int) -> _Axis:
    """Place the phases on an axis of so many cells, each on one cell at least."""
    shortened = _shortened(parts, width)
    seconds = sum(part.seconds for nth, part in enumerate(parts) if nth not in shortened)
    room = width - SHORTENED * len(shortened)
    cells, at, exact = [], 0, 0.0
    for nth, part in enumerate(parts):
        share = part.seconds / seconds * room if seconds else room / len(parts)
        exact += SHORTENED if nth in shortened else share
        left = len(parts) - nth - 1
        end = max(at + 1, min(round(exact), width - left))
        cells.append((at, end))
        at = end
    return _Axis(parts, cells, shortened, width)


def _shortened(parts: Sequence[Phase], width: int) -> set[int]:
    """Return the longest phases without a run, as long as these leave the runs a small share."""
    shortened: set[int] = set()
    running = sum(part.seconds for part in parts if part.kind == RUN)
    idle = [nth for nth, part in enumerate(parts) if part.kind != RUN]
    for nth in sorted(idle, key=lambda nth: -parts[nth].seconds):
        rest = sum(part.seconds for nth, part in enumerate(parts) if nth not in shortened)
        room = width - SHORTENED * len(shortened)
        is_wide = rest > 0 and parts[nth].seconds / rest * room > SHORTENED
        if not running or running / rest >= MIN_SHARE or not is_wide or 2 * room < width:
            break
        shortened.add(nth)
    return shortened


def _axis_row(axis: _Axis, label: int, *, over: bool) -> Row:
    """Return the times at which phases begin, as many as fit, and the end."""
    moments = [part.start for part in axis.parts]
    end = "end" if over else "now"
    last = f"{_clock(axis.parts[-1].end, moments[0], axis.parts[-1].end)} {end}" if over else end
    text, previous = "", None
    for moment, (start, _) in zip(moments, axis.cells, strict=True):
        word = _clock(moment, previous, axis.parts[-1].end)
        if start and start < len(text) + 2:
            continue
        if start + len(word) + 2 + len(last) > axis.width:
            continue
        text, previous = text.ljust(start) + word, moment
    text = text.ljust(axis.width - len(last)) + last
    note = f"{BREAK} shortened" if axis.shortened else ""
    return (Cell(f"{note:<{label}}", "dim"), Cell(text, "dim"))


def _clock(moment: datetime, previous: datetime | None, end: datetime) -> str:
    """Return a local time, with the date if it is not that of the previous time."""
    here = moment.astimezone()
    before = end if previous is None else previous
    return here.strftime("%H:%M:%S" if here.date() == before.astimezone().date() else "%m-%d %H:%M")
