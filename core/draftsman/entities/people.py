"""People, and their linked chat accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity
from draftsman.formats import times

if TYPE_CHECKING:
    from draftsman.people.directory import DirectoryEntry, IdentityLink
    from draftsman.people.policy import Person


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person with roles and accounts by channel or `login`: the first, and further ones."""

    name: str
    roles: Sequence[str]
    ids: Mapping[str, str]
    further_ids: Mapping[str, Sequence[str]]


def person_row(name: str, person: DirectoryEntry | Person) -> PersonRow:
    """Return a person of a directory or policy."""
    ids = {"login" if key == "cli" else str(key): id for key, id in person.ids.items()}
    return PersonRow(name, sorted(person.roles), ids, person.further_ids)


def _accounts(row: PersonRow) -> str:
    return ", ".join(
        f"{channel}:{id}"
        for channel, first in row.ids.items()
        for id in (first, *row.further_ids.get(channel, ()))
    )


PEOPLE: Final[Entity[PersonRow]] = Entity(
    empty="no people",
    hint="to add a person: draftsman people set, or [people.NAME] in draftsman.toml",
    json_class="draftsman.entities.people:PersonRow",
    columns=(
        Column(
            "PERSON", help="Name of the person.", cell=lambda row, _: cells.text(row.name, "key")
        ),
        Column(
            "ROLES",
            help="What the person may do.",
            cell=lambda row, _: Cell(", ".join(row.roles) or "no roles"),
        ),
        Column(
            "ACCOUNTS",
            help="Logins, and accounts in channels.",
            cell=lambda row, _: cells.text(_accounts(row)),
            cut=True,
        ),
    ),
)
LINKS: Final[Entity[IdentityLink]] = Entity(
    empty="no chat account is linked",
    json_class="draftsman.people.directory:IdentityLink",
    columns=(
        Column(
            "PERSON", help="Name of the person.", cell=lambda row, _: cells.text(row.person, "key")
        ),
        Column(
            "ACCOUNT",
            help="Chat account, with the name that the chat shows.",
            cell=lambda row, _: cells.text(f"{row.channel}:{row.external_id} ({row.display_name})"),
            cut=True,
        ),
        Column(
            "LINKED",
            help="When it was linked.",
            cell=lambda row, now: Cell(times.ago(row.linked_at, now)),
        ),
        shared_columns.by(lambda row: row.linked_by),
    ),
)
