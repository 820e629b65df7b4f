"""Table views: those with a number key in its order, then the others by name."""

from __future__ import annotations

from typing import Any, Final

from draftsman.entities.registry import listed_entities
from draftsman_tui.dashboard import modules
from draftsman_tui.dashboard.tables.filter import add_heads
from draftsman_tui.dashboard.tables.resource import DECLARED, ListedResource, Resource, key_order

modules.import_all("view")
OWN_TABLES: Final = frozenset(view.name for view in DECLARED)
"""Tables with a view of their own; the others are those of listings."""
for _name, _entity in listed_entities().items():
    if _name not in OWN_TABLES:
        type(f"{_name.capitalize()}Resource", (ListedResource,), {"entity": _entity})
VIEWS: Final[dict[str, Resource[Any]]] = {
    view.name: view()
    for view in sorted(DECLARED, key=lambda view: key_order(view.number_key, view.name))
}
for _view in VIEWS.values():
    add_heads(_view.columns)
