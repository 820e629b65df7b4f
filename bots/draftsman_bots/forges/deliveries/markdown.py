"""Markdown of comments: inert text, the marker of a message, and files as code. Pure."""

from __future__ import annotations

import base64
import re
from typing import Final

from draftsman.deliveries.delivery import File
from draftsman.forges import untrusted_text
from draftsman.forges.untrusted_text import ZERO_WIDTH, truncate

MARKER: Final = re.compile(r"<!-- draftsman message=(?P<id>[0-9a-f-]{36}) -->")
"""The last line of a comment that draftsman wrote."""
_LINK: Final = re.compile(r"\](?=[(\[:])")
_BINARY: Final = "\0"


def plain(text: str, limit: int) -> str:
    """Return an inert text whose code blocks are closed, without links that hide their URL."""
    return _LINK.sub(f"]{ZERO_WIDTH}", untrusted_text.block(text, limit))


def line(text: str, limit: int) -> str:
    """Return an inert text in a single line."""
    return _LINK.sub(f"]{ZERO_WIDTH}", untrusted_text.line(text, limit))


def quote(text: str, limit: int) -> str:
    """Return an inert text as a quotation."""
    return _LINK.sub(f"]{ZERO_WIDTH}", untrusted_text.quote(text, limit))


def fenced(text: str, kind: str = "") -> str:
    """Return code with a fence that it does not have, so that it cannot end it."""
    longest = max((len(ticks) for ticks in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}"


def with_marker(text: str, marker: str, limit: int) -> str:
    """Return a comment of at most `limit` characters, which ends with the marker."""
    end = f"\n\n<!-- draftsman message={marker} -->"
    return f"{truncate(text, max(limit - len(end), 0))}{end}" if text else end


def marker_of(body: str) -> str | None:
    """Return the marker in the last line of a comment: texts of people stand before it."""
    lines = body.rstrip().splitlines()
    match = MARKER.fullmatch(lines[-1].strip()) if lines else None
    return None if match is None else match["id"]


def render_file(job: str, file: File) -> str:
    """Return a file as a folded block of code; a binary file is encoded as base64."""
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        text = _BINARY
    note = ""
    if _BINARY in text:
        text, note = base64.b64encode(file.data).decode(), " (base64)"
    name = line(file.name, 200)
    kind = "diff" if file.name.endswith((".patch", ".diff")) else ""
    summary = f"<details><summary>{name}{note}</summary>"
    return f"{job}: {name}\n\n{summary}\n\n{fenced(text, kind)}\n\n</details>"
