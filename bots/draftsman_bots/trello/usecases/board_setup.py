"""How a board is watched, from what people call things: labels and lists become ids here.

A name counts whatever its case; an id stands for itself. All labels of one name are taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.domain.job import Mode, Status
from draftsman.domain.messages.delivery import TARGET_GONE
from draftsman.domain.trello.board import BoardConfig, LabelRule
from draftsman.errors import Failure, NotFound, UsageError
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.usecases.board_reader import listed

if TYPE_CHECKING:
    from draftsman_bots.trello.transport.client import Trello

NONE: Final = "none"
"""What is given for nothing."""
RULE_HELP: Final = "give STATUS=LIST or 'STATUS=LIST from LIST, LIST'"
_SHORT: Final = re.compile(r"[A-Za-z0-9]{8}")
_SHOWN: Final = 30
"""Names that an error lists."""


@dataclass(frozen=True, slots=True)
class BoardLayout:
    """A board as it is; labels, and lists that are not archived, by their ids."""

    id: str
    name: str
    url: str
    labels: Mapping[str, str]
    lists: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """What people want of a board; what is None stays as it is."""

    labels: Sequence[str] | None = None
    queued: str | None = None
    ready: str | None = None
    ignore: Sequence[str] | None = None
    rules: Sequence[str] | None = None
    template: str | None = None
    take_existing: bool | None = None


def parse_reference(text: str) -> str:
    """Return the id or the short link in a board's address; raises UsageError."""
    parts = urlsplit(text.strip()).path.strip("/").split("/")
    if parts[0] == "c" and len(parts) > 1:
        raise UsageError(f"{text[:80]!r} is a card; give the address of its board, …/b/…")
    found = parts[1] if parts[0] == "b" and len(parts) > 1 else parts[0]
    if not (is_id(found) or _SHORT.fullmatch(found)):
        raise UsageError(
            f"{text[:80]!r} is no board; give its address, https://trello.com/b/…, or its id"
        )
    return found


async def fetch_layout(trello: Trello, board: str) -> BoardLayout:
    """Return a board, by its id or short link; raises NotFound, Failure."""
    try:
        found = await trello.get(f"/boards/{board}", fields="name,url,closed")
        id = str(found["id"])
        labels = await listed(trello, f"/boards/{id}/labels", limit=1000)
        lists = await listed(trello, f"/boards/{id}/lists", filter="open", fields="name")
    except Failure as error:
        if error.code != TARGET_GONE:
            raise
        raise NotFound(
            f"Trello shows the bot no board {board}: {error}; is it right, and is the bot invited?"
        ) from None
    if found.get("closed"):
        raise NotFound(f"the board {found.get('name')!r} is closed; open it again in Trello")
    return BoardLayout(
        id, str(found["name"]), str(found.get("url") or ""), _names(labels), _names(lists)
    )


def build_config(
    board: BoardLayout, wishes: BoardOptions, old: BoardConfig | None = None
) -> tuple[BoardConfig, list[str]]:
    """Return how a board is to be watched, and what people should know of it.

    Raises UsageError with the names that there are.
    """
    said: list[str] = []
    fields: dict[str, Any] = {} if old is None else dict(old)
    fields |= {"board_id": board.id, "name": board.name, "url": board.url}
    if wishes.labels is not None:
        fields["labels"] = _rules(board, wishes.labels, said)
    if wishes.queued is not None:
        fields["queued_label_id"] = _queued(board, wishes.queued, said)
    if wishes.ready is not None:
        fields["ready_for_review_list_id"] = _place(board, wishes.ready, "--ready", optional=True)
    if wishes.ignore is not None:
        named = [one for one in wishes.ignore if one != NONE]
        fields["ignored_list_ids"] = tuple(
            dict.fromkeys(id for one in named for id in _places(board, one, "--ignore"))
        )
    if wishes.rules is not None:
        named = [one for one in wishes.rules if one != NONE]
        fields["transition_rules"] = dict(_transition(board, one) for one in named)
    if wishes.template is not None:
        fields["comment_template"] = None if wishes.template == NONE else wishes.template
    if wishes.take_existing is not None:
        fields["take_existing"] = wishes.take_existing
    try:
        return BoardConfig(**fields), said
    except ValidationError as error:
        raise UsageError(_first(error)) from None


def has_label(board: BoardLayout, label: str) -> bool:
    """Return whether a board has a label of that name."""
    return bool(_matching(board.labels, label))


def _rules(board: BoardLayout, wanted: Sequence[str], said: list[str]) -> dict[str, LabelRule]:
    found: dict[str, LabelRule] = {}
    for text in wanted:
        name, mode, agent = _label(board, text)
        ids = _matching(board.labels, name)
        if not ids:
            raise UsageError(_unknown("label", name, "--label", board.labels))
        if len(ids) > 1:
            said.append(f"{len(ids)} labels are called {name!r}: each of them counts")
        for id in ids:
            if id in found:
                raise UsageError(f"--label {text!r}: {name!r} is named twice; name it once")
            try:
                found[id] = LabelRule(name=board.labels[id][:200], mode=mode, agent=agent)
            except ValidationError as error:
                raise UsageError(f"--label {text[:60]!r}: {_first(error)}") from None
    return found


def _label(board: BoardLayout, text: str) -> tuple[str, Mode, str | None]:
    """Read `NAME[=MODE[/AGENT]]`; a name may hold what looks like more."""
    name, equals, rest = text.rpartition("=")
    if not equals or _matching(board.labels, text):
        return text, Mode.FIX, None
    mode, _, agent = rest.partition("/")
    if mode not in list(Mode):
        modes = " or ".join(Mode)
        raise UsageError(f"--label {text!r}: give NAME, NAME=MODE or NAME=MODE/AGENT, MODE {modes}")
    return name, Mode(mode), agent or None


def _queued(board: BoardLayout, name: str, said: list[str]) -> str | None:
    if name == NONE:
        return None
    ids = _matching(board.labels, name)
    if not ids:
        raise UsageError(_unknown("label", name, "--queued", board.labels))
    if len(ids) > 1:
        said.append(f"{len(ids)} labels are called {name!r}: cards get the first, {ids[0]}")
    return ids[0]


def _transition(board: BoardLayout, text: str) -> tuple[str, Any]:
    status, equals, rest = text.partition("=")
    status = status.strip()
    if not equals or not rest.strip():
        raise UsageError(f"--rule {text!r}: {RULE_HELP}")
    if status not in list(Status):
        raise UsageError(f"--rule {text!r}: {status!r} is no status; choose: {', '.join(Status)}")
    to, word, out_of = rest.rpartition(" from ")
    if not word or _matching(board.lists, rest):
        return status, _place(board, rest, "--rule")
    sources = [id for one in out_of.split(",") for id in _places(board, one, "--rule")]
    return status, {"to": _place(board, to, "--rule"), "from": sources}


def _place(board: BoardLayout, name: str, option: str, *, optional: bool = False) -> str | None:
    if optional and name == NONE:
        return None
    ids = _places(board, name, option)
    if len(ids) > 1:
        raise UsageError(
            f"{option}: {len(ids)} lists are called {name.strip()!r}; give one's id: "
            + ", ".join(ids)
        )
    return ids[0]


def _places(board: BoardLayout, name: str, option: str) -> list[str]:
    ids = _matching(board.lists, name)
    if not ids:
        raise UsageError(_unknown("list", name, option, board.lists))
    return ids


def _matching(things: Mapping[str, str], name: str) -> list[str]:
    if name.strip() in things:
        return [name.strip()]
    wanted = name.strip().casefold()
    return [id for id, own in things.items() if own.strip().casefold() == wanted and wanted]


def _unknown(what: str, name: str, option: str, there: Mapping[str, str]) -> str:
    names = [repr(own) if own.strip() else f"{id} (no name)" for id, own in there.items()]
    listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{option}: the board has no {what} {name.strip()!r}; it has: {listed or 'none'}"


def _names(things: list[dict[str, Any]]) -> dict[str, str]:
    return {str(one["id"]): str(one.get("name") or "") for one in things}


def _first(error: ValidationError) -> str:
    where, text = field_errors.first_error(error)
    return f"{where}: {text}" if where and where not in text else text
