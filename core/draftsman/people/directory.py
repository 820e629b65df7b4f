"""Directory of people, accounts and groups, and the differences between two directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter
from typing import Any, Literal

from draftsman.channels import ChannelName


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A person; `ids` has the first account of each channel, `cli` the login or database role."""

    roles: frozenset[str] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)
    quiet_hours: str | None = None
    timezone: str | None = None
    working_hours: str | None = None
    holidays: str | None = None
    further_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further accounts by channel."""

    @property
    def accounts(self) -> list[tuple[str, str]]:
        """Channel and id of each account, in their order."""
        further = [(channel, id) for channel, ids in self.further_ids.items() for id in ids]
        return sorted((*self.ids.items(), *further), key=itemgetter(0))

    def with_accounts(self, accounts: Iterable[tuple[str, str]]) -> DirectoryEntry:
        """Return a copy with the channels and ids of these accounts."""
        by_channel: dict[str, tuple[str, ...]] = {}
        for channel, id in accounts:
            by_channel[channel] = (*by_channel.get(channel, ()), id)
        return replace(
            self,
            ids={channel: ids[0] for channel, ids in by_channel.items()},
            further_ids={channel: ids[1:] for channel, ids in by_channel.items() if ids[1:]},
        )

    def describe(self) -> str:
        """Return the entry in one line."""
        clauses = [", ".join(sorted(self.roles)) or "no role"]
        clauses += [f"{channel} {id}" for channel, id in self.accounts]
        if self.quiet_hours:
            clauses.append(f"quiet {self.quiet_hours}")
        if self.timezone:
            clauses.append(f"timezone {self.timezone}")
        if self.working_hours:
            clauses.append(f"working hours {self.working_hours}")
        if self.holidays:
            clauses.append(f"holidays {self.holidays}")
        return "; ".join(clauses)


@dataclass(frozen=True, slots=True)
class DirectoryChange:
    """A difference in a person, a group or the policy."""

    action: Literal["add", "change", "remove"]
    kind: Literal["person", "group", "policy"]
    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class Directory:
    """People, groups and the policy of approvals."""

    people: Mapping[str, DirectoryEntry] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    self_approval: bool = False

    def __bool__(self) -> bool:
        return bool(self.people or self.groups)

    def with_person(self, name: str, entry: DirectoryEntry, groups: Iterable[str]) -> Directory:
        """Return a copy in which the person has this entry and these groups."""
        without = self.without_person(name)
        members = {group: (*without.groups.get(group, ()), name) for group in groups}
        return replace(
            without, people={**without.people, name: entry}, groups={**without.groups, **members}
        )

    def without_person(self, name: str) -> Directory:
        """Return a copy without the person, and without groups that become empty."""
        groups = {
            group: remaining
            for group, members in self.groups.items()
            if (remaining := tuple(member for member in members if member != name))
        }
        people = {key: entry for key, entry in self.people.items() if key != name}
        return replace(self, people=people, groups=groups)

    def changes(self, new: Directory) -> list[DirectoryChange]:
        """Return the changes that lead from this directory to `new`."""
        old_people = {name: entry.describe() for name, entry in self.people.items()}
        new_people = {name: entry.describe() for name, entry in new.people.items()}
        old_groups = {name: ", ".join(sorted(members)) for name, members in self.groups.items()}
        new_groups = {name: ", ".join(sorted(members)) for name, members in new.groups.items()}
        changes = [
            *_differences("person", old_people, new_people),
            *_differences("group", old_groups, new_groups),
        ]
        if self.self_approval != new.self_approval:
            detail = "on" if new.self_approval else "off"
            changes.append(DirectoryChange("change", "policy", "self_approval", detail))
        return changes

    def as_json(self) -> dict[str, Any]:
        """Return the directory as JSON for the database."""
        return {
            "people": [
                {
                    "name": name,
                    "roles": sorted(entry.roles),
                    "accounts": entry.accounts,
                    "quiet_hours": entry.quiet_hours,
                    "timezone": entry.timezone,
                    "working_hours": entry.working_hours,
                    "holidays": entry.holidays,
                }
                for name, entry in self.people.items()
            ],
            "groups": {name: list(members) for name, members in self.groups.items()},
            "self_approval": self.self_approval,
        }


def from_json(data: Mapping[str, Any]) -> Directory:
    """Build the directory from the database's JSON."""
    people = {
        person["name"]: DirectoryEntry(
            roles=frozenset(person["roles"]),
            quiet_hours=person["quiet_hours"],
            timezone=person["timezone"],
            working_hours=person["working_hours"],
            holidays=person["holidays"],
        ).with_accounts(person["accounts"])
        for person in data["people"] or ()
    }
    groups = {name: tuple(members) for name, members in (data["groups"] or {}).items()}
    return Directory(people, groups, bool(data["self_approval"]))


def _differences(
    kind: Literal["person", "group"], old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[DirectoryChange]:
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield DirectoryChange("add", kind, name, new[name])
        elif name not in new:
            yield DirectoryChange("remove", kind, name, old[name])
        elif old[name] != new[name]:
            yield DirectoryChange("change", kind, name, f"{old[name]} -> {new[name]}")


@dataclass(frozen=True, slots=True)
class IdentityLink:
    """An identity of a channel, and the person it is linked to."""

    channel: ChannelName
    external_id: str
    display_name: str
    person: str
    linked_by: str
    linked_at: datetime
