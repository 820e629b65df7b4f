"""Live checks of custom fields."""

from __future__ import annotations

import re
from typing import Any, Final

from draftsman.deliveries.channels.live_check import LiveCheck, NotTried, assumed, require
from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, classify
from draftsman_bots.json_fields import string
from draftsman_bots.trello.boards import board_fields
from draftsman_bots.trello.live_checks.place import ScratchBoard
from draftsman_bots.trello.transport.cards import CustomField, fetch_fields, fetch_values, set_value

SERVER_ERROR: Final = 500
DATE: Final = "2030-01-02T03:04:05.000Z"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def _without_fields(place: ScratchBoard) -> str:
    try:
        fields = await fetch_fields(place.trello, place.board)
    except Failure as error:
        require((error.http_status or 0) < SERVER_ERROR, str(error))
        if classify(error) is not ErrorClass.PERMANENT:
            raise
        return f"HTTP {error.http_status}"
    if fields:
        raise NotTried("the board has custom fields; leave out --in")
    return "no fields"


async def _list_value(place: ScratchBoard) -> str:
    field = await _field(place, "list", "list", "running", "completed")
    option = field.option("completed")
    require(option, f"the field has the options {dict(field.options)}")
    await assumed(set_value(place.trello, place.card, field, option))
    value = (await fetch_values(place.trello, place.card)).get(field.id)
    require(value == option, f"the value is {value}")
    return "the option was set by its id"


async def _values(place: ScratchBoard) -> str:
    expected = {"checkbox": {"checked": "true"}, "date": {"date": DATE}}
    ids = {}
    for type, value in expected.items():
        field = await _field(place, type, type)
        ids[type] = field.id
        await assumed(set_value(place.trello, place.card, field, value))
    empty = await _field(place, "empty", "checkbox")
    values: dict[str, Any] = await fetch_values(place.trello, place.card)
    checked = values.get(ids["checkbox"])
    require(checked == expected["checkbox"], f"the checkbox is {checked}")
    date = string(values.get(ids["date"]), "date")
    require(_DATE.fullmatch(date), f"the date is {values.get(ids['date'])}")
    require(empty.id not in values, f"the field without a value is {values.get(empty.id)}")
    return f"the values are {checked} and {date}, and a field without a value is not returned"


async def _field(place: ScratchBoard, name: str, type: str, *options: str) -> CustomField:
    """Create a custom field; a board without them is no fault of the assumption."""
    try:
        id = await place.add_field(name, type, *options)
        fields = await board_fields.readable_fields(place.trello, place.board)
    except Failure as error:
        raise NotTried(f"needs custom fields: {error}") from None
    return next(field for field in fields if field.id == id)


CHECKS: Final = (
    LiveCheck(
        name="no-custom-fields",
        assumption="Without the Power-Up, Trello refuses custom fields with 4xx, or returns none",
        otherwise="With 5xx, messages of the board are retried, and then dead letters.",
        run=_without_fields,
    ),
    LiveCheck(
        name="list-value",
        assumption="The value of a list is set by `idValue` alone",
        otherwise="The field is skipped.",
        run=_list_value,
    ),
    LiveCheck(
        name="field-values",
        assumption='A checkbox is `{"checked": "true"}`, a date is in UTC with milliseconds, and a'
        " field without a value is not returned, as in the guide to custom fields",
        otherwise="A comment names the parameter.",
        run=_values,
    ),
)
