"""Navigation commands: tables, filters, sorting, marks, themes and help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.errors import Refused, UsageError
from draftsman.ids import parse_question, question_name
from draftsman_tui.dashboard.dialogs.help_dialog import HelpDialog
from draftsman_tui.dashboard.dialogs.simple_dialogs import ChoiceDialog
from draftsman_tui.dashboard.jobs.details import tab_actions
from draftsman_tui.dashboard.jobs.details.screen import JobScreen
from draftsman_tui.dashboard.key_map import display_key
from draftsman_tui.dashboard.tables import filter as filters
from draftsman_tui.dashboard.themes import NAMES, next_theme
from draftsman_tui.dashboard.worker.log_dialog import LogDialog
from draftsman_tui.dashboard.worker.quit_dialog import QuitDialog

if TYPE_CHECKING:
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen
    from draftsman_tui.dashboard.tables.screen import MainScreen


async def view(screen: BaseScreen, name: str, text: str) -> None:
    """Show a table; `text` is a filter."""
    screen.show_table(name, filters.parse(text) if text else None)


async def apply_filter(screen: MainScreen, text: str) -> None:
    """Apply the filter in `text`, or open the filter line."""
    if text:
        screen.apply_filter(filters.parse(text))
    else:
        screen.type("/", str(screen.state.filter), screen.complete_filter)


async def clear(screen: MainScreen, text: str) -> None:
    """Clear the marks; if there are none, the filter."""
    if screen.table.marked:
        screen.table.unmark()
    elif screen.state.filter:
        if screen.state.filter.job is not None:
            screen.limit_to_job(None)
        screen.apply_filter(filters.NOTHING)


async def sort(screen: MainScreen, text: str) -> None:
    """Sort by the named column, or ask which; the present column again reverses the order."""
    columns = [column for column in screen.resource.columns if column.order is not None]
    heads = [column.head.casefold() for column in columns]
    if text and text.casefold() not in heads:
        raise UsageError(f"cannot sort by column {text!r}; choose from: {', '.join(heads)}")
    if text:
        screen.sort(columns[heads.index(text.casefold())].head)
        return
    choices = [*((column.head.lower(), column.head) for column in columns), ("default order", "")]
    head = await screen.ask(ChoiceDialog("Sort by which column?", choices))
    if head is not None:
        screen.sort(head or None, reverse=bool(head) and head == screen.state.sort)


async def reverse(screen: MainScreen, text: str) -> None:
    """Reverse the sort order."""
    screen.sort(screen.state.sort, reverse=True)


async def group_by(screen: MainScreen, text: str) -> None:
    """Group the rows by the named value, or by the next; after the last, not at all."""
    names = [*screen.resource.groups, "none"]
    if text and text not in names:
        raise UsageError(f"cannot group by {text!r}; choose from: {', '.join(names)}")
    now = screen.state.grouping(screen.resource) or "none"
    name = text or names[(names.index(now) + 1) % len(names)]
    screen.group_by("" if name == "none" else name)


async def fold(screen: MainScreen, text: str) -> None:
    """Fold all groups, or unfold them if all are folded."""
    if not screen.group_labels:
        raise Refused("no groups to fold; press b to group the rows")
    all_folded = screen.state.folded >= screen.group_labels
    screen.fold(frozenset() if all_folded else screen.group_labels)


async def preview(screen: MainScreen, text: str) -> None:
    """Hide the preview, or show it again."""
    screen.row_preview.toggle()


async def mark(screen: MainScreen, text: str) -> None:
    """Mark the row under the cursor."""
    screen.table.mark()


async def mark_range(screen: MainScreen, text: str) -> None:
    """Mark from the last mark to the cursor."""
    screen.table.mark_range()


async def open_row(screen: MainScreen | JobScreen, text: str) -> None:
    """Open the row or item under the cursor, or the named job or question."""
    if not text:
        if isinstance(screen, JobScreen):
            await tab_actions.open_item(screen)
        else:
            screen.open_row()
        return
    job_name, ordinal = parse_question(text)
    number = await screen.rt.read_model.resolve(job_name)
    if ordinal is None:
        screen.open_job(number)
    else:
        screen.open_job(number, "questions", question_name(number, ordinal))


async def job(screen: MainScreen | JobScreen, text: str) -> None:
    """Open the named job, or the job of the row."""
    if text:
        await open_row(screen, text)
    else:
        screen.open_job(screen.jobs()[0])


async def refresh(screen: BaseScreen, text: str) -> None:
    """Reload the current view."""
    screen.reload()


async def command(screen: BaseScreen, text: str) -> None:
    """Open the command line."""
    screen.type(":", text, screen.complete_command)


async def theme(screen: BaseScreen, text: str) -> None:
    """Apply the named theme or the next, and save it."""
    if text and text not in NAMES:
        raise UsageError(f"unknown theme {text!r}; choose from: {', '.join(NAMES)}")
    screen.app.theme = text or next_theme(screen.app.theme)
    screen.session.preferences.save_theme(screen.app.theme)


async def help(screen: BaseScreen, text: str) -> None:
    """List all commands."""
    await screen.app.push_screen(HelpDialog(help_groups(screen)))


def help_groups(screen: BaseScreen) -> dict[str, list[tuple[str, str, str]]]:
    """Return (keys, name and arguments, help) by group; unavailable commands come last."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for command in sorted(screen.commands, key=lambda command: not screen.is_here(command)):
        keys = " ".join(display_key(key) for key in screen.keys_of(command))
        denied = " (not permitted)" if screen.refusal(command) else ""
        group = command.group if screen.is_here(command) else "Other views"
        line = keys, f":{command.name} {command.takes}".strip(), f"{command.help}{denied}"
        groups.setdefault(group, []).append(line)
    return groups


async def leave(screen: BaseScreen, text: str) -> None:
    """Quit; if `draftsman up` started processes, ask whether to stop them."""
    app = screen.app

    def end(choice: str | None) -> None:
        if choice is not None:
            app.exit(choice)

    if screen.session.supervised is None:
        app.exit()
    elif not any(isinstance(open_screen, QuitDialog) for open_screen in app.screen_stack):
        app.push_screen(QuitDialog(), end)


async def suspend(screen: BaseScreen, text: str) -> None:
    """Suspend to the shell."""
    screen.app.action_suspend_process()


async def processes(screen: BaseScreen, text: str) -> None:
    """Show the log of the processes that `draftsman up` started."""
    if screen.session.supervised is None:
        raise Refused("no process log; only the dashboard of `draftsman up` has it")
    await screen.app.push_screen(LogDialog(screen.session.supervised.log))
