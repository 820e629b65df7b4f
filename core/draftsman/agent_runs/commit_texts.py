"""Branches and messages of published work, by the templates of `[git]`. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from draftsman import text_template
from draftsman.forges.untrusted_text import inert, line
from draftsman.ids import job_name
from draftsman.settings.git import MESSAGE

MAX_SUBJECT: Final = 500
"""Maximum characters of the first line of a commit's message."""
MAX_SUMMARY: Final = 20_000
"""Maximum characters of the summary in a commit's message."""
MAX_FIELD: Final = 200
MAX_SLUG: Final = 40
_KEY: Final = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]{1,9}-[1-9]\d{0,8}(?![\w-])")
"""The key of a ticket in its title: `PAY-12`."""
_NUMBER: Final = re.compile(r"/(\d{1,18})(?:-[^/]*)?/?\Z")
"""The number of a ticket at the end of its URL: `/issues/12`, `/c/x1/12-fix-rounding`."""


def ticket_of(title: str, url: str | None) -> str:
    """Return the key of a ticket in its title, else its number in its URL; "" without any."""
    if (key := _KEY.search(title)) is not None:
        return key[0]
    number = _NUMBER.search(url or "")
    return "" if number is None else number[1]


def slug(text: str) -> str:
    """Return the words of a text for a part of a name: `fix-rounding-of-totals`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = "-".join(re.findall(r"[a-z0-9]+", plain.replace("'", "")))
    return words if len(words) <= MAX_SLUG else words[: MAX_SLUG + 1].rpartition("-")[0][:MAX_SLUG]


def job_fields(
    number: int, *, title: str, url: str | None, requester: str, agent: str
) -> dict[str, str]:
    """Return the fields that the templates of branches and messages share."""
    return {
        "job": job_name(number),
        "number": str(number),
        "ticket": ticket_of(title, url),
        "slug": slug(title),
        "requester": requester,
        "agent": agent,
    }


def branch_name(template: str, fields: Mapping[str, str]) -> str:
    """Return the name of a branch, without the separators of empty fields."""
    names = {key: fields[key] for key in ("job", "number", "ticket", "slug")}
    names |= {key: slug(fields[key]) for key in ("requester", "agent")}
    text = text_template.fill(template, names)
    text = re.sub(r"[-_.]*/[-_./]*", "/", text)
    return re.sub(r"-{2,}", "-", text).strip("-_./")


def commit_message(template: str, fields: Mapping[str, str], *, title: str, summary: str) -> str:
    """Return the message of a commit, in which only the template's own text has effects.

    At the merge, forges act on commits as on pull requests; git reads the last paragraph as
    trailers.
    """
    texts = {name: line(value, MAX_FIELD) for name, value in fields.items()}
    texts |= {"title": line(title, MAX_SUBJECT), "summary": inert(summary, MAX_SUMMARY)}
    text = text_template.fill(template, texts) or text_template.fill(MESSAGE, texts)
    return re.sub(r"\n{3,}", "\n\n", text.lstrip(" :-"))  # of an empty first field
