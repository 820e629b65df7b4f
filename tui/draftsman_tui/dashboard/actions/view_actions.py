"""Commands about how tables look: saved views, and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from draftsman.errors import UsageError
from draftsman_tui.dashboard import saved_views
from draftsman_tui.dashboard.dialogs.choice_dialog import ChoiceDialog
from draftsman_tui.dashboard.dialogs.columns_dialog import ColumnsDialog
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.dialogs.prompt_dialog import PromptDialog

if TYPE_CHECKING:
    from draftsman_tui.dashboard.saved_views import View
    from draftsman_tui.dashboard.screens.base import BaseScreen
    from draftsman_tui.dashboard.screens.main import MainScreen


async def views(desk: BaseScreen, text: str) -> None:
    """Go to a saved view, one that is named or chosen."""
    found = desk.session.kept.views() if not text else desk.session.views()
    name = text or await desk.ask(ChoiceDialog("Go to which view?", _lines(found)))
    if name is None:
        return
    if name not in found:
        raise UsageError(f"no view is called {name!r}; there are: {', '.join(found)}")
    desk.show_view(found[name], name)


async def save(desk: MainScreen, text: str) -> None:
    """Save what is shown."""
    from draftsman_tui.dashboard.command_table import BY_NAME

    name = text or await desk.ask(PromptDialog("Under which name?", "failing-payments"))
    if not name:
        return
    name = saved_views.validate_name(name, frozenset(BY_NAME))
    view = desk.state.as_view(desk.place)
    again = desk.session.kept.save(name, view)
    desk.named(name)
    how = "in place of the one before" if again else f"go there by :{name}"
    desk.show_message(f"saved {name}: {view}; {how}")


async def unsave(desk: BaseScreen, text: str) -> None:
    """Forget a view."""
    kept = desk.session.kept
    mine = {name: view for name, view in kept.views().items() if kept.has(name)}
    if not text and not mine:
        raise UsageError("no view was saved; :save NAME saves this one")
    name = text or await desk.ask(ChoiceDialog("Forget which view?", _lines(mine)))
    if not name:
        return
    if not kept.has(name):
        own = (
            "it comes with the dashboard"
            if name in saved_views.BUILTIN_VIEWS
            else ":views lists them"
        )
        raise UsageError(f"no view {name!r} was saved; {own}")
    if await desk.ask(ConfirmDialog(f"Forget the view {name}?", str(mine.get(name, "")))):
        kept.drop(name)
        desk.show_message(f"forgot {name}")


async def columns(desk: MainScreen, text: str) -> None:
    """Choose columns."""
    heads = [one.head for one in desk.resource.columns]
    if not text:
        chosen = await desk.ask(ColumnsDialog(desk.place, heads, desk.shown_columns))
    elif text.casefold() == "all":
        chosen = heads
    elif text.casefold() == "fitting":
        chosen = []
    else:
        wanted = [one for one in text.upper().replace(",", " ").split() if one]
        if strange := [one for one in wanted if one not in heads]:
            known = ", ".join(head.lower() for head in heads)
            raise UsageError(f"no column {strange[0].lower()!r}; choose: all, fitting, {known}")
        chosen = list(dict.fromkeys(wanted))
    if chosen is not None:
        desk.show_columns(chosen)


def _lines(views: Mapping[str, View]) -> list[tuple[str, str]]:
    wide = max(map(len, views), default=0)
    return [(f"{name:<{wide}}  {view}", name) for name, view in views.items()]
