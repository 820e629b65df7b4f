"""Names on the wire: the keys of what comes in, and what buttons and blocks carry. Pure.

A button carries numbers alone. What they stand for is looked up when it is pressed, so that an old
button, or one that somebody changed, can mean nothing else.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

ANSWER: Final = "draftsman_answer"
"""Begins the action id of a choice's button; `answer_action` makes it, one for each of a block."""
APPROVE: Final = "draftsman_approve"
DENY: Final = "draftsman_deny"
"""Opens a modal that takes the reason."""
FREE: Final = "draftsman_free"
"""Opens a modal that takes free text."""
CHOOSE: Final = "draftsman_choose"
"""Of a select. Over 100 choices it is external, and `question_block` must name its block."""
CANCEL: Final = "draftsman_cancel"
RETRY: Final = "draftsman_retry"
REFRESH: Final = "draftsman_refresh"
"""Draws the App Home anew."""
NEW_JOB: Final = "draftsman_new_job"
"""Opens the modal of a new job; also its callback id, and that of the global shortcut."""
FROM_MESSAGE: Final = "draftsman_from_message"
"""Callback id of the message shortcut."""
FREE_VIEW: Final = "draftsman_free_view"
DENY_VIEW: Final = "draftsman_deny_view"

LONGEST: Final = 200
"""Characters of a key; a longer one is replaced by its SHA-256."""
_QUESTION: Final = re.compile(r"q:([1-9][0-9]{0,17}):([1-9][0-9]{0,8})(?::([1-9][0-9]{0,3}))?")
_JOB: Final = re.compile(r"j:([1-9][0-9]{0,17})")


@dataclass(frozen=True, slots=True)
class AnswerValue:
    """A question, and its choice by number from 1, if one was meant."""

    job: int
    question: int
    choice: int | None = None


def message_key(team: str, channel: str, ts: str) -> str:
    """Return the key of a message, which is one however often and as what it is delivered.

    `team` is the workspace, or the organisation where there is none.
    """
    return _key("msg", team, channel, ts)


def trigger_key(trigger_id: str, body: str = "") -> str:
    """Return the key of a command or shortcut; `body` counts where it has no trigger id."""
    return _key("trg", trigger_id or hashlib.sha256(body.encode("utf-8", "replace")).hexdigest())


def action_key(channel: str, message_ts: str, user: str, action_ts: str) -> str:
    """Return the key of a press; in a view `message_ts` is the view's id."""
    return _key("act", channel, message_ts, user, action_ts)


def view_key(view_id: str) -> str:
    """Return the key of a submitted modal."""
    return _key("view", view_id)


def message_ref(channel: str, ts: str) -> str:
    """Return what a posted message is called in a Receipt: `C012/1700000000.000100`.

    The channel is the one that Slack's reply names. A reply in its thread is found by it.
    """
    return f"{channel}/{ts}"


def answer_action(choice: int) -> str:
    """Return the action id of the button of a choice, by number from 1."""
    return f"{ANSWER}:{choice}"


def answer_value(job: int, question: int, choice: int | None = None) -> str:
    """Return what a button of a question, or an option of its select, carries: `q:142:1:3`.

    `choice` is its number from 1; None for approve, deny and free text.
    """
    return f"q:{job}:{question}" + ("" if choice is None else f":{choice}")


def question_block(job: int, question: int) -> str:
    """Return the block id of what a question is answered with: it says which one it is."""
    return answer_value(job, question)


def job_value(job: int) -> str:
    """Return what a button of a job carries: `j:142`."""
    return f"j:{job}"


def parse_answer(value: object) -> AnswerValue | None:
    """Read what `answer_value` made; None for anything else."""
    match = _QUESTION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    return AnswerValue(int(match[1]), int(match[2]), int(match[3]) if match[3] else None)


def parse_job(value: object) -> int | None:
    """Read what `job_value` made; None for anything else."""
    match = _JOB.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else None


def _key(kind: str, *parts: str) -> str:
    text = ":".join(("slack", kind, *parts))
    if len(text) <= LONGEST:
        return text
    return f"slack:{kind}:sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
