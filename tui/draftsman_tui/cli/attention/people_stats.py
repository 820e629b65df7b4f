"""The output of `stats --people`."""

from __future__ import annotations

from datetime import UTC, datetime

from draftsman.entities.figures import FIGURES, FigureRow, summary_text
from draftsman_tui.cli.app import App
from draftsman_tui.cli.lists import print_list


async def print_figures(app: App, since: float) -> None:
    """Print the figures of people's time."""
    async with app.runtime(read_only=True) as rt:
        figures = await rt.figures.read(since)
    total = figures[0]
    rows = [FigureRow(row, datetime.now(UTC)) for row in figures]
    is_empty = not (total.questions or total.answers or total.pings)
    print_list(app, FIGURES, [] if is_empty and not app.json else rows)
    if not (is_empty or app.json):
        app.out.info(summary_text(total))
