"""Registry of the table views, in the order of their number keys."""

from __future__ import annotations

from typing import Any, Final

from draftsman_tui.dashboard.resource import Resource
from draftsman_tui.dashboard.views.boards import BoardsResource
from draftsman_tui.dashboard.views.budgets import BudgetsResource
from draftsman_tui.dashboard.views.costs import CostsResource
from draftsman_tui.dashboard.views.dead_letters import DeadLettersResource
from draftsman_tui.dashboard.views.deliveries import DeliveriesResource
from draftsman_tui.dashboard.views.events import EventsResource
from draftsman_tui.dashboard.views.figures import FiguresResource
from draftsman_tui.dashboard.views.groups import GroupsResource
from draftsman_tui.dashboard.views.inbox import InboxResource
from draftsman_tui.dashboard.views.jobs import JobsResource
from draftsman_tui.dashboard.views.queues import QueuesResource
from draftsman_tui.dashboard.views.repos import ReposResource
from draftsman_tui.dashboard.views.rules import RulesResource
from draftsman_tui.dashboard.views.runs import RunsResource
from draftsman_tui.dashboard.views.schedules import SchedulesResource
from draftsman_tui.dashboard.views.templates import TemplatesResource
from draftsman_tui.dashboard.views.workers import WorkersResource

VIEWS: Final[dict[str, Resource[Any]]] = {
    view.name: view
    for view in (
        JobsResource(),
        InboxResource(),
        DeadLettersResource(),
        RunsResource(),
        DeliveriesResource(),
        WorkersResource(),
        EventsResource(),
        ReposResource(),
        BoardsResource(),
        QueuesResource(),
        SchedulesResource(),
        TemplatesResource(),
        GroupsResource(),
        CostsResource(),
        BudgetsResource(),
        FiguresResource(),
        RulesResource(),
    )
}
