"""Navigation commands: tables, filters, sorting, marks, themes and help."""

from __future__ import annotations

from draftsman.errors import Refused, UsageError
from draftsman.ids import parse_question, question_name
from draftsman_tui.dashboard.command import (
    GROUPED,
    JOB,
    JOBS,
    OPENING,
    TABLES,
    CommandGroup,
    dashboard_command,
)
from draftsman_tui.dashboard.dialogs.simple_dialogs import ChoiceDialog
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.dialogs import HelpDialog, LogDialog, QuitDialog
from draftsman_tui.dashboard.jobs.details import tab_actions
from draftsman_tui.dashboard.jobs.details.screen import JobScreen
from draftsman_tui.dashboard.key_map import display_key
from draftsman_tui.dashboard.tables import filter as filters
from draftsman_tui.dashboard.tables.grouping import Folds
from draftsman_tui.dashboard.tables.screen import MainScreen
from draftsman_tui.dashboard.themes import NAMES, next_theme


async def view(screen: BaseScreen, name: str, text: str) -> None:
    """Show a table; `text` is a filter."""
    screen.show_table(name, filters.parse(text) if text else None)


@dashboard_command(
    "filter", CommandGroup.THIS_TABLE, keys="slash", on=TABLES, takes="FILTER", footer=True
)
async def apply_filter(screen: MainScreen, text: str) -> None:
    """Filter the rows.

    Without `text`, the filter line opens.
    """
    if text:
        screen.apply_filter(filters.parse(text))
    else:
        text = screen.state.filter.text(screen.resource.kinds)
        screen.type("/", text, screen.complete_filter)


@dashboard_command("clear", CommandGroup.THIS_TABLE, keys="escape", on=TABLES)
async def clear(screen: MainScreen, text: str) -> None:
    """Clear the marks, else leave the filter, the saved view, the groups, the table for jobs."""
    if screen.table.marked:
        screen.table.unmark()
    else:
        screen.leave()


@dashboard_command("sort", CommandGroup.THIS_TABLE, keys="s", on=TABLES, takes="COLUMN")
async def sort(screen: MainScreen, text: str) -> None:
    """Sort by a column, by its number or name; again: in reverse.

    Without `text`, asks for the column.
    """
    columns = [column for column in screen.resource.columns if column.order is not None]
    heads = [column.head.casefold() for column in columns]
    if text and text.casefold() not in heads:
        raise UsageError(f"cannot sort by column {text!r}; choose from: {', '.join(heads)}")
    if text:
        screen.sort(columns[heads.index(text.casefold())].head)
        return
    choices = [
        *((column.heading.lower(), column.head) for column in columns),
        ("default order", ""),
    ]
    head = await screen.ask(ChoiceDialog("Sort by which column?", choices))
    if head is not None:
        screen.sort(head or None, reverse=bool(head) and head == screen.state.sort)


@dashboard_command("reverse", CommandGroup.THIS_TABLE, keys="S", on=TABLES)
async def reverse(screen: MainScreen, text: str) -> None:
    """Reverse the sort order."""
    screen.sort(screen.state.sort, reverse=True)


@dashboard_command(
    "group-by",
    CommandGroup.THIS_TABLE,
    keys="b",
    on=GROUPED,
    takes="attention|repository|person|question|status|none",
)
async def group_by(screen: MainScreen, text: str) -> None:
    """Group the rows by the next value, or by the named one; enter folds a group.

    After the last value, the rows are not grouped.
    """
    names = [*screen.resource.groups, "none"]
    if text and text not in names:
        raise UsageError(f"cannot group by {text!r}; choose from: {', '.join(names)}")
    now = screen.state.grouping(screen.resource) or "none"
    name = text or names[(names.index(now) + 1) % len(names)]
    screen.group_by("" if name == "none" else name)


@dashboard_command("fold", CommandGroup.THIS_TABLE, keys="minus", on=GROUPED)
async def fold(screen: MainScreen, text: str) -> None:
    """Fold all groups, or unfold them."""
    if not screen.group_labels:
        raise Refused("no groups to fold; press b to group the rows")
    all_folded = all(label in screen.state.folded for label in screen.group_labels)
    screen.fold(Folds(all=not all_folded))


@dashboard_command("preview", CommandGroup.THIS_TABLE, keys="p", on=JOBS - JOB)
async def preview(screen: MainScreen, text: str) -> None:
    """Hide or show the preview of the job, on large screens."""
    screen.row_preview.toggle()


@dashboard_command("mark", CommandGroup.THIS_TABLE, keys="space", on=TABLES)
async def mark(screen: MainScreen, text: str) -> None:
    """Mark a row for the next command."""
    screen.table.mark()


@dashboard_command("mark-range", CommandGroup.THIS_TABLE, keys="ctrl+@,V", on=TABLES)
async def mark_range(screen: MainScreen, text: str) -> None:
    """Mark from the last mark to here."""
    screen.table.mark_range()


@dashboard_command("open", CommandGroup.THIS_TABLE, keys="enter", on=JOBS | OPENING, takes="D-142")
async def open_row(screen: MainScreen | JobScreen, text: str) -> None:
    """Open the job or item under the cursor, or the named job."""
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


@dashboard_command("job", CommandGroup.JOBS, takes="D-142")
async def job(screen: MainScreen | JobScreen, text: str) -> None:
    """Open a job."""
    if text:
        await open_row(screen, text)
    else:
        screen.open_job(screen.job())


@dashboard_command("refresh", CommandGroup.THIS_TABLE, keys="ctrl+r")
async def refresh(screen: BaseScreen, text: str) -> None:
    """Reload the data."""
    screen.reload()


@dashboard_command("command", CommandGroup.GENERAL, keys="colon", footer=True)
async def command(screen: BaseScreen, text: str) -> None:
    """Type a command."""
    screen.type(":", text, screen.complete_command)


@dashboard_command("theme", CommandGroup.GENERAL, keys="t", takes="dark|light|contrast|none")
async def theme(screen: BaseScreen, text: str) -> None:
    """Switch to the next theme, or to the named theme.

    The theme is saved.
    """
    if text and text not in NAMES:
        raise UsageError(f"unknown theme {text!r}; choose from: {', '.join(NAMES)}")
    screen.app.theme = text or next_theme(screen.app.theme)
    screen.session.preferences.save_theme(screen.app.theme)


@dashboard_command("help", CommandGroup.GENERAL, keys="question_mark", footer=True)
async def help(screen: BaseScreen, text: str) -> None:
    """List all commands."""
    await screen.app.push_screen(HelpDialog(help_groups(screen), screen))


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


@dashboard_command("quit", CommandGroup.GENERAL, keys="q,ctrl+q", footer=True)
async def leave(screen: BaseScreen, text: str) -> None:
    """Quit.

    Asks whether to stop the processes that `draftsman up` started.
    """
    app = screen.app

    def end(choice: str | None) -> None:
        if choice is not None:
            app.exit(choice)

    if screen.session.supervised is None:
        app.exit()
    elif not any(isinstance(open_screen, QuitDialog) for open_screen in app.screen_stack):
        app.push_screen(QuitDialog(), end)


@dashboard_command("suspend", CommandGroup.GENERAL, keys="ctrl+z")
async def suspend(screen: BaseScreen, text: str) -> None:
    """Suspend to the shell; fg resumes."""
    screen.app.action_suspend_process()


@dashboard_command("processes", CommandGroup.GENERAL, keys="L")
async def processes(screen: BaseScreen, text: str) -> None:
    """Show the log of the processes started by `draftsman up`."""
    if screen.session.supervised is None:
        raise Refused("no process log; only the dashboard of `draftsman up` has it")
    await screen.app.push_screen(LogDialog(screen.session.supervised.log))
