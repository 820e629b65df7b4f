"""Rendering of pages; all text is escaped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from draftsman.agent_runs.changes.shown_diff import ShownDiff
from draftsman.deliveries.documents.html import time_html
from draftsman.formats import times
from draftsman.formats.amounts import count_text
from draftsman.formats.invisible import escape_invisible
from draftsman.formats.truncation import truncate
from draftsman.questions.question import MEANINGS
from draftsman.text import capitalized, humanize, text_digest
from draftsman_bots.process.http import BodyRejected, read_body
from draftsman_bots.web.access import Visit
from draftsman_bots.web.problems import PageProblem
from draftsman_bots.web.section_html import (
    TONES,
    print_event,
    print_line,
    print_prose,
    print_section,
)

if TYPE_CHECKING:
    from draftsman.jobs.pending_decisions.pending_decision import PendingDecision


def page(
    name: str,
    visit: Visit | None,
    *,
    status: int = 200,
    active: str = "",
    live: bool = False,
    **context: Any,
) -> Response:
    """Render a template as a response; `active` is the page of the menu.

    A `live` page is what a GET of its address returns; its browser fetches it again while it is
    seen. Its entity tag is without the key of its form, which is another one in each copy.
    """
    template = _environment().get_template(f"{name}.html")
    text = template.render(visit=visit, active=active, live=live, **context)
    response = HTMLResponse(text, status)
    if live:
        key = context.get("key")
        response.headers["etag"] = f'"{text_digest(text.replace(key, "") if key else text)}"'
    return response


def fragment(name: str, **context: Any) -> str:
    """Render a part of a page."""
    return _environment().get_template(f"{name}.html").render(**context)


def time_markup(moment: datetime) -> Markup:
    """Return a time relative to now, with the exact time as its title."""
    text = times.ago(moment) if moment <= datetime.now(UTC) else times.until(moment)
    return Markup(time_html(moment, text))  # noqa: S704 - of an escaped text


def seconds_left(decision: PendingDecision, now: datetime) -> int:
    """Return the whole seconds until the end of an undo window."""
    return max(0, ceil((decision.applies_at - now).total_seconds()))


def visible_value(value: Any) -> Any:
    """Return a text with its invisible characters escaped."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return escape_invisible(value)
    return "" if value is None else value


MAX_UNFOLDED: Final = 300
"""Lines of a file that is unfolded at first."""
MAX_ALL_UNFOLDED: Final = 600
"""Lines of all files that are unfolded at first."""


def unfolded(diff: ShownDiff) -> set[str]:
    """Return the paths of the files that a page shows unfolded: the first ones, but large ones."""
    paths = set()
    room = MAX_ALL_UNFOLDED
    for file in diff.files:
        if file.size > MAX_UNFOLDED:
            continue
        room -= file.size
        if room < 0:
            break
        paths.add(file.file.path)
    return paths


LINE_CLASSES: Final = {"+": "add", "-": "del", "@": "hunk", " ": "same"} | dict.fromkeys(
    ("\\", ""), "note"
)
"""Style of a line of a diff by its kind."""
_cached: list[Environment] = []


def _environment() -> Environment:
    if not _cached:
        environment = Environment(
            loader=PackageLoader("draftsman_bots.web"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=visible_value,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters: dict[str, Callable[..., Any]] = {
            "ago": time_markup,
            "count": count_text,
            "line_class": LINE_CLASSES.__getitem__,
            "unfolded": unfolded,
            "tone": lambda outcome: TONES[MEANINGS[outcome]],
            "meaning": TONES.__getitem__,
            "line": print_line,
            "seconds": lambda decision: seconds_left(decision, datetime.now(UTC)),
            "section": print_section,
            "sentence": capitalized,
            "prose": print_prose,
            "event": print_event,
            "truncate": truncate,
            "words": humanize,
        }
        environment.filters.update(filters)
        _cached.append(environment)
    return _cached[0]


# Fields of forms, with limits on their number and size.


BODY_TIMEOUT: Final = 10.0
MAX_FIELDS: Final = 20
MEDIA_TYPE: Final = "application/x-www-form-urlencoded"


async def read_form(request: Request, *, most: int = MAX_FIELDS) -> dict[str, str]:
    """Return the fields of a form, at most so many; raises PageProblem.

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
            body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=most
        )
    except ValueError:
        raise PageProblem(400, "The form has too many fields.", "Open the page again.") from None
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields:
            raise PageProblem(400, "A field of the form is repeated.", "Open the page again.")
        fields[name] = value.replace("\r\n", "\n")
    return fields
