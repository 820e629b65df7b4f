"""Registry of the table views, in the order of their number keys."""

from __future__ import annotations

from typing import Any, Final

from draftsman_tui.dashboard.attention.view import FiguresResource
from draftsman_tui.dashboard.costs.view import BudgetsResource, CostsResource
from draftsman_tui.dashboard.deliveries.view import DeliveriesResource
from draftsman_tui.dashboard.events.view import EventsResource
from draftsman_tui.dashboard.jobs.runs_view import RunsResource
from draftsman_tui.dashboard.jobs.view import DeadLettersResource, JobsResource
from draftsman_tui.dashboard.permission_rules.view import RulesResource
from draftsman_tui.dashboard.questions.view import InboxResource
from draftsman_tui.dashboard.queues.view import QueuesResource
from draftsman_tui.dashboard.repos.view import ReposResource
from draftsman_tui.dashboard.schedules.view import SchedulesResource, TemplatesResource
from draftsman_tui.dashboard.tables.resource import Resource
from draftsman_tui.dashboard.trello.view import BoardsResource
from draftsman_tui.dashboard.worker.view import WorkersResource
from draftsman_tui.dashboard.workflows.view import GroupsResource

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
