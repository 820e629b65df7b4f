"""Table views: those with a number key in its order, then the others by name."""

from __future__ import annotations

from typing import Any, Final

from draftsman_tui.dashboard import modules
from draftsman_tui.dashboard.tables.resource import DECLARED, NUMBER_KEYS, Resource


def _order(view: Resource[Any]) -> tuple[int, str]:
    position = NUMBER_KEYS.find(view.number_key) if view.number_key else len(NUMBER_KEYS)
    return position, view.name


modules.import_all("view")
VIEWS: Final[dict[str, Resource[Any]]] = {
    view.name: view for view in sorted((declared() for declared in DECLARED), key=_order)
}
