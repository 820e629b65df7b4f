"""Permissions, modeled without the product's policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from draftsman.people.actor import Actor
from draftsman_testing.people import GROUPS, PEOPLE
from tests.core.stateful.model.state import Question


@dataclass(frozen=True)
class ModelActor:
    """An actor on a channel; `person` where the configuration maps it to a person."""

    channel: str
    id: str
    person: str | None
    owner: bool = False

    @property
    def voter(self) -> str:
        """The person or identity that votes."""
        return self.person or f"{self.channel}:{self.id}"

    @property
    def actor(self) -> Actor:
        """The actor as the channel reports it: without person and roles, except for the owner."""
        person = self.person if self.owner else None
        return Actor(self.channel, self.id, self.id, person=person, owner=self.owner)

    def has(self, role: str, invoker: str | None = None) -> bool:
        """Return whether the actor has the role, or the job is the actor's own."""
        if self.owner or (self.person is not None and role in PEOPLE[self.person]["roles"]):
            return True
        return invoker is not None and invoker in (self.voter, f"{self.channel}:{self.id}")

    def decides(self, approvers: Iterable[str], invoker: str) -> bool:
        """Return whether the actor may decide an approval of a job of this invoker."""
        if self.owner:
            return True
        if self.person is None or not self.has("approver"):
            return False
        return self.person in named(approvers) and self.person != invoker


def named(approvers: Iterable[str]) -> set[str]:
    """Return the people of names and groups."""
    return {person for name in approvers for person in GROUPS.get(name, [name])}


def reachable(item: Question) -> bool:
    """Return whether the quorum of an approval can be reached."""
    names = (*item.approvers, *(("leads",) if item.on_expire == "escalate" else ()))
    able = [name for name in named(names) if "approver" in PEOPLE[name]["roles"]]
    return len(able) >= item.quorum


def _all_actors() -> list[ModelActor]:
    actors = [ModelActor("cli", "root", "root", owner=True)]
    for name, person in PEOPLE.items():
        for channel, key in (("cli", "login"), ("slack", "slack"), ("trello", "trello")):
            if key in person:
                actors.append(ModelActor(channel, person[key], name))
    return [*actors, ModelActor("slack", "U-STRANGER", None), ModelActor("trello", "U-CAROL", None)]


EVERYBODY = _all_actors()
SYSTEM = ModelActor("internal", "system", None)
