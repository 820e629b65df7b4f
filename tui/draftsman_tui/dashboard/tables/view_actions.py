"""Commands for saved views and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from draftsman.errors import UsageError
from draftsman.ids import job_name, parse_job
from draftsman_tui.dashboard.dialogs.choice_dialog import ChoiceDialog
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.dialogs.prompt_dialog import PromptDialog
from draftsman_tui.dashboard.tables import saved_views
from draftsman_tui.dashboard.tables.columns_dialog import ColumnsDialog
from draftsman_tui.dashboard.tables.screen import MainScreen

if TYPE_CHECKING:
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen
    from draftsman_tui.dashboard.tables.saved_views import View


async def views(screen: BaseScreen, text: str) -> None:
    """Open the saved view named in `text`, or ask which."""
    available = screen.session.preferences.views() if not text else screen.session.views()
    name = text or await screen.ask(ChoiceDialog("Open which view?", _labels(available)))
    if name is None:
        return
    if name not in available:
        raise UsageError(f"unknown view {name!r}; available: {', '.join(available)}")
    screen.show_view(available[name], name)


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


async def unsave(screen: BaseScreen, text: str) -> None:
    """Delete a saved view."""
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


async def columns(screen: MainScreen, text: str) -> None:
    """Show the named columns, or open the column dialog."""
    heads = [column.head for column in screen.resource.columns]
    if not text:
        chosen = await screen.ask(ColumnsDialog(screen.view_name, heads, screen.shown_columns))
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


async def only_job(screen: BaseScreen, text: str) -> None:
    """Show only the rows of a job and its tree, in each table that has them; again: of all."""
    main = next(item for item in screen.app.screen_stack if isinstance(item, MainScreen))
    if isinstance(screen, MainScreen) and not text and main.state.filter.job is not None:
        main.limit_to_job(None)
        return
    number = (await screen.rt.read_model.resolve(parse_job(text))) if text else screen.jobs()[0]
    main.limit_to_job(job_name(number))
    if screen is not main:
        screen.show_table("jobs")
