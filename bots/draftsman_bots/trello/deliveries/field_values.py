"""Status and cost of a job in the custom fields of its card."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman_bots.text import truncate
from draftsman_bots.trello.records.board import BoardConfig, FieldUse
from draftsman_bots.trello.transport.cards import (
    TYPES,
    CustomField,
    fetch_values,
    set_value,
)

if TYPE_CHECKING:
    from draftsman_bots.trello.transport.client import Trello

KINDS: Final = (DeliveryKind.STATUS, DeliveryKind.RESULT)
"""Kinds of messages that show the state of a job."""
MAX_VALUE: Final = 200
MAX_CARDS: Final = 2_000
"""Cards whose last values are remembered: a job's progress changes its comment, not the fields."""


def shows_fields(config: BoardConfig, message: Message) -> bool:
    """Return whether a message changes the custom fields of a card."""
    return bool(config.custom_fields) and message.kind in KINDS


class FieldWriter:
    """Writes custom fields of cards; its state is only a cache."""

    def __init__(self) -> None:
        self._written: OrderedDict[str, dict[str, Any]] = OrderedDict()

    async def set_fields(
        self, trello: Trello, config: BoardConfig, fields: Sequence[CustomField], message: Message
    ) -> None:
        """Write the status and the cost of a job into the fields of its card; raises Failure."""
        card = message.target
        wanted = {
            field.id: (field, value) for field, value in _wanted_values(config, fields, message)
        }
        values_by_id = {id: value for id, (_, value) in wanted.items()}
        if not wanted or self._written.get(card) == values_by_id:
            return
        current = await fetch_values(trello, card)
        for id, (field, value) in wanted.items():
            if current.get(id) != value:
                await set_value(trello, card, field, value)
        self._written[card] = values_by_id
        if len(self._written) > MAX_CARDS:
            self._written.popitem(last=False)


def status_text(subject: Subject) -> str:
    """Return the status of a job, as the option of a list is named."""
    return "denied" if subject.denied else str(subject.status).replace("_", " ")


def _wanted_values(
    config: BoardConfig, fields: Sequence[CustomField], message: Message
) -> Iterator[tuple[CustomField, Any]]:
    """Yield the fields with a value; a list without a matching option is left as it is."""
    subject = message.subject
    by_id = {field.id: field for field in fields}
    for use, id in config.custom_fields.items():
        field = by_id.get(id)
        if field is None or field.type not in TYPES[use]:
            continue
        text = status_text(subject) if use is FieldUse.STATUS else _cost(subject, field.type)
        if field.type == "list":
            value: Any = field.option(text)
        else:
            value = {field.type: truncate(text, MAX_VALUE)} if text else None
        if value is not None:
            yield field, value


def _cost(subject: Subject, type: str) -> str:
    """Return the cost in US dollars for a number, else tokens and cost; "" if nothing was used."""
    if type == "number":
        return f"{subject.cost:.2f}" if subject.cost > 0 else ""
    return subject.usage
