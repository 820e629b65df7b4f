"""Board configuration from names: resolves labels and lists to ids.

Names are matched regardless of case, ids exactly. A name selects all labels that have it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.deliveries.delivery import TARGET_GONE
from draftsman.errors import Failure, NotFound, UsageError
from draftsman.jobs.job import Mode, Status
from draftsman_bots.trello.boards import board_fields, board_reader
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.records.board import BoardConfig, LabelRule
from draftsman_bots.trello.records.cards import ENDS

if TYPE_CHECKING:
    from trello import Label, List

    from draftsman_bots.trello.transport.cards import CustomField
    from draftsman_bots.trello.transport.client import Trello

NONE: Final = "none"
"""Option value that clears a setting."""
TEMPLATE: Final = "template"
TYPE: Final = "type"
RULE_HELP: Final = "use STATUS=LIST or 'STATUS=LIST from LIST, LIST'"
_SHORT: Final = re.compile(r"[A-Za-z0-9]{8}")
_SHOWN: Final = 30
"""Maximum number of names in an error."""


@dataclass(frozen=True, slots=True)
class BoardLayout:
    """A board in Trello: names of its labels and open lists by id, and its custom fields."""

    id: str
    name: str
    url: str
    labels: Mapping[str, str]
    lists: Mapping[str, str]
    fields: Sequence[CustomField] = ()

    @property
    def names(self) -> dict[str, str]:
        """Names of labels, lists and custom fields by id; those of fields have their type."""
        fields = {field.id: f"{field.name} ({field.type})" for field in self.fields}
        return {**self.labels, **self.lists, **fields}


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """Changes to a board's configuration; None leaves a value unchanged."""

    labels: Sequence[str] | None = None
    queued_label: str | None = None
    ready: str | None = None
    ignore: Sequence[str] | None = None
    rules: Sequence[str] | None = None
    template: str | None = None
    include_existing: bool | None = None
    checklists: str | None = None
    due_dates: bool | None = None
    fields: Sequence[str] | None = None
    digest_card: str | None = None
    """Id of a card, or `none`."""


def parse_reference(text: str) -> str:
    """Return the id or the short link in a board's URL, perhaps without https://.

    Raises UsageError.
    """
    segments = urlsplit(text.strip()).path.strip("/").split("/")
    if segments[0].lower().removeprefix("www.") == "trello.com":
        segments = segments[1:] or [""]
    if segments[0] == "c" and len(segments) > 1:
        raise UsageError(f"{text[:80]!r} is a card, not a board; give the URL of its board, …/b/…")
    reference = segments[1] if segments[0] == "b" and len(segments) > 1 else segments[0]
    if not (is_id(reference) or _SHORT.fullmatch(reference)):
        raise UsageError(
            f"{text[:80]!r} is not a board; give its URL, https://trello.com/b/…, or its id"
        )
    return reference


async def fetch_layout(trello: Trello, board: str) -> BoardLayout:
    """Return a board, by its id or short link; raises NotFound, Failure."""
    try:
        trello_board = await trello.read(trello.client.get_board, quote(board, safe=""))
        labels = await board_reader.labels(trello, trello_board.id)
        lists = await trello.read(trello_board.open_lists)
        fields = await board_fields.readable_fields(trello, trello_board.id)
    except Failure as error:
        if error.code != TARGET_GONE:
            raise
        raise NotFound(
            f"the bot cannot see board {board}: {error}; check the id and invite the bot to the"
            " board"
        ) from None
    if trello_board.closed:
        raise NotFound(f"the board {trello_board.name!r} is closed; reopen it in Trello")
    return BoardLayout(
        id=trello_board.id,
        name=trello_board.name,
        url=trello_board.url,
        labels=_names(labels),
        lists=_names(lists),
        fields=fields,
    )


def build_config(
    board: BoardLayout, options: BoardOptions, old: BoardConfig | None = None
) -> tuple[BoardConfig, list[str]]:
    """Return the configuration of a board, and warnings.

    Raises UsageError with the names that exist.
    """
    warnings: list[str] = []
    fields: dict[str, Any] = {} if old is None else dict(old)
    fields |= {"board_id": board.id, "name": board.name, "url": board.url}
    if options.labels is not None:
        fields["labels"] = _rules(board, options.labels, warnings)
    if options.queued_label is not None:
        fields["queued_label_id"] = _queued(board, options.queued_label, warnings)
    if options.ready is not None:
        fields["ready_for_review_list_id"] = _list_id(
            board, options.ready, "--ready", optional=True
        )
    if options.ignore is not None:
        names = [name for name in options.ignore if name != NONE]
        fields["ignored_list_ids"] = tuple(
            dict.fromkeys(id for name in names for id in _list_ids(board, name, "--ignore"))
        )
    if options.rules is not None:
        rules = [rule for rule in options.rules if rule != NONE]
        fields["transition_rules"] = dict(_transition(board, rule) for rule in rules)
    if options.template is not None:
        fields["comment_template"] = None if options.template == NONE else options.template
    if options.fields is not None:
        fields["custom_fields"] = board_fields.choose_fields(board.fields, options.fields)
    if options.digest_card is not None:
        fields["digest_card_id"] = None if options.digest_card == NONE else options.digest_card
    for name in ("include_existing", "checklists", "due_dates"):
        if (value := getattr(options, name)) is not None:
            fields[name] = value
    try:
        return BoardConfig(**fields), warnings
    except ValidationError as error:
        raise UsageError(_first(error)) from None


def has_label(board: BoardLayout, label: str) -> bool:
    """Return whether a board has a label of that name."""
    return bool(_matching(board.labels, label))


def _rules(board: BoardLayout, texts: Sequence[str], warnings: list[str]) -> dict[str, LabelRule]:
    rules: dict[str, LabelRule] = {}
    for text in texts:
        name, rule = _label(board, text)
        ids = _matching(board.labels, name)
        if not ids:
            raise UsageError(_unknown("label", name, "--label", board.labels))
        if len(ids) > 1:
            warnings.append(f"{len(ids)} labels are named {name!r}: all of them are used")
        for id in ids:
            if id in rules:
                raise UsageError(f"--label {text!r}: {name!r} is given twice; give it once")
            try:
                rules[id] = LabelRule(name=board.labels[id][:200], **rule)
            except ValidationError as error:
                raise UsageError(f"--label {text[:60]!r}: {_first(error)}") from None
    return rules


def _label(board: BoardLayout, text: str) -> tuple[str, dict[str, Any]]:
    """Parse `NAME[=MODE[/AGENT]]`, `NAME=template/TEMPLATE` or `NAME=type/TYPE`.

    Return the name, and the fields of its rule.

    A name may contain these signs itself.
    """
    name, equals, rule = text.rpartition("=")
    if not equals or _matching(board.labels, text):
        return text, {}
    mode, _, detail = rule.partition("/")
    if mode in (TEMPLATE, TYPE) and detail:
        return name, {"template": rule}
    if mode not in list(Mode):
        modes = " or ".join(Mode)
        raise UsageError(
            f"--label {text!r}: use NAME, NAME=MODE, NAME=MODE/AGENT, NAME=template/TEMPLATE or"
            f" NAME=type/TYPE; MODE: {modes}"
        )
    return name, {"mode": Mode(mode), "agent": detail or None}


def bind_form(
    board: BoardLayout, old: BoardConfig, label: str, form: str
) -> tuple[BoardConfig, list[str]]:
    """Return the configuration with a label for `template/NAME` or `type/NAME`, and warnings."""
    warnings: list[str] = []
    rules = _rules(board, [f"{label}={form}"], warnings)
    return _with_labels(old, {**old.labels, **rules}), warnings


def unbind_form(old: BoardConfig, label: str) -> BoardConfig:
    """Return the configuration without the template or type of a label; raises NotFound."""
    bound = {id: rule.name for id, rule in old.labels.items() if rule.template is not None}
    ids = _matching(bound, label)
    if not ids:
        names = ", ".join(repr(name or id) for id, name in bound.items()) or "none"
        raise NotFound(f"no label {label[:80]!r} of {old.name} has a template; labels: {names}")
    return _with_labels(old, {id: rule for id, rule in old.labels.items() if id not in ids})


def _with_labels(old: BoardConfig, labels: dict[str, LabelRule]) -> BoardConfig:
    try:
        return BoardConfig(**dict(old) | {"labels": labels})
    except ValidationError as error:
        raise UsageError(_first(error)) from None


def _queued(board: BoardLayout, name: str, warnings: list[str]) -> str | None:
    if name == NONE:
        return None
    ids = _matching(board.labels, name)
    if not ids:
        raise UsageError(_unknown("label", name, "--queued-label", board.labels))
    if len(ids) > 1:
        warnings.append(f"{len(ids)} labels are named {name!r}: cards get the first, {ids[0]}")
    return ids[0]


def _transition(board: BoardLayout, text: str) -> tuple[str, Any]:
    status, equals, lists = text.partition("=")
    status = status.strip()
    if not equals or not lists.strip():
        raise UsageError(f"--rule {text!r}: {RULE_HELP}")
    if status not in (statuses := (*Status, *ENDS)):
        raise UsageError(
            f"--rule {text!r}: unknown status {status!r}; available: {', '.join(statuses)}"
        )
    to, word, out_of = lists.rpartition(" from ")
    if not word or _matching(board.lists, lists):
        return status, _list_id(board, lists, "--rule")
    sources = [id for name in out_of.split(",") for id in _list_ids(board, name, "--rule")]
    return status, {"to": _list_id(board, to, "--rule"), "from": sources}


def _list_id(board: BoardLayout, name: str, option: str, *, optional: bool = False) -> str | None:
    if optional and name == NONE:
        return None
    ids = _list_ids(board, name, option)
    if len(ids) > 1:
        raise UsageError(
            f"{option}: {len(ids)} lists are named {name.strip()!r}; give the id: " + ", ".join(ids)
        )
    return ids[0]


def _list_ids(board: BoardLayout, name: str, option: str) -> list[str]:
    ids = _matching(board.lists, name)
    if not ids:
        raise UsageError(_unknown("list", name, option, board.lists))
    return ids


def _matching(names_by_id: Mapping[str, str], name: str) -> list[str]:
    typed = name.strip()
    if typed in names_by_id:
        return [typed]
    if not typed:
        return []
    return [
        id
        for id, existing in names_by_id.items()
        if existing.strip().casefold() == typed.casefold()
    ]


def _unknown(kind: str, name: str, option: str, existing: Mapping[str, str]) -> str:
    names = [
        repr(existing_name) if existing_name.strip() else f"{id} (no name)"
        for id, existing_name in existing.items()
    ]
    listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{option}: the board has no {kind} {name.strip()!r}; it has: {listed or 'none'}"


def _names(entries: Sequence[Label] | Sequence[List]) -> dict[str, str]:
    return {entry.id: entry.name or "" for entry in entries}


def _first(error: ValidationError) -> str:
    where, text = field_errors.first_error(error)
    return f"{where}: {text}" if where and where not in text else text
