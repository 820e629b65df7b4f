"""Commands that change what is seen, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.domain.ids import parse_question
from draftsman.errors import Refused, UsageError
from draftsman_tui.dashboard import filter as filters
from draftsman_tui.dashboard.dialogs.log_dialog import LogDialog
from draftsman_tui.dashboard.dialogs.quit_dialog import QuitDialog
from draftsman_tui.dashboard.themes import NAMES, next_to

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.base import BaseScreen
    from draftsman_tui.dashboard.screens.main import MainScreen


async def view(screen: BaseScreen, name: str, text: str) -> None:
    """Show another table, filtered where something is given."""
    screen.go(name, filters.parse(text) if text else None)


async def narrow(screen: MainScreen, text: str) -> None:
    """Filter by what is given, or let it be typed."""
    if text:
        screen.narrow(filters.parse(text))
    else:
        screen.type("/", str(screen.state.filter), screen.filters_known)


async def clear(screen: MainScreen, text: str) -> None:
    """Take marks off; with none, the filter."""
    if screen.table.marked:
        screen.table.unmark()
    elif screen.state.filter:
        screen.narrow(filters.NOTHING)


async def sort(screen: MainScreen, text: str) -> None:
    """Sort by a column, or by the next that can be sorted by, and after the last by none."""
    columns = [one for one in screen.resource.columns if one.order is not None]
    heads = [one.head.casefold() for one in columns]
    if text and text.casefold() not in heads:
        raise UsageError(f"no column {text!r} to sort by; choose: {', '.join(heads)}")
    if text:
        screen.sort(columns[heads.index(text.casefold())].head)
        return
    now = screen.state.sort
    place = -1 if now is None else heads.index(now.casefold())
    screen.sort(columns[place + 1].head if place + 1 < len(columns) else None)


async def reverse(screen: MainScreen, text: str) -> None:
    """Turn the order round."""
    screen.sort(screen.state.sort, turn=True)


async def mark(screen: MainScreen, text: str) -> None:
    """Mark the row under the cursor."""
    screen.table.mark()


async def mark_range(screen: MainScreen, text: str) -> None:
    """Mark from the last mark to the cursor."""
    screen.table.mark_range()


async def open_row(screen: BaseScreen, text: str) -> None:
    """Open what the cursor is on, or the job or question that is named."""
    if not text:
        await screen.open_row()
        return
    named, ordinal = parse_question(text)
    number = await screen.rt.read_model.resolve(named)
    if ordinal is None:
        screen.open_job(number)
    else:
        screen.open_job(number, "questions", f"D-{number}/{ordinal}")


async def job(screen: BaseScreen, text: str) -> None:
    """Open the job that is named, or that of the row."""
    if text:
        await open_row(screen, text)
    else:
        screen.open_job(screen.jobs()[0])


async def refresh(screen: BaseScreen, text: str) -> None:
    """Look again."""
    screen.reload()


async def command(screen: BaseScreen, text: str) -> None:
    """Open the `:` line."""
    screen.type(":", text, screen.lines_known)


async def theme(screen: BaseScreen, text: str) -> None:
    """Take a theme, and remember it."""
    if text and text not in NAMES:
        raise UsageError(f"no theme is called {text!r}; choose: {', '.join(NAMES)}")
    screen.app.theme = text or next_to(screen.app.theme)
    screen.session.kept.save_theme(screen.app.theme)


async def help(screen: BaseScreen, text: str) -> None:
    """List everything."""
    from draftsman_tui.dashboard.command_table import help_groups
    from draftsman_tui.dashboard.dialogs.help_dialog import HelpDialog

    await screen.app.push_screen(HelpDialog(help_groups(screen)))


async def leave(screen: BaseScreen, text: str) -> None:
    """Leave; before that, ask what becomes of what was started."""
    if screen.session.started is None:
        screen.app.exit()
    elif (choice := await screen.ask(QuitDialog())) is not None:
        screen.app.exit(choice)


async def suspend(screen: BaseScreen, text: str) -> None:
    """Give the terminal back to the shell for a while."""
    screen.app.action_suspend_process()


async def processes(screen: BaseScreen, text: str) -> None:
    """Show what the processes log."""
    if screen.session.started is None:
        raise Refused("only the dashboard of `draftsman up` has a log: of what it started")
    await screen.app.push_screen(LogDialog(screen.session.started.log))
