"""Renderer of messages as comments of a forge. Pure.

Texts of jobs and people have no effect there; only people to whom a question is addressed are
mentioned.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Final

from draftsman.agent_runs.changes.shown_code import visible_lines
from draftsman.deliveries.delivery import File, Message
from draftsman.deliveries.documents.builder import build_document, full_at
from draftsman.deliveries.documents.document import Step
from draftsman.deliveries.documents.markdown import print_markdown
from draftsman.deliveries.documents.plain import to_answer
from draftsman.forges import untrusted_text
from draftsman.formats.truncation import truncate
from draftsman.people.policy import Person
from draftsman.people.spans import ActorRef

# Markdown of comments: inert text, the marker of a message, and files as code.


MARKER: Final = re.compile(r"<!-- draftsman message=(?P<id>[0-9a-f-]{36}) -->")
"""The last line of a comment that draftsman wrote."""
_BINARY: Final = "\0"


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
        text = base64.b64encode(file.data).decode()
        note = " (base64)"
    name = untrusted_text.line(file.name, 200)
    kind = ""
    if file.name.endswith((".patch", ".diff")):
        kind = "diff"
        text = visible_lines(text)
    summary = f"<details><summary>{name}{note}</summary>"
    return f"{job}: {name}\n\n{summary}\n\n{fenced(text, kind)}\n\n</details>"


def render(message: Message, limit: int) -> str:
    """Return the text of a comment, which has room for its marker within the limit."""
    most = limit - len(with_marker("", message.marker, 0))
    markup = CommentMarkup(message.target)
    return print_markdown(build_document(message), markup, full_at(message), most, len)


@dataclass(frozen=True, slots=True)
class CommentMarkup:
    """The Markdown of the forges, in a comment on the issue or pull request `target`."""

    target: str

    in_file = "in the next comment"

    def block(self, text: str, most: int) -> str:
        """Return an inert text."""
        return untrusted_text.block(text, _room(text, most))

    def line(self, text: str, most: int) -> str:
        """Return an inert line."""
        return untrusted_text.line(text, _room(text, most))

    def code(self, text: str, most: int, language: str) -> str:
        """Return a block of code."""
        return fenced(untrusted_text.block(text, _room(text, most)), language)

    def link(self, url: str) -> str:
        """Return the URL, except that of the issue itself."""
        path, number = re.split("[#!]", self.target.partition("/")[2] + "#")[:2]
        is_here = f"/{path}/" in url.casefold() and url.rpartition("/")[2] == number
        return "" if is_here else untrusted_text.line(url, 500)

    def actor(self, actor: ActorRef) -> str:
        """Return the login of an account of a forge, or the name."""
        return actor.name.rpartition(":")[2] if actor.channel == "forge" else str(actor)

    def mention(self, person: Person) -> str:
        """Return a mention of an account of this forge, or the name."""
        here = f"{self.target.partition('/')[0].casefold()}:"
        logins = (id.removeprefix(here) for id in person.accounts("forge") if id.startswith(here))
        login = next(logins, "")
        return f"@{login}" if login else untrusted_text.line(person.name, 100)

    def step(self, step: Step) -> str:
        """Return how to answer in a comment, or the command."""
        if not step.is_answer:
            return f"`{step.command}`"
        answer = f"`/answer {step.command}` and "
        return to_answer(step, "comment", command=f"/{{}} {step.command}", answer=answer)


def _room(text: str, most: int) -> int:
    """Return the length of an inert text, which what makes it inert does not cut off."""
    return 2 * most if len(text) <= most else most
