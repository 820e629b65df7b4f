"""A team with hours and ladders, in a database with a movable clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from draftsman.database.database import Database
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.people.configuration import configured_directory
from draftsman.runtime import Runtime, wire
from draftsman.settings import Settings, settings_model
from draftsman_testing.factories import Factory

TEAM: dict[str, dict[str, Any]] = {
    "anna": {"login": "anna", "slack": "U0ANNA", "roles": ["invoker", "responder"]},
    "ben": {"login": "ben", "slack": "U0BEN", "roles": ["responder", "approver"]},
    "carol": {"login": "carol", "slack": "U0CAROL", "roles": ["invoker", "responder", "approver"]},
    "dave": {"login": "dave", "slack": "U0DAVE", "roles": ["approver"]},
    "erin": {"login": "erin", "roles": ["responder"]},
    "olga": {"login": "olga", "roles": ["operator"]},
}
TeamRuntime = Callable[..., Awaitable[Runtime]]
MakeWith = Callable[[Runtime], Factory]


def person(rt: Runtime, name: str) -> Actor:
    """Return a person of the team on the command line."""
    return rt.policy.resolve(Actor(Source.CLI, name, name.title()))


@pytest.fixture
def team(settings: Settings, db: Database) -> TeamRuntime:
    """Provide the services with changed settings: `await team(ladders={…}, ben={…})`."""

    async def build(**changes: Any) -> Runtime:
        people = {name: {**entry, **changes.pop(name, {})} for name, entry in TEAM.items()}
        common = settings.model_dump(
            include={"database_url", "data_dir", "types", "database"}, exclude_unset=True
        )
        values = common | {"people": people, "groups": {"leads": ["carol", "dave"]}} | changes
        changed = settings_model().model_validate(values)
        rt = wire(changed, db, False)
        await rt.people.save(configured_directory(changed))
        return rt

    return build


@pytest.fixture
def make_with(make: Factory) -> Callable[[Runtime], Factory]:
    """Provide jobs of other services than those of `rt`."""
    return lambda rt: Factory(rt, make.owner)
