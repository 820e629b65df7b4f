"""The output of `stats --people`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.attention.figures import FigureGroup
from draftsman_tui.cli.app import App
from draftsman_tui.entities.attention import name_text, ratio_text, summary_text, time_text
from draftsman_tui.terminal.output import one_line

if TYPE_CHECKING:
    from draftsman.attention.figures import AttentionFigures


async def print_figures(app: App, since: float) -> None:
    """Print the figures of people's time."""
    async with app.runtime(read_only=True) as rt:
        figures = await rt.figures.read(since)
    if app.json:
        app.out.document(figures)
        return
    total = figures[0]
    if not (total.questions or total.answers or total.pings):
        app.out.info("no questions in this time")
        return
    heads = (
        "BY",
        "NAME",
        "ANSWERS",
        "SEEN",
        "95 %",
        "ANSWERED",
        "95 %",
        "PINGS",
        "PER ANSWER",
        "QUIET",
    )
    right = tuple(range(2, len(heads)))
    app.out.table(heads, [_row(row) for row in figures], flexible=1, right=right)
    app.out.info(summary_text(total))


def _row(row: AttentionFigures) -> tuple[str, ...]:
    return (
        "" if row.by is FigureGroup.ALL else str(row.by),
        one_line(name_text(row)),
        f"{row.answers:,}",
        time_text(row.seen_p50),
        time_text(row.seen_p95),
        time_text(row.answer_p50),
        time_text(row.answer_p95),
        f"{row.pings:,}",
        ratio_text(row.pings_per_answer),
        f"{row.quiet_pings:,}",
    )
