"""Who may do what. Pure: the services call it inside their transactions, front ends before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.quiet_hours import QuietHours
from draftsman.domain.text import clean
from draftsman.errors import NotPermitted

ROLES = frozenset({"invoker", "responder", "approver", "operator"})


class Verb(StrEnum):
    """What an actor may want; the value is how a refusal names it."""

    SUBMIT = "submit"
    ANSWER = "answer"
    APPROVE = "approve"
    CANCEL = "cancel"
    RETRY = "retry"
    EXTEND = "extend"
    SWEEP = "sweep"
    RESTORE = "restore"
    REDELIVER = "redeliver"
    UNLINK = "unlink"
    BOARDS = "change boards"
    REPOS = "change repositories"


_ROLE = {
    Verb.SUBMIT: "invoker",
    Verb.ANSWER: "responder",
    Verb.APPROVE: "approver",
    Verb.CANCEL: "operator",
    Verb.RETRY: "operator",
    Verb.EXTEND: "operator",
    Verb.SWEEP: "operator",
    Verb.RESTORE: "operator",
    Verb.REDELIVER: "operator",
    Verb.UNLINK: "operator",
    Verb.BOARDS: "operator",
    Verb.REPOS: "operator",
}
_OWN = frozenset({Verb.ANSWER, Verb.CANCEL, Verb.RETRY, Verb.EXTEND, Verb.UNLINK})
"""What the invoker of a job may do to it without the role."""


@dataclass(frozen=True, slots=True)
class Person:
    """One human and the ids that lead to them."""

    name: str
    roles: frozenset[str]
    ids: Mapping[Source, str] = field(default_factory=dict)
    quiet: QuietHours | None = None
    """When no reminder should reach them."""


@dataclass(slots=True)
class Policy:
    """People, groups and what they may do. Without people, nobody may do anything.

    All services of a process share one; `adopt` brings it up to date.
    """

    people: Mapping[str, Person] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    self_approval: bool = False
    login: str | None = field(default=None, compare=False)
    """Login of the owner of an embedded database; None on a server."""

    @property
    def owner(self) -> str | None:
        """The person who owns an embedded database: whose login it is, else the login itself."""
        if self.login is None:
            return None
        return self.resolve(Actor(Source.CLI, self.login, self.login, owner=True)).person

    def requester(self, invoker: str) -> str:
        """Return the person behind the recorded invoker of a job, else the invoker as recorded.

        A job from before a login or chat account was mapped to a person names the account.
        """
        if invoker in self.people:
            return invoker
        if invoker == self.login and self.owner is not None:
            return self.owner
        for person in self.people.values():
            if invoker in (f"{channel}:{id}" for channel, id in person.ids.items()):
                return person.name
        return invoker

    def update_from(self, other: Policy) -> None:
        """Take over the people of another policy, for everything that holds this one."""
        self.people, self.groups = other.people, other.groups
        self.self_approval = other.self_approval

    def resolve(self, actor: Actor) -> Actor:
        """Return the actor with the person, the roles that the configuration gives it."""
        actor = replace(actor, id=clean(actor.id), display_name=clean(actor.display_name))
        for person in self.people.values():
            if person.ids.get(actor.channel) == actor.id:
                roles = ROLES if actor.owner else person.roles
                return replace(actor, person=person.name, roles=roles)
        if actor.owner:
            return replace(actor, person=actor.person or actor.id, roles=ROLES)
        return actor

    def check(self, actor: Actor, verb: Verb, *, invoker: str | None = None) -> None:
        """Raise NotPermitted unless the actor may. `invoker` is the job's own invoker, if any."""
        if actor.owner or _ROLE[verb] in actor.roles:
            return
        if verb not in _OWN or invoker is None:
            raise NotPermitted(self._refusal(actor, verb))
        if not {invoker, self.requester(invoker)} & {actor.voter, actor.name}:
            raise NotPermitted(self._refusal(actor, verb))

    def approvers(self, names: Sequence[str]) -> frozenset[str]:
        """Return the people that a list of people and groups stands for; nobody for no list."""
        people: set[str] = set()
        for name in names:
            people.update(self.groups.get(name, (name,)))
        return frozenset(people)

    def knows(self, name: str) -> bool:
        """Return whether this is a group or a person."""
        return name in self.groups or name in self.people

    def answering(self, names: Sequence[str], invoker: str, *, gate: bool) -> list[Person]:
        """Return the people who may answer a question, or decide a gate, of somebody's job."""
        named, invoker = set(self.approvers(names)), self.requester(invoker)
        if not gate:
            named |= {n for n, person in self.people.items() if "responder" in person.roles}
            named.add(invoker)
        elif not self.self_approval:
            named.discard(invoker)
        return [self.people[name] for name in sorted(named) if name in self.people]

    def eligible_approvers(self, names: Sequence[str], invoker: str) -> frozenset[str]:
        """Return the people whose approval of a gate would count.

        They are among the approvers, have the role, and did not ask for the job (`self_approval`
        lifts the last).
        """
        return frozenset(
            name
            for name in self.approvers(names)
            if (person := self.people.get(name)) is not None
            and _ROLE[Verb.APPROVE] in person.roles
            and (self.self_approval or name != self.requester(invoker))
        )

    def check_answer(self, actor: Actor, names: Sequence[str], *, invoker: str) -> None:
        """Raise NotPermitted unless the actor may answer a question; those it went to may, too."""
        if actor.person is None or actor.person not in self.approvers(names):
            self.check(actor, Verb.ANSWER, invoker=invoker)

    def check_vote(self, actor: Actor, names: Sequence[str], *, invoker: str) -> None:
        """Raise NotPermitted unless the actor may decide a gate with these approvers.

        A gate fails closed: without approvers nobody but the owner of an embedded database may.
        """
        if actor.owner:
            return
        if _ROLE[Verb.APPROVE] not in actor.roles:
            raise NotPermitted(self._refusal(actor, Verb.APPROVE, self._voters(names, invoker)))
        if actor.person is None:
            raise NotPermitted(f"{actor.display_name} is not mapped to a person; ask an operator")
        self.check_approver(actor.person, names, invoker=invoker)

    def check_approver(self, person: str, names: Sequence[str], *, invoker: str) -> None:
        """Raise NotPermitted unless this person, however they come, may decide the gate."""
        invoker = self.requester(invoker)
        who = self._voters(names, invoker)
        if person not in self.approvers(names):
            raise NotPermitted(f"{person} may not decide this; who may: {who}")
        if person == invoker and not self.self_approval:
            raise NotPermitted(f"{person} asked for this job and may not decide it; who may: {who}")

    def _voters(self, names: Sequence[str], invoker: str) -> str:
        """Say who may decide a gate."""
        allowed = self.approvers(names)
        others = allowed if self.self_approval else allowed - {invoker}
        if not allowed:
            return "nobody: the gate names no approvers"
        return ", ".join(sorted(others)) or "nobody else unless [questions] self_approval is set"

    def _refusal(self, actor: Actor, verb: Verb, who: str = "") -> str:
        role = _ROLE[verb]
        found = sorted(name for name, person in self.people.items() if role in person.roles)
        if not self.people:
            tail = "no people are configured: add [people]"
        elif not found:
            tail = self._nobody_with(role)
        else:
            tail = f"who may: {who or ', '.join(found)}"
        return f"{actor.display_name} may not {verb} (needs the role {role}); {tail}"

    def _nobody_with(self, role: str) -> str:
        """Say that no person has a role, and who can give it."""
        table = f'roles = ["{role}"] in [people.NAME]'
        if self.owner is not None:
            return f"no person has it; {self.owner}, who owns the database, can give it: {table}"
        return (
            f"no person has it; the owner of the database can give it: {table},"
            " then draftsman people import"
        )
