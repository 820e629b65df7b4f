"""Authorization policy. Pure: services check it in their transactions, front ends beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from enum import StrEnum

from draftsman.channels import ChannelName, registry
from draftsman.errors import CommandHint, NotPermitted
from draftsman.ids import account_name
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.people.hours import InterruptibleHours
from draftsman.people.visibility import may_see
from draftsman.sizes import DISPLAY_NAME
from draftsman.text import clean

_LOGINS = frozenset({Source.CLI, Source.TUI, Source.API, Source.MCP})
ROLES = frozenset({"invoker", "responder", "approver", "operator"})


def unlinked(actor: Actor, *, or_else: str = "") -> NotPermitted:
    """Return the refusal of an account that belongs to no person; `or_else` is another way in."""
    option = f"--login {actor.id}" if actor.channel in _LOGINS else f"--account {actor.name}"
    instead = f"{or_else}, or ask an operator" if or_else else "an operator can link it"
    return NotPermitted(
        "is not linked to a person",
        hint=CommandHint("people set", f"NAME {option}", lead=instead),
        subject=actor.display_name,
        actor=actor.name,
    )


class Verb(StrEnum):
    """Actions that need authorization; the value is used in error messages."""

    SUBMIT = "submit"
    ANSWER = "answer"
    APPROVE = "approve"
    TELL = "send messages to jobs"
    PAUSE = "pause or resume jobs"
    CANCEL = "cancel"
    RETRY = "retry"
    DISMISS = "dismiss"
    EXTEND = "extend"
    BUDGET = "decide on a budget"
    SWEEP = "sweep"
    RESTORE = "restore"
    REDELIVER = "redeliver"
    UNLINK = "unlink"
    BOARDS = "change boards"
    REPOS = "change repositories"
    QUEUES = "pause or resume queues"
    RESERVE = "reserve or release queues"
    ORDER = "change the order of jobs"
    TEMPLATES = "change templates"
    SCHEDULES = "change schedules"
    RULES = "change rules"


_ROLE = {
    Verb.SUBMIT: "invoker",
    Verb.ANSWER: "responder",
    Verb.APPROVE: "approver",
    Verb.TELL: "responder",
    Verb.PAUSE: "operator",
    Verb.CANCEL: "operator",
    Verb.RETRY: "operator",
    Verb.DISMISS: "operator",
    Verb.EXTEND: "operator",
    Verb.BUDGET: "operator",
    Verb.SWEEP: "operator",
    Verb.RESTORE: "operator",
    Verb.REDELIVER: "operator",
    Verb.UNLINK: "operator",
    Verb.BOARDS: "operator",
    Verb.REPOS: "operator",
    Verb.QUEUES: "operator",
    Verb.RESERVE: "operator",
    Verb.ORDER: "operator",
    Verb.TEMPLATES: "operator",
    Verb.SCHEDULES: "operator",
    Verb.RULES: "operator",
}
_OWN = frozenset(
    {Verb.ANSWER, Verb.TELL, Verb.PAUSE, Verb.CANCEL, Verb.RETRY, Verb.DISMISS, Verb.EXTEND}
    | {Verb.UNLINK, Verb.SCHEDULES}
)
"""Actions that the invoker of a job, or the author of a schedule, may do without the role."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person with roles and accounts."""

    name: str
    roles: frozenset[str]
    ids: Mapping[ChannelName, str] = field(default_factory=dict)
    quiet: InterruptibleHours | None = None
    """When the person may be interrupted; None: at any time."""
    further_ids: Mapping[ChannelName, tuple[str, ...]] = field(default_factory=dict)
    """Accounts besides those of `ids`, to which messages go."""
    zone: tzinfo = UTC
    """In which times are shown to the person."""

    @property
    def voter(self) -> str:
        """Identity for votes, as that of an actor."""
        return self.name

    def accounts(self, channel: ChannelName) -> tuple[str, ...]:
        """Return the person's accounts in a channel."""
        first = self.ids.get(channel)
        return () if first is None else (first, *self.further_ids.get(channel, ()))

    def has_account(self, channel: ChannelName, id: str) -> bool:
        """Return whether this account is the person's."""
        return id in self.accounts(channel) or (id == self.name and _names_people(channel))

    def free_at(self, now: datetime) -> datetime:
        """Return `now` if the person may be interrupted, else the next time."""
        return now if self.quiet is None else self.quiet.over(now)


def _names_people(channel: ChannelName) -> bool:
    """Return whether the id of an account there is the name of its person."""
    plugin = registry.find(channel)
    return plugin is not None and plugin.facts.accounts == "person"


class _Accounts:
    """An index of the first person with each account."""

    def __init__(self, people: Mapping[str, Person]) -> None:
        self.people = people
        self._persons = [*people.values()]
        self._by_account: dict[tuple[ChannelName, str], int] = {}
        self._by_name: dict[str, int] = {}
        for place, person in enumerate(self._persons):
            self._by_name.setdefault(person.name, place)
            for channel in person.ids:
                for account in person.accounts(channel):
                    self._by_account.setdefault((channel, account), place)

    def holder(self, channel: ChannelName, id: str) -> Person | None:
        """Return the first person of whom `has_account` is true."""
        places = [self._by_account.get((channel, id))]
        if _names_people(channel):
            places.append(self._by_name.get(id))
        known = [place for place in places if place is not None]
        return self._persons[min(known)] if known else None


@dataclass(slots=True)
class Policy:
    """People, groups and their permissions; without people, every action is refused.

    All services of a process share an instance, which `update_from` refreshes.
    """

    people: Mapping[str, Person] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    self_approval: bool = False
    zone: tzinfo = UTC
    """In which times are shown to several readers, or to one who is not known."""
    login: str | None = field(default=None, compare=False)
    """Login of the owner of an embedded database; None on a server."""
    _accounts: _Accounts | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def owner(self) -> str | None:
        """Person of the owner of an embedded database, else the login."""
        if self.login is None:
            return None
        return self.resolve(Actor(Source.CLI, self.login, self.login, owner=True)).person

    def remote(self, actor: Actor, person: str) -> Actor:
        """Return the actor of a person who is in a chat or signed in with a browser.

        There the owner of an embedded database is a person like others, with the roles of the
        configuration, or with all roles if it does not name the owner.
        """
        entry = self.people.get(person)
        roles = ROLES if entry is None and person == self.owner else frozenset()
        return replace(actor, person=person, roles=roles if entry is None else entry.roles)

    def requester(self, invoker: str) -> str:
        """Return the person of a job's recorded invoker, else the recorded invoker.

        A job that is older than the mapping of an account to a person has the account as invoker.
        """
        if invoker in self.people:
            return invoker
        if invoker == self.login and self.owner is not None:
            return self.owner
        channel, _, id = invoker.partition(":")
        person = self._holder(channel, id)
        return invoker if person is None else person.name

    def name_of(self, actor: str) -> str:
        """Return the person of an actor, else the name of its account."""
        return account_name(self.requester(actor))

    def zone_of(self, reader: Person | None) -> tzinfo:
        """Return the time zone of the only reader, if it is a known person."""
        return self.zone if reader is None else reader.zone

    def update_from(self, other: Policy) -> None:
        """Copy the people of another policy, for all holders of this instance."""
        self.people = other.people
        self.groups = other.groups
        self.self_approval = other.self_approval

    def resolve(self, actor: Actor) -> Actor:
        """Return the actor with its person and roles."""
        id = clean(actor.id)
        display_name = clean(actor.display_name)[:DISPLAY_NAME]
        if (id, display_name) != (actor.id, actor.display_name):
            actor = replace(actor, id=id, display_name=display_name)
        if (person := self._holder(actor.channel, actor.id)) is not None:
            roles = ROLES if actor.owner else person.roles
            return replace(actor, person=person.name, roles=roles)
        if actor.owner:
            return replace(actor, person=actor.person or actor.id, roles=ROLES)
        return actor

    def _holder(self, channel: ChannelName, id: str) -> Person | None:
        """Return the person who has an account, which each request asks, by an index."""
        if self._accounts is None or self._accounts.people is not self.people:
            self._accounts = _Accounts(self.people)
        return self._accounts.holder(channel, id)

    def check(self, actor: Actor, verb: Verb, *, invoker: str | None = None) -> None:
        """Raise NotPermitted unless the actor may act; `invoker` is that of the job, if any."""
        if actor.owner or _ROLE[verb] in actor.roles:
            return
        if verb not in _OWN or invoker is None:
            raise self._refusal(actor, verb)
        if not {invoker, self.requester(invoker)} & {actor.voter, actor.name}:
            raise self._refusal(actor, verb)

    def holders(self, verb: Verb) -> list[str]:
        """Return the people with the role for an action."""
        role = _ROLE[verb]
        return sorted(name for name, person in self.people.items() if role in person.roles)

    def approvers(self, names: Sequence[str]) -> frozenset[str]:
        """Expand a list of people and groups to people."""
        people: set[str] = set()
        for name in names:
            people.update(self.groups.get(name, (name,)))
        return frozenset(people)

    def knows(self, name: str) -> bool:
        """Return whether the name is a group or a person."""
        return name in self.groups or name in self.people

    def eligible_people(
        self, names: Sequence[str], invoker: str, *, approval: bool, repo: str | None
    ) -> list[Person]:
        """Return the people who may answer a question, or with `approval` decide it.

        Those who may not see the repository of its job are left out.
        """
        allowed = set(self.approvers(names))
        invoker = self.requester(invoker)
        if not approval:
            allowed |= {n for n, person in self.people.items() if "responder" in person.roles}
            allowed.add(invoker)
        elif not self.self_approval:
            allowed.discard(invoker)
        people = (self.people[name] for name in sorted(allowed) if name in self.people)
        return [person for person in people if may_see(person, repo)]

    def quiet_hours_of(
        self,
        names: Sequence[str],
        invoker: str,
        default: InterruptibleHours | None,
        *,
        approval: bool,
    ) -> set[InterruptibleHours | None]:
        """Return the quiet hours of the people who may answer; `default` if none is known."""
        people = self.eligible_people(names, invoker, approval=approval, repo=None)
        return {person.quiet for person in people} or {default}

    def eligible_approvers(self, names: Sequence[str], invoker: str) -> frozenset[str]:
        """Return the people whose approval would count.

        They are among the approvers, have the role and, unless `self_approval` is set, did not
        request the job.
        """
        return frozenset(
            name
            for name in self.approvers(names)
            if (person := self.people.get(name)) is not None
            and _ROLE[Verb.APPROVE] in person.roles
            and (self.self_approval or name != self.requester(invoker))
        )

    def check_answer(self, actor: Actor, names: Sequence[str], *, invoker: str) -> None:
        """Raise NotPermitted unless the actor may answer a question or is among `names`."""
        if actor.person is None or actor.person not in self.approvers(names):
            self.check(actor, Verb.ANSWER, invoker=invoker)

    def answers_only_own(self, actor: Actor) -> str:
        """Return the voter who may answer only their own questions; "" if the actor answers all."""
        person = self.resolve(actor)
        return "" if person.owner or _ROLE[Verb.ANSWER] in person.roles else person.voter

    def check_vote(self, actor: Actor, names: Sequence[str], *, invoker: str) -> None:
        """Raise NotPermitted unless the actor may decide an approval with these approvers.

        Without approvers, only the owner of an embedded database may decide.
        """
        if actor.owner:
            return
        if _ROLE[Verb.APPROVE] not in actor.roles:
            raise self._refusal(actor, Verb.APPROVE, self._voters(names, invoker))
        if actor.person is None:
            raise unlinked(actor)
        self.check_approver(actor.person, names, invoker=invoker)

    def check_approver(self, person: str, names: Sequence[str], *, invoker: str) -> None:
        """Raise NotPermitted unless the person may decide the approval."""
        invoker = self.requester(invoker)
        allowed = self._voters(names, invoker)
        if person not in self.approvers(names):
            raise NotPermitted(f"{person} may not decide this approval; allowed: {allowed}")
        if person == invoker and not self.self_approval:
            raise NotPermitted(
                f"{person} requested this job and may not approve it; allowed: {allowed}"
            )

    def _voters(self, names: Sequence[str], invoker: str) -> str:
        """Return the people who may decide an approval, as text."""
        allowed = self.approvers(names)
        voters = allowed if self.self_approval else allowed - {invoker}
        if not allowed:
            none = "none, because the approval has no approvers"
            where = "; the owner of the database can decide it in a terminal or in the dashboard"
            return none if self.login is None else none + where
        return ", ".join(sorted(voters)) or "none unless [questions] self_approval is set"

    def _refusal(self, actor: Actor, verb: Verb, allowed: str = "") -> NotPermitted:
        role = _ROLE[verb]
        hint = None
        holders = self.holders(verb)
        if not self.people and self.owner is None:
            tail = "no people are configured"
            hint = CommandHint(
                "people set", f"NAME --login LOGIN --role {role}", lead="the database owner can run"
            )
        elif not self.people:
            tail = "no people are configured: add [people]"
        elif not holders:
            table = f'roles = ["{role}"] in [people.NAME]'
            owner = f"the database owner {self.owner or ''}".rstrip()
            tail = f"no person has it; {owner} can grant it: {table}"
            if self.owner is None:
                hint = CommandHint("people import", lead="then run")
        else:
            tail = f"allowed: {allowed or ', '.join(holders)}"
        return NotPermitted(
            f"may not {verb} (needs the role {role}); {tail}",
            hint=hint,
            subject=actor.display_name,
            actor=actor.name,
        )
