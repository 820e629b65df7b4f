"""The people of the tests and their roles."""

from __future__ import annotations

from typing import Any

from draftsman.channels import ChannelName
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy

PEOPLE: dict[str, dict[str, Any]] = {
    "anna": {"login": "anna", "slack": "U-ANNA", "roles": ["invoker"]},
    "ben": {"login": "ben", "slack": "U-BEN", "roles": ["responder"]},
    "carol": {"login": "carol", "slack": "U-CAROL", "trello": "T-CAROL", "roles": ["approver"]},
    "dave": {"login": "dave", "slack": "U-DAVE", "roles": ["approver"]},
    "erin": {"login": "erin", "roles": ["approver", "invoker"]},
    "olga": {"login": "olga", "roles": ["operator"]},
}
GROUPS = {"leads": ["carol", "dave"]}


class People:
    """Actors as created by channels, resolved to the people of the configuration."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def __getattr__(self, name: str) -> Actor:
        """Return the person on the command line: `people.anna`."""
        return self.on(Source.CLI, name)

    def on(self, channel: ChannelName, name: str) -> Actor:
        """Return the person on another channel; an unknown person stays unmapped."""
        person = self._policy.people.get(name)
        id = person.ids[channel] if person else name
        return self._policy.resolve(Actor(channel, id, name.title()))
