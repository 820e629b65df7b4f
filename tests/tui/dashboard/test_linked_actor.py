"""A dashboard whose user is also a person of Slack."""

from __future__ import annotations

from draftsman.database.database import Database
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.processes.host import login
from draftsman.runtime import wire
from draftsman.settings import Settings, settings_model
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import PEOPLE
from tests.tui.dashboard.pilot import open_dashboard


async def test_a_self_approval_in_the_dashboard_is_marked(settings: Settings, db: Database) -> None:
    here = {"login": login(), "slack": "U-ANNA", "roles": ["invoker", "approver"]}
    values = settings.model_dump() | {"people": PEOPLE | {"anna": here}, "groups": {}}
    linked = wire(settings_model().model_validate(values), db, True)
    actor = await linked.actor(Source.TUI)
    assert (actor.person, actor.owner) == ("anna", True)
    make = Factory(linked, await linked.people.actor(Actor("slack", "U-ANNA", "Anna")))
    work = await make.asked(GATE)
    async with open_dashboard(linked, actor, view="inbox") as dashboard:
        await dashboard.rows(f"{work.name}/1")
        await dashboard.press("a")
        await dashboard.dialog("ApprovalDialog")
        await dashboard.press("y")
        await dashboard.wait_for_toast("your own request")
    (question,), _ = await linked.questions.of_job(work.number)
    assert (question.resolution or {})["by"] == ["anna"]
    assert (question.resolution or {})["self_approved"] is True
