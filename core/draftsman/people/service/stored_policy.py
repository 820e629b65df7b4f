"""The policy of a process: that of the people in the database, else of the configuration."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from draftsman.errors import DraftsmanError, SchemaOutdated
from draftsman.people.configuration import configured_directory, configured_policy

if TYPE_CHECKING:
    from draftsman.people.directory import Directory
    from draftsman.people.policy import Policy
    from draftsman.people.service.people import People
    from draftsman.settings import Settings

REFRESH_INTERVAL: Final = 15.0
"""Seconds after which a long-running process reloads people."""


async def load_policy(
    policy: Policy, people: People, settings: Settings, *, import_people: bool = False
) -> None:
    """Update the policy; with `import_people` the configured people replace the stored people."""
    stored = await _stored_directory(people, settings, import_people=import_people)
    current = configured_policy(settings, stored)
    if current != policy:
        policy.update_from(current)


async def refresh_policy(policy: Policy, people: People, settings: Settings) -> None:
    """Update the policy periodically, until canceled."""
    while True:
        await asyncio.sleep(REFRESH_INTERVAL)
        with contextlib.suppress(DraftsmanError):
            await load_policy(policy, people, settings)


async def _stored_directory(
    people: People, settings: Settings, *, import_people: bool
) -> Directory | None:
    """Return the people of the database, or None if it has none."""
    try:
        stored = await people.directory()
        configured = configured_directory(settings)
        if import_people and configured and stored.changes(configured):
            await people.save(configured)
            return configured
    except SchemaOutdated:  # commands that need the new schema report it themselves
        return None
    return stored or None
