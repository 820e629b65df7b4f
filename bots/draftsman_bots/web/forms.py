"""Fields of forms, with limits on their number and size."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from draftsman_bots.process.http import BodyRejected, read_body
from draftsman_bots.web.problems import PageProblem

BODY_TIMEOUT: Final = 10.0
MAX_FIELDS: Final = 20
MEDIA_TYPE: Final = "application/x-www-form-urlencoded"


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; raises PageProblem.

    Line breaks are those of text files: browsers send them as in HTTP.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise PageProblem(415, "This is not a form.", "Open the page again.")
    try:
        body = await read_body(request, BODY_TIMEOUT)
    except BodyRejected as error:
        raise PageProblem(error.status, f"The form was not accepted: {error}.") from None
    try:
        pairs = parse_qsl(
            body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS
        )
    except ValueError:
        raise PageProblem(400, "The form has too many fields.", "Open the page again.") from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields:
            raise PageProblem(400, "A field of the form is repeated.", "Open the page again.")
        fields[name] = value.replace("\r\n", "\n")
    return fields
