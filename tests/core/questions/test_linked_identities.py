"""The owner of an embedded database is the same person on every channel.

`[people.X] login` names them on the terminal, `slack` in Slack.
"""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Database
from draftsman.errors import UsageError
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.processes.host import login
from draftsman.runtime import Runtime, wire
from draftsman.settings import Settings, settings_model
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import PEOPLE

HERE = {"login": login(), "slack": "U-ANNA", "roles": ["invoker", "approver"]}
IN_SLACK = Actor("slack", "U-ANNA", "Anna")
TWO = GATE.model_copy(update={"quorum": 2, "approvers": ("anna", "carol")})


def embedded(settings: Settings, db: Database, people: dict[str, Any]) -> Runtime:
    values = settings.model_dump() | {"people": people, "groups": {}}
    return wire(settings_model().model_validate(values), db, True)


@pytest.fixture
def linked(settings: Settings, db: Database) -> Runtime:
    """Give an embedded database whose owner is configured as anna."""
    return embedded(settings, db, PEOPLE | {"anna": HERE})


async def test_all_accounts_of_a_person_are_one_voter(linked: Runtime) -> None:
    make = Factory(linked, await linked.actor())
    work = await make.asked(TWO, actor=Actor(Source.CLI, "erin", "Erin"))
    first = await make.decide(work.number, True, await linked.actor())
    assert (first.accepted, first.resolved, first.votes) == (True, False, 1)
    for other in (await linked.actor(Source.TUI), await linked.people.actor(IN_SLACK)):
        second_verdict = await make.decide(work.number, True, other)
        assert second_verdict.reason == "anna has already approved; each person votes once"
    assert (await linked.read_model.job(work.number)).status is Status.WAITING_FOR_APPROVAL


async def test_a_self_approval_is_refused_in_slack_and_marked_on_the_terminal(
    linked: Runtime,
) -> None:
    make = Factory(linked, await linked.actor())
    work = await make.asked(GATE.model_copy(update={"approvers": ("anna", "carol")}))
    assert (await linked.read_model.job(work.number)).invoker_id == "anna"
    refused = await make.decide(work.number, True, await linked.people.actor(IN_SLACK))
    assert refused.reason == "anna requested this job and may not approve it; allowed: carol"
    approved = await make.decide(work.number, True, await linked.actor())
    assert (approved.resolution or {})["self_approved"] is True


async def test_an_older_job_of_a_login_belongs_to_its_later_person(
    settings: Settings, db: Database, linked: Runtime
) -> None:
    before = embedded(settings, db, {})
    work = await Factory(before, await before.actor()).asked(GATE)
    assert (await before.read_model.job(work.number)).invoker_id == login()
    make = Factory(linked, await linked.actor())
    refused = await make.decide(work.number, True, await linked.people.actor(IN_SLACK))
    assert "anna may not decide this" in str(refused.reason)
    approved = await make.decide(work.number, True, await linked.actor())
    assert (approved.resolution or {})["self_approved"] is True


async def test_people_of_the_database_do_not_give_the_owner_a_second_vote(
    settings: Settings, db: Database, linked: Runtime
) -> None:
    without_config = embedded(settings, db, {})
    without_config.policy.update_from(
        linked.policy
    )  # as when they were set there and not in the configuration
    make = Factory(without_config, await without_config.actor())
    with pytest.raises(UsageError, match=r"with these approvers: anna;"):
        await make.asked(TWO.model_copy(update={"approvers": ("anna",)}))
