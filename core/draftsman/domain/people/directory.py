"""People, identities and groups as an administrator keeps them, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Channel = Literal["cli", "slack", "trello"]


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One person; `ids` by channel, `cli` being the login or the database role."""

    roles: frozenset[str] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)
    quiet: str | None = None
    timezone: str | None = None

    def describe(self) -> str:
        """Return the entry in one line."""
        parts = [", ".join(sorted(self.roles)) or "no role"]
        parts += [f"{channel} {id}" for channel, id in sorted(self.ids.items())]
        parts += [f"quiet {self.quiet}"] if self.quiet else []
        parts += [f"timezone {self.timezone}"] if self.timezone else []
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class DirectoryChange:
    """One difference: what happens to which person, group or switch."""

    action: Literal["add", "change", "remove"]
    what: Literal["person", "group", "policy"]
    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class Directory:
    """Everybody that is known."""

    people: Mapping[str, DirectoryEntry] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    self_approval: bool = False

    def __bool__(self) -> bool:
        return bool(self.people or self.groups)

    def with_person(self, name: str, entry: DirectoryEntry, groups: Iterable[str]) -> Directory:
        """Return a directory in which this person is exactly so, and in these groups."""
        rest = self.without_person(name)
        members = {group: (*rest.groups.get(group, ()), name) for group in groups}
        return replace(rest, people={**rest.people, name: entry}, groups={**rest.groups, **members})

    def without_person(self, name: str) -> Directory:
        """Return a directory without this person; a group without members is none."""
        left = {
            group: kept
            for group, members in self.groups.items()
            if (kept := tuple(member for member in members if member != name))
        }
        people = {key: entry for key, entry in self.people.items() if key != name}
        return replace(self, people=people, groups=left)

    def changes(self, new: Directory) -> list[DirectoryChange]:
        """Return what would be added, changed and removed to get from this one to `new`."""
        old_people = {name: entry.describe() for name, entry in self.people.items()}
        new_people = {name: entry.describe() for name, entry in new.people.items()}
        old_groups = {name: ", ".join(sorted(members)) for name, members in self.groups.items()}
        new_groups = {name: ", ".join(sorted(members)) for name, members in new.groups.items()}
        found = [
            *_differences("person", old_people, new_people),
            *_differences("group", old_groups, new_groups),
        ]
        if self.self_approval != new.self_approval:
            detail = "on" if new.self_approval else "off"
            found.append(DirectoryChange("change", "policy", "self_approval", detail))
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the directory as the database takes it."""
        return {
            "people": [
                {
                    "name": name,
                    "roles": sorted(entry.roles),
                    "ids": dict(entry.ids),
                    "quiet": entry.quiet,
                    "timezone": entry.timezone,
                }
                for name, entry in self.people.items()
            ],
            "groups": {name: list(members) for name, members in self.groups.items()},
            "self_approval": self.self_approval,
        }


def from_json(data: Mapping[str, Any]) -> Directory:
    """Return the directory that the database gave."""
    people = {
        each["name"]: DirectoryEntry(
            frozenset(each["roles"]), each["ids"] or {}, each["quiet"], each["timezone"]
        )
        for each in data["people"] or ()
    }
    groups = {name: tuple(members) for name, members in (data["groups"] or {}).items()}
    return Directory(people, groups, bool(data["self_approval"]))


def _differences(
    what: Literal["person", "group"], old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[DirectoryChange]:
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield DirectoryChange("add", what, name, new[name])
        elif name not in new:
            yield DirectoryChange("remove", what, name, old[name])
        elif old[name] != new[name]:
            yield DirectoryChange("change", what, name, f"{old[name]} -> {new[name]}")
