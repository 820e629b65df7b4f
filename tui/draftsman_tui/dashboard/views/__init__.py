"""Every table of the dashboard, in the order of its number keys."""

from __future__ import annotations

from typing import Any, Final

from draftsman_tui.dashboard.resource import Resource
from draftsman_tui.dashboard.views.boards import Boards
from draftsman_tui.dashboard.views.dead_letters import DeadLetters
from draftsman_tui.dashboard.views.deliveries import Deliveries
from draftsman_tui.dashboard.views.events import Events
from draftsman_tui.dashboard.views.inbox import Inbox
from draftsman_tui.dashboard.views.jobs import Jobs
from draftsman_tui.dashboard.views.repos import Repos
from draftsman_tui.dashboard.views.runs import Runs
from draftsman_tui.dashboard.views.workers import Workers

VIEWS: Final[dict[str, Resource[Any]]] = {
    view.name: view
    for view in (
        Jobs(),
        Inbox(),
        DeadLetters(),
        Runs(),
        Deliveries(),
        Workers(),
        Events(),
        Repos(),
        Boards(),
    )
}
