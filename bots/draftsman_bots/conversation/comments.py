"""Parser of comments: answers, decisions, or neither. Pure.

The first line that is neither quoted nor code decides: `2`, `/answer D-7/1 yes`, `@draftsman yes`,
`approve`, `deny because`, `/tell D-7 use the v2 API`, `/pause REASON`, `/cancel`, `/ack D-7/1 2h`.
A comment without a mention or command may be a conversation among people; the open questions decide
whether it is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from draftsman_bots.conversation.answers import ApprovalDecision, parse_decision

CONTROLS: Final = ("pause", "resume", "cancel")
"""Verbs that change a job."""
ATTENTION: Final = ("ack", "snooze", "delegate")
"""Verbs that change the notifications of a question."""
_FENCE: Final = re.compile(r" {0,3}(```+|~~~+)")
_CODE: Final = re.compile(r"(?: {4}|\t)")
COMMANDS: Final = ("answer", "approve", "deny", "tell", *CONTROLS, *ATTENTION)
_COMMAND: Final = re.compile(rf"/({'|'.join(COMMANDS)})\b\s*", re.IGNORECASE)
_UNKNOWN_COMMAND: Final = re.compile(r"/([A-Za-z][A-Za-z-]{1,30})(?=\s|$)")
_MENTION: Final = re.compile(r"@([A-Za-z0-9_]{1,100}(?:-[A-Za-z0-9_]{1,100}){0,5})\b[,:]?\s*")
_NAMED: Final = re.compile(r"D-([1-9][0-9]{0,17})(?:/([1-9][0-9]{0,8}))?(?:\s+|$)", re.IGNORECASE)
_PICTURE: Final = re.compile(
    r"!?\[[^\[\]]{0,1000}\]\([^()\s]{0,2000}(?:\s{1,10}\"[^\"]{0,1000}\")?\)"
)
"""Bounded: a hostile comment must not cost quadratic time."""


@dataclass(frozen=True, slots=True)
class ParsedComment:
    """Content of a comment.

    `line` is the deciding line, `text` that line and all unquoted lines after it. `mentioned` is
    set if the comment mentions the bot or has a command. `job` and `question` are set if the
    comment names them. `tell` is set for a message to the agent, `control` is `pause`, `resume` or
    `cancel`, `attention` is `ack`, `snooze` or `delegate`.
    """

    line: str
    text: str
    mentioned: bool = False
    job: int | None = None
    question: int | None = None
    decision: ApprovalDecision | None = None
    tell: bool = False
    control: str = ""
    attention: str = ""
    unknown: str = ""
    """The first word of a comment that looks like a command, without the slash: `paus`."""


def parse(text: str, username: str) -> ParsedComment | None:
    """Parse a comment; return None if it is not for the bot, whose name is `username`."""
    lines = list(_unquoted_lines(text))
    if not lines:
        return None
    first = lines[0].strip()
    addressed = False
    verb = ""
    if match := _MENTION.match(first):
        if match[1].casefold() != username.casefold():
            return None  # it mentions another member
        first = first[match.end() :]
        addressed = True
    if match := _COMMAND.match(first):
        first = first[match.end() :]
        addressed = True
        verb = match[1].casefold()
    job = question = None
    if addressed and (match := _NAMED.match(first)):
        job = int(match[1])
        question = int(match[2]) if match[2] else None
        first = first[match.end() :]
    body = _join(first, lines[1:])
    comment = ParsedComment(first.strip(), body, mentioned=addressed, job=job, question=question)
    if verb == "tell":
        return replace(comment, tell=True)
    if verb in CONTROLS:
        return replace(comment, control=verb)
    if verb in ATTENTION:
        return replace(comment, text=comment.line, attention=verb)
    if verb in ("approve", "deny"):
        return replace(comment, line=body, decision=_decision(verb, body))
    if not body and not addressed:
        return None
    comment = replace(comment, decision=parse_decision(body))
    if not verb and (match := _UNKNOWN_COMMAND.match(body)):
        return replace(comment, unknown=match[1])
    return comment


def is_attachment_only(text: str) -> bool:
    """Return whether a text consists only of images and links to files."""
    return bool(text.strip()) and not _PICTURE.sub("", text).strip()


def _decision(verb: str, body: str) -> ApprovalDecision | None:
    if verb == "deny":
        return ApprovalDecision(approved=False, reason=body or None)
    if body:  # only `/approve` without more text approves
        return None
    return ApprovalDecision(approved=True)


def _join(first: str, following: list[str]) -> str:
    return "\n".join([first.strip(), *(line.rstrip() for line in following)]).strip()


def _unquoted_lines(text: str) -> Iterator[str]:
    """Yield the lines that are neither quoted nor fenced, from the first with text on."""
    fence = ""
    started = False
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        if match := _FENCE.match(line):
            fence = match[1]
            continue
        if line.lstrip().startswith(">") or (_CODE.match(line) and not started):
            continue
        if line.strip() or started:
            started = True
            yield line
