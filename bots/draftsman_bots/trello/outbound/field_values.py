"""Status and cost of a job in the custom fields of its card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.domain.trello.board import BoardConfig, FieldUse
from draftsman_bots.text import truncate
from draftsman_bots.trello.transport.custom_fields import (
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


def shows_fields(config: BoardConfig, message: Message) -> bool:
    """Return whether a message changes the custom fields of a card."""
    return bool(config.custom_fields) and message.kind in KINDS


async def set_fields(
    trello: Trello, config: BoardConfig, fields: Sequence[CustomField], message: Message
) -> None:
    """Write the status and the cost of a job into the custom fields of its card; raises Failure."""
    wanted = list(_values(config, fields, message.subject))
    if not wanted:
        return
    current = await fetch_values(trello, message.target)
    for field, value in wanted:
        if current.get(field.id) != value:
            await set_value(trello, message.target, field, value)


def status_text(subject: Subject) -> str:
    """Return the status of a job, as the option of a list is named."""
    return "denied" if subject.denied else str(subject.status).replace("_", " ")


def _values(
    config: BoardConfig, fields: Sequence[CustomField], subject: Subject
) -> Iterator[tuple[CustomField, Any]]:
    """Yield the fields with a value; a list without a matching option is left as it is."""
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
