"""Custom fields and the digest card of a board, from names and URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from draftsman.deliveries.delivery import TARGET_GONE
from draftsman.errors import Failure, NotFound, UsageError
from draftsman.jobs.retries import ErrorClass, classify
from draftsman_bots.json_fields import string
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.records.board import FieldUse
from draftsman_bots.trello.transport.cards import TYPES, CustomField, fetch_fields

if TYPE_CHECKING:
    from draftsman_bots.trello.transport.client import Trello

NONE: Final = "none"
AUTO: Final = "auto"
NAMES: Final[Mapping[FieldUse, str]] = {use: f"draftsman {use}" for use in FieldUse}
"""Names of the fields that `auto` finds."""
HELP: Final = "use status=NAME, cost=NAME, auto or none"
_SHORT: Final = re.compile(r"[A-Za-z0-9]{8}")


async def readable_fields(trello: Trello, board: str) -> list[CustomField]:
    """Return the custom fields of a board; none if its Power-Up is off. Raises Failure."""
    try:
        return await fetch_fields(trello, board)
    except Failure as error:
        if classify(error) is not ErrorClass.PERMANENT:
            raise
        return []


def choose_fields(fields: Sequence[CustomField], texts: Sequence[str]) -> dict[FieldUse, str]:
    """Return the ids of the fields that options name; raises UsageError."""
    chosen: dict[FieldUse, str] = {}
    for text in texts:
        if text.strip().casefold() == NONE:
            continue
        if text.strip().casefold() == AUTO:
            chosen = matched_fields(fields) | chosen
            continue
        name, equals, wanted = text.partition("=")
        use = name.strip().casefold()
        if use not in list(FieldUse) or not equals or not wanted.strip():
            raise UsageError(f"--field {text[:80]!r}: {HELP}")
        chosen[FieldUse(use)] = _named(fields, FieldUse(use), wanted.strip(), text)
    return chosen


def matched_fields(fields: Sequence[CustomField]) -> dict[FieldUse, str]:
    """Return the ids of the fields with draftsman's names and a type that fits."""
    return {
        use: candidates[0].id
        for use, name in NAMES.items()
        if (candidates := _fitting(_matching(fields, name), use))
    }


async def digest_card(trello: Trello, board: str, text: str) -> str | None:
    """Return the id of a card of a board, from its URL, short link or id; `none` is None.

    Raises UsageError, NotFound, Failure.
    """
    if text.strip().casefold() == NONE:
        return None
    segments = urlsplit(text.strip()).path.strip("/").split("/")
    reference = segments[1] if segments[0] == "c" and len(segments) > 1 else segments[0]
    if not (is_id(reference) or _SHORT.fullmatch(reference)):
        raise UsageError(
            f"--digest-card {text[:80]!r} is not a card; give its URL, https://trello.com/c/…, or"
            " its id"
        )
    try:
        card = await trello.get(f"/cards/{quote(reference, safe='')}", fields="idBoard,closed")
    except Failure as error:
        if error.code != TARGET_GONE:
            raise
        raise NotFound(f"--digest-card: the bot cannot see card {reference}: {error}") from None
    if string(card, "idBoard") != board or not is_id(string(card, "id")):
        raise UsageError("--digest-card: the card is on another board; give a card of this board")
    if card.get("closed") is True:
        raise UsageError("--digest-card: the card is archived; give another card")
    return string(card, "id")


def _named(fields: Sequence[CustomField], use: FieldUse, name: str, option: str) -> str:
    matching = _matching(fields, name)
    if not matching:
        existing = ", ".join(f"{field.name!r} ({field.type})" for field in fields[:30])
        nothing = "none; enable the Power-Up Custom Fields first"
        raise UsageError(
            f"--field {option[:80]!r}: the board has no custom field {name[:60]!r}; it has:"
            f" {existing or nothing}"
        )
    fitting = _fitting(matching, use)
    if not fitting:
        raise UsageError(
            f"--field {option[:80]!r}: {matching[0].name!r} is a {matching[0].type} field;"
            f" {use} needs a field of type {' or '.join(TYPES[use])}"
        )
    if len(fitting) > 1:
        ids = ", ".join(field.id for field in fitting)
        raise UsageError(
            f"--field {option[:80]!r}: {len(fitting)} fields have this name; give the id: {ids}"
        )
    return fitting[0].id


def _matching(fields: Sequence[CustomField], name: str) -> list[CustomField]:
    key = name.casefold()
    return [field for field in fields if name == field.id or field.name.strip().casefold() == key]


def _fitting(fields: Sequence[CustomField], use: FieldUse) -> list[CustomField]:
    """Return the fields with a type for a use, the preferred type first."""
    types = TYPES[use]
    return sorted((f for f in fields if f.type in types), key=lambda f: types.index(f.type))
