"""What a comment says to us: an answer, a decision, or nothing. Pure.

What counts is the first line that is neither quoted nor code: `2`, `/answer D-7/1 yes`,
`@draftsman yes`, `approve`, `deny because`. Words that are addressed to nobody may be talk among
people: whether they answer anything, their question tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(```+|~~~+)")
_CODE: Final = re.compile(r"(?: {4}|\t)")
_COMMAND: Final = re.compile(r"/(answer|approve|deny)\b\s*", re.IGNORECASE)
_MENTION: Final = re.compile(r"@([A-Za-z0-9_]{1,100})\b[,:]?\s*")
_NAMED: Final = re.compile(r"D-([1-9][0-9]{0,17})(?:/([1-9][0-9]{0,8}))?(?:\s+|$)", re.IGNORECASE)
_APPROVE: Final = re.compile(r"approve", re.IGNORECASE)
_DENY: Final = re.compile(r"deny(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)
_PICTURE: Final = re.compile(
    r"!?\[[^\[\]]{0,1000}\]\([^()\s]{0,2000}(?:\s{1,10}\"[^\"]{0,1000}\")?\)"
)
"""Bounded: a hostile comment must not cost quadratic time."""


@dataclass(frozen=True, slots=True)
class ParsedComment:
    """What is said, and how.

    `line` is the line that counts, `text` that and all that follows it unquoted; `decision` is set
    for exactly `approve` or `deny`, with a reason or none. `addressed` words are surely meant for
    us. `job` and `question` are those that they name.
    """

    line: str
    text: str
    mentioned: bool = False
    job: int | None = None
    question: int | None = None
    decision: bool | None = None
    reason: str | None = None


def parse(text: str, username: str) -> ParsedComment | None:
    """Read a comment; None where it has nothing to say to us, `username` being our own name."""
    lines = list(_own_words(text))
    if not lines:
        return None
    first, addressed, verb = lines[0].strip(), False, ""
    if match := _MENTION.match(first):
        if match[1].casefold() != username.casefold():
            return None  # it speaks to somebody else
        first, addressed = first[match.end() :], True
    if match := _COMMAND.match(first):
        first, addressed, verb = first[match.end() :], True, match[1].casefold()
    job = question = None
    if addressed and (match := _NAMED.match(first)):
        job, question = int(match[1]), int(match[2]) if match[2] else None
        first = first[match.end() :]
    said = _said(first, lines[1:])
    if verb in ("approve", "deny"):
        return _verb(verb, said, addressed, job, question)
    return _plain(first, said, addressed, job, question)


def is_attachment_only(text: str) -> bool:
    """Return whether this is pictures and links to files alone, which say nothing."""
    return bool(text.strip()) and not _PICTURE.sub("", text).strip()


def _verb(
    verb: str, said: str, addressed: bool, job: int | None, question: int | None
) -> ParsedComment | None:
    if verb == "deny":
        return ParsedComment(said, said, addressed, job, question, False, said or None)
    if said:  # only the word alone approves
        return ParsedComment(said, said, addressed, job, question)
    return ParsedComment(said, said, addressed, job, question, True)


def _plain(
    first: str, said: str, addressed: bool, job: int | None, question: int | None
) -> ParsedComment | None:
    if _APPROVE.fullmatch(said):
        return ParsedComment(first, said, addressed, job, question, True)
    if match := _DENY.fullmatch(said):
        reason = (match[1] or "").strip() or None
        return ParsedComment(first, said, addressed, job, question, False, reason)
    if not said and not addressed:
        return None
    return ParsedComment(first.strip(), said, addressed, job, question)


def _said(first: str, others: list[str]) -> str:
    return "\n".join([first.strip(), *(line.rstrip() for line in others)]).strip()


def _own_words(text: str) -> Iterator[str]:
    """Yield the lines that somebody wrote, from the first that says something on."""
    fence, begun = "", False
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        if match := _FENCE.match(line):
            fence = match[1]
            continue
        if line.lstrip().startswith(">") or (_CODE.match(line) and not begun):
            continue
        if line.strip() or begun:
            begun = True
            yield line
