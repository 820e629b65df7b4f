"""Idempotency keys of Slack payloads, and the values of buttons and blocks. Pure.

A button carries only numbers, or the name of a template, which are looked up when it is pressed:
an old or a forged button cannot refer to anything else. The button that adds a schedule carries its
definition, which is checked like a typed command.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

ANSWER: Final = "draftsman_answer"
"""Prefix of the action ids of a choice's buttons, see `answer_action`."""
APPROVE: Final = "draftsman_approve"
DENY: Final = "draftsman_deny"
"""Opens the modal for the reason."""
REQUEST_CHANGES: Final = "draftsman_request_changes"
"""Opens the modal for what to change."""
FREE: Final = "draftsman_free"
"""Opens the modal for free text."""
CHOOSE: Final = "draftsman_choose"
"""Action of a select. With over 100 choices it is external; its block id is `question_block`."""
ACKNOWLEDGE: Final = "draftsman_ack"
SNOOZE: Final = "draftsman_snooze"
DELEGATE: Final = "draftsman_delegate"
"""Action of a select of users; its block id is `attention_block`."""
CANCEL: Final = "draftsman_cancel"
RETRY: Final = "draftsman_retry"
DISMISS: Final = "draftsman_dismiss"
REVISE: Final = "draftsman_revise"
"""Opens the modal of a finished job's request, to submit it with changes."""
REVISE_VIEW: Final = "draftsman_revise_view"
REFRESH: Final = "draftsman_refresh"
"""Publishes the App Home again."""
NEW_JOB: Final = "draftsman_new_job"
"""Opens the modal of a new job; also its callback id, and that of the global shortcut."""
FROM_MESSAGE: Final = "draftsman_from_message"
"""Callback id of the message shortcut."""
FREE_VIEW: Final = "draftsman_free_view"
DENY_VIEW: Final = "draftsman_deny_view"
REQUEST_CHANGES_VIEW: Final = "draftsman_request_changes_view"
TEMPLATE: Final = "draftsman_template"
"""Opens the modal of a template, or runs a template without parameters."""
TEMPLATE_VIEW: Final = "draftsman_template_view"
ADD_SCHEDULE: Final = "draftsman_add_schedule"
PAUSE_SCHEDULE: Final = "draftsman_pause_schedule"
RESUME_SCHEDULE: Final = "draftsman_resume_schedule"
REMOVE_SCHEDULE: Final = "draftsman_remove_schedule"
RATIFY_RULE: Final = "draftsman_ratify_rule"
DECLINE_RULE: Final = "draftsman_decline_rule"

LONGEST: Final = 200
"""Characters of a key; a longer key is replaced by its SHA-256."""
_QUESTION: Final = re.compile(r"q:([1-9][0-9]{0,17}):([1-9][0-9]{0,8})(?::([1-9][0-9]{0,3}))?")
_TEMPLATE: Final = re.compile(
    r"t:([A-Za-z0-9][A-Za-z0-9_.:-]{0,62}(?:@[1-9][0-9]{0,9})?"
    r"|(?:template|type)/[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}(?:@[0-9a-f]{1,12})?)"
)
_TARGET: Final = r"(slack:[A-Z0-9]{2,40}(?:/[0-9]{1,12}\.[0-9]{1,8})?)"
_REVISED: Final = r"j:([1-9][0-9]{0,17})"
_FORM: Final = re.compile(rf"{_TEMPLATE.pattern} {_TARGET}(?: {_REVISED})?")
_REVISION: Final = re.compile(rf"{_REVISED} {_TARGET}")
_NUMBERED: Final = re.compile(r"([jrs]):([1-9][0-9]{0,17})")


@dataclass(frozen=True, slots=True)
class AnswerValue:
    """A question, and optionally the number of a choice, from 1."""

    job: int
    question: int
    choice: int | None = None


def message_key(team: str, channel: str, ts: str) -> str:
    """Return the key of a message, the same for each delivery and event type.

    `team` is the workspace, or the organization if there is no workspace.
    """
    return _key("msg", team, channel, ts)


def trigger_key(trigger: str) -> str:
    """Return the key of a command or shortcut, by its trigger id, or all that it says."""
    return _key("trg", trigger)


def action_key(channel: str, message_ts: str, user: str, action_ts: str) -> str:
    """Return the key of a block action; in a view `message_ts` is the view's id."""
    return _key("act", channel, message_ts, user, action_ts)


def reaction_key(channel: str, message_ts: str, user: str, event_ts: str) -> str:
    """Return the key of a reaction, the same for each delivery."""
    return f"{reaction_prefix(channel, message_ts, user)}{event_ts}"


def reaction_prefix(channel: str, message_ts: str, user: str) -> str:
    """Return the beginning of the keys of a user's reactions to a message."""
    return _key("react", channel, message_ts, user, "")


def stop_key(channel: str, thread: str, user: str, event_ts: str) -> str:
    """Return the key of the stop of a thread's session, the same for each delivery."""
    return _key("stop", channel, thread, user, event_ts)


def view_key(view_id: str) -> str:
    """Return the key of a submitted modal."""
    return _key("view", view_id)


def message_ref(channel: str, ts: str) -> str:
    """Return the reference of a posted message in a Receipt: `C012/1700000000.000100`.

    The channel is that of Slack's response. Replies in the thread are matched by it.
    """
    return f"{channel}/{ts}"


def answer_action(choice: int) -> str:
    """Return the action id of the button of a choice, numbered from 1."""
    return f"{ANSWER}:{choice}"


def answer_value(job: int, question: int, choice: int | None = None) -> str:
    """Return the value of a button or option of a question: `q:142:1:3`.

    `choice` is numbered from 1; None for approve, deny and free text.
    """
    return f"q:{job}:{question}" + ("" if choice is None else f":{choice}")


def question_block(job: int, question: int) -> str:
    """Return the block id of a question's controls."""
    return answer_value(job, question)


def attention_block(job: int, question: int) -> str:
    """Return the block id of the controls of a question's attention."""
    return f"attention:{answer_value(job, question)}"


def parse_attention_block(block: str) -> AnswerValue | None:
    """Parse a block id of `attention_block`; None if it is invalid."""
    prefix, _, value = block.partition(":")
    return parse_answer(value) if prefix == "attention" else None


def job_value(job: int) -> str:
    """Return the value of a job's button: `j:142`."""
    return f"j:{job}"


def schedule_value(schedule: int) -> str:
    """Return the value of a schedule's button: `s:12`."""
    return f"s:{schedule}"


def rule_value(rule: int) -> str:
    """Return the value of a button of a permission rule: `r:3`."""
    return f"r:{rule}"


def template_value(name: str) -> str:
    """Return the value of the button of a template, or of a type: `t:bump`, `t:type/report`."""
    return f"t:{name}"


def form_metadata(name: str, target: str, job: int | None = None) -> str:
    """Return the metadata of a template's form: `t:bump@3 slack:C012 j:142`.

    `job` is the job whose request is submitted with changes.
    """
    metadata = f"{template_value(name)} {target}"
    return metadata if job is None else f"{metadata} {job_value(job)}"


def revision_metadata(job: int, target: str) -> str:
    """Return the metadata of the form of a job's request: `j:142 slack:C012`."""
    return f"{job_value(job)} {target}"


def parse_answer(value: object) -> AnswerValue | None:
    """Parse a value of `answer_value`; None if it is invalid."""
    match = _QUESTION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    return AnswerValue(int(match[1]), int(match[2]), int(match[3]) if match[3] else None)


def parse_job(value: object) -> int | None:
    """Parse a value of `job_value`; None if it is invalid."""
    return _parse_number("j", value)


def parse_schedule(value: object) -> int | None:
    """Parse a value of `schedule_value`; None if it is invalid."""
    return _parse_number("s", value)


def parse_rule(value: object) -> int | None:
    """Parse a value of `rule_value`; None if it is invalid."""
    return _parse_number("r", value)


def _parse_number(prefix: str, value: object) -> int | None:
    match = _NUMBERED.fullmatch(value) if isinstance(value, str) else None
    return int(match[2]) if match and match[1] == prefix else None


def parse_template(value: object) -> str | None:
    """Parse a value of `template_value`; None if it is invalid."""
    match = _TEMPLATE.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else None


def parse_form(metadata: str) -> tuple[str, str, int | None] | None:
    """Parse metadata of `form_metadata`: template, target and job; None if it is invalid."""
    match = _FORM.fullmatch(metadata)
    return (match[1], match[2], int(match[3]) if match[3] else None) if match else None


def parse_revision(metadata: str) -> tuple[int, str] | None:
    """Parse metadata of `revision_metadata`: job and target; None if it is invalid."""
    match = _REVISION.fullmatch(metadata)
    return (int(match[1]), match[2]) if match else None


def account_user_id(account: str) -> str:
    """Return the user id of an account, without its workspace."""
    return account.partition("@")[0]


def _key(kind: str, *ids: str) -> str:
    text = ":".join(("slack", kind, *ids))
    if len(text) <= LONGEST:
        return text
    return f"slack:{kind}:sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
