"""Processes that save people at the same time."""

from __future__ import annotations

from draftsman.database.database import Connection
from draftsman.people.configuration import configured_directory
from draftsman.runtime import Runtime
from draftsman.settings import settings_model
from draftsman_testing.people import GROUPS, PEOPLE
from tests.support.races import FirstSession


async def test_two_processes_that_save_the_same_people_are_both_done(
    rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    """A worker and the bots that start on a new database import the people of the configuration."""
    settings = settings_model().model_validate({"people": PEOPLE, "groups": GROUPS})
    directory = configured_directory(settings)
    async with first.doing(first.rt.people.save(directory)):
        await first.then(rt.people.save(directory), conn)
    assert not (await rt.people.directory()).changes(directory)
