"""Commands for saved views and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import OptionList

from draftsman.errors import UsageError
from draftsman.ids import job_name, parse_question
from draftsman_tui.dashboard.command import JOBS, TABLES, CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.base import Dialog
from draftsman_tui.dashboard.dialogs.simple_dialogs import ChoiceDialog, ConfirmDialog, PromptDialog
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.tables import saved_views
from draftsman_tui.dashboard.tables.saved_views import View
from draftsman_tui.dashboard.tables.screen import MainScreen


class ColumnsDialog(Dialog[list[str]]):
    """Returns column heads in order; empty means those that fit. The first column is fixed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "toggle_column", "Show", id="show-column"),
        Binding("K,shift+up", "carry(-1)", "Up", id="column-up"),
        Binding("J,shift+down", "carry(1)", "Down", id="column-down"),
        Binding("f", "fitting", "Fit", id="columns-fitting"),
    ]

    def __init__(self, table: str, headings: Mapping[str, str], visible: Sequence[str]) -> None:
        keys = "space: show or hide   K J: move   f: fit to width   enter: apply   esc: back"
        super().__init__(f"Columns of {table}", keys)
        self._visible = set(visible)
        self._headings = headings
        self._heads = [*visible, *(head for head in headings if head not in self._visible)]
        self._first = next(iter(headings))

    def body(self) -> ComposeResult:
        yield OptionList(*(self._line(head) for head in self._heads))

    def action_toggle_column(self) -> None:
        """Show or hide the column."""
        at = self._cursor
        if self._heads[at] != self._first:
            self._visible ^= {self._heads[at]}
            self._draw(at)

    def action_carry(self, by: int) -> None:
        """Move the column; the first column stays first."""
        at = self._cursor
        to = at + by
        if at > 0 and 0 < to < len(self._heads):
            self._heads[at], self._heads[to] = self._heads[to], self._heads[at]
            self._draw(to)

    def action_fitting(self) -> None:
        """Show the columns that fit the width."""
        self.dismiss([])

    def on_option_list_option_selected(self) -> None:
        self.dismiss([head for head in self._heads if head in self._visible])

    @property
    def _cursor(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def _draw(self, at: int) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options([self._line(head) for head in self._heads])
        options.highlighted = at

    def _line(self, head: str) -> Text:
        return Text(f"{'●' if head in self._visible else '·'} {self._headings[head]}")


@dashboard_command("views", CommandGroup.SAVED_VIEWS, keys="v", takes="VIEW")
async def views(screen: BaseScreen, text: str) -> None:
    """List and open the saved views.

    Without `text`, asks for the view.
    """
    available = screen.session.preferences.views() if not text else screen.session.views()
    name = text or await screen.ask(ChoiceDialog("Open which view?", _labels(available)))
    if name is None:
        return
    if name not in available:
        raise UsageError(f"unknown view {name!r}; available: {', '.join(available)}")
    screen.show_view(available[name], name)


@dashboard_command("save", CommandGroup.SAVED_VIEWS, on=TABLES, takes="NAME")
async def save(screen: MainScreen, text: str) -> None:
    """Save the table's filter, order and columns as a view."""
    name = text or await screen.ask(PromptDialog("Name of the view?", "failing-payments"))
    if not name:
        return
    name = saved_views.validate_name(name, frozenset(screen.commands.names))
    view = screen.state.as_view(screen.view_name)
    replaced = screen.session.preferences.save(name, view)
    screen.set_view_name(name)
    hint = "replaced the existing view" if replaced else f"open it with :{name}"
    screen.show_message(f"Saved view {name}: {view}; {hint}")


@dashboard_command("unsave", CommandGroup.SAVED_VIEWS, takes="VIEW")
async def unsave(screen: BaseScreen, text: str) -> None:
    """Delete a saved view, after confirmation."""
    preferences = screen.session.preferences
    saved = {name: view for name, view in preferences.views().items() if preferences.has(name)}
    if not text and not saved:
        raise UsageError("no saved views; :save NAME saves the current table")
    name = text or await screen.ask(ChoiceDialog("Delete which view?", _labels(saved)))
    if not name:
        return
    if not preferences.has(name):
        reason = (
            "built-in views cannot be deleted"
            if name in saved_views.BUILTIN_VIEWS
            else ":views lists the saved views"
        )
        raise UsageError(f"no saved view {name!r}; {reason}")
    if await screen.ask(ConfirmDialog(f"Delete view {name}?", str(saved.get(name, "")))):
        preferences.drop(name)
        screen.show_message(f"Deleted view {name}")


@dashboard_command("columns", CommandGroup.THIS_TABLE, keys="C", on=TABLES, takes="COLUMNS")
async def columns(screen: MainScreen, text: str) -> None:
    """Choose the columns and their order.

    Without `text`, the dialog of columns opens.
    """
    headings = {column.head: column.heading for column in screen.resource.columns}
    heads = [*headings]
    if not text:
        chosen = await screen.ask(ColumnsDialog(screen.view_name, headings, screen.shown_columns))
    elif text.casefold() == "all":
        chosen = heads
    elif text.casefold() == "fitting":
        chosen = []
    else:
        names = text.upper().replace(",", " ").split()
        if unknown := [name for name in names if name not in heads]:
            allowed = ", ".join(head.lower() for head in heads)
            raise UsageError(
                f"unknown column {unknown[0].lower()!r}; choose from: all, fitting, {allowed}"
            )
        chosen = list(dict.fromkeys(names))
    if chosen is not None:
        screen.show_columns(chosen)


def _labels(views: Mapping[str, View]) -> list[tuple[str, str]]:
    width = max(map(len, views), default=0)
    return [(f"{name:<{width}}  {view}", name) for name, view in views.items()]


@dashboard_command("only-job", CommandGroup.THIS_TABLE, keys="O", on=JOBS, takes="D-142")
async def only_job(screen: BaseScreen, text: str) -> None:
    """Show only a job and its tree among jobs, questions, runs and events; again: all."""
    main = next(
        open_screen
        for open_screen in screen.app.screen_stack
        if isinstance(open_screen, MainScreen)
    )
    if isinstance(screen, MainScreen) and not text and main.state.filter.job is not None:
        main.limit_to_job(None)
        return
    number = (
        (await screen.rt.read_model.resolve(parse_question(text)[0])) if text else screen.jobs()[0]
    )
    if screen is not main:
        screen.show_table("jobs")
    main.limit_to_job(job_name(number))
