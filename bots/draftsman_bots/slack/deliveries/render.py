"""Rendering of messages: blocks, and `text` for clients that cannot show them. Pure.

The result is valid for any text. Only the people whom a question is for are mentioned, and notified
by its first copy only: an edit sends no notification.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from draftsman.deliveries.attachment import (
    LENGTH,
    is_long,
    is_truncated_result,
    overflow_files,
)
from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.deliveries.plain_text import (
    brief_spans,
    job_outcome_spans,
    notice_spans,
    pause_text,
    progress_text,
    resolution_spans,
    shown_error,
    state_text,
    title_before,
)
from draftsman.deliveries.result_text import change_summary, counts_summary, pr_url
from draftsman.jobs.control.job_message import AGENT_TYPE
from draftsman.jobs.job import TERMINAL, Status
from draftsman.people.spans import ActorRef, spans_text
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.blocks import (
    Block,
    actions,
    bold,
    button,
    code_block,
    context,
    drop_to_fit,
    local_time,
    paragraphs,
    section,
)
from draftsman_bots.slack.deliveries.mrkdwn import (
    MAX_NAME,
    MAX_TEXT,
    escape_truncated,
    link,
    mention,
    mention_spans,
)
from draftsman_bots.slack.questions.question_blocks import (
    BOT_NAME,
    AnswerReactions,
    fit_question,
)
from draftsman_bots.text import truncate, truncate_spans

STATUS_EMOJI: Final = {
    Status.SCHEDULED: ":alarm_clock:",
    Status.QUEUED: ":hourglass:",
    Status.CLAIMED: ":hourglass:",
    Status.RUNNING: ":gear:",
    Status.RESUMED: ":gear:",
    Status.RETRYING: ":repeat:",
    Status.WAITING_FOR_INPUT: ":question:",
    Status.WAITING_FOR_APPROVAL: ":question:",
    Status.COMPLETED: ":white_check_mark:",
    Status.FAILED: ":x:",
    Status.DEAD_LETTER: ":x:",
    Status.CANCELED: ":no_entry_sign:",
    Status.EXPIRED: ":stopwatch:",
}
DENIED_EMOJI: Final = ":no_entry:"
"""For a job that a person denied, which is not an error."""
RETRYABLE: Final = TERMINAL - {Status.COMPLETED}
"""Terminal statuses with a retry button."""
TRUNCATED_NOTICE: Final = "Truncated. The full text is a file in this thread."
DATA_NOTICE: Final = "The data of the result is a file in this thread."


@dataclass(frozen=True, slots=True)
class Rendered:
    """Arguments of `chat.postMessage` and `chat.update`."""

    text: str
    blocks: list[Block]


def render(
    message: Message,
    *,
    replies: bool = False,
    reactions: AnswerReactions = AnswerReactions.NONE,
) -> Rendered:
    """Return the rendered message.

    `replies`: an answer is read without a mention of the bot.
    """
    blocks = _blocks(message, replies, reactions)
    return Rendered(render_plain_text(message, replies=replies), drop_to_fit(blocks))


def render_plain_text(message: Message, *, replies: bool = False) -> str:
    """Return the message as plain text within Slack's limit."""
    instruction = "reply in this thread" if replies else f"mention {BOT_NAME} in this thread"
    return mention_spans(brief_spans(message, instruction), MAX_TEXT)


def _blocks(message: Message, replies: bool, reactions: AnswerReactions) -> Iterator[Block]:
    match message.kind:
        case DeliveryKind.STATUS:
            yield from _card(message)
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER if message.question is not None:
            yield from _question(message, replies, reactions)
        case DeliveryKind.QUESTION_CLOSED if message.question is not None:
            yield from _closed(message)
        case DeliveryKind.RESULT:
            yield from _result(message)
        case DeliveryKind.NOTICE:
            yield from _notice(message)
        case _:
            yield section(render_plain_text(message))


def _card(message: Message) -> Iterator[Block]:
    """Yield the status card of a job, which is updated with each status and with progress."""
    subject = message.subject
    yield section(_headline(subject))
    yield context(*_facts(subject))
    if progress := progress_text(message):
        yield context(*(escape_truncated(text, 300) for text in progress.split("\n")))
    if error := shown_error(subject):
        yield code_block(truncate(error, LENGTH // 4))
    if control := _buttons(subject):
        yield actions([control])


def _headline(subject: Subject) -> str:
    emoji = DENIED_EMOJI if subject.denied else STATUS_EMOJI[subject.status]
    return f"{emoji} *{subject.name}* {bold(subject.title)}"


def _facts(subject: Subject, *, outcome: bool = True) -> Iterator[str]:
    """Yield facts of a job; a result has shown the `outcome` of a denial or cancel before."""
    state = state_text(subject)

    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        state = f"{state} {local_time(subject.next_retry_at)}"
    if not subject.denied:
        yield state
    if pause := pause_text(subject):
        yield escape_truncated(pause, 300)
    if outcome and (subject.status is Status.CANCELED or subject.denied):
        yield mention_spans(job_outcome_spans(subject, again=""), 300)
    for name, value in (("", subject.repo), ("by ", subject.agent), ("group ", subject.group)):
        if value:
            yield name + escape_truncated(value, MAX_NAME)
    if subject.usage:
        yield subject.usage
    if duration := duration_text(subject):
        yield duration
    if subject.invoker:
        yield f"for {mention(ActorRef(subject.invoker))}"
    if subject.url:
        yield link(subject.url)
    if (time := subject.finished_at or subject.created_at) is not None:
        yield local_time(time)


def duration_text(subject: Subject) -> str:
    """Return how long a finished job took from its request: `took 12 min`; else ""."""
    if subject.finished_at is None or subject.created_at is None:
        return ""
    seconds = max(0, round((subject.finished_at - subject.created_at).total_seconds()))
    if seconds < 60:
        return f"took {seconds} s"
    minutes = seconds // 60
    hours = seconds // 3600
    if hours == 0:
        return f"took {minutes} min"
    days, hours_of_day = divmod(hours, 24)
    if days:
        return f"took {days} d {hours_of_day} h"
    return f"took {hours} h {minutes - 60 * hours} min"


def _buttons(subject: Subject) -> Block | None:
    value = ids.job_value(subject.number)
    if subject.status in RETRYABLE:
        return button("Retry", ids.RETRY, value)
    if subject.status in TERMINAL:
        return None
    confirm = f"Cancel {subject.name}? Work so far is kept."
    return button("Cancel job", ids.CANCEL, value, style="danger", confirm=confirm)


def _question(message: Message, replies: bool, reactions: AnswerReactions) -> Iterator[Block]:
    question = message.question
    assert question is not None  # noqa: S101
    payload = message.payload or {}
    reminder = []
    if message.kind is DeliveryKind.REMINDER:
        text = payload.get("text") or f"{question.name} is still waiting for an answer"
        reminder = paragraphs(str(text), 1)
    title = message.subject.title
    yield from fit_question(
        question,
        title,
        message.mentions,
        reminder,
        replies=replies,
        reactions=reactions,
        changes=message.changes,
        delegation=message.delegation,
    )


def _closed(message: Message) -> Iterator[Block]:
    """Yield the resolution of a question, without controls."""
    question = message.question
    assert question is not None  # noqa: S101
    yield from paragraphs((f"{question.name} ", *resolution_spans(question)))
    if title := title_before(question, message.subject.title):
        yield context(f"{bold(title, 200)} asked:")
    yield from paragraphs(question.text)


def _result(message: Message) -> Iterator[Block]:
    subject = message.subject
    result = message.subject.result or {}
    yield section(_headline(subject))
    if subject.status is not Status.COMPLETED:  # the summary below says so
        outcome = job_outcome_spans(subject, again="press Retry")
        yield from paragraphs(truncate_spans(outcome, LENGTH // 2), 3)
    if subject.group_stop:
        yield section(escape_truncated(subject.group_stop, 300))
    summary = result.get("summary")
    if isinstance(summary, str) and summary.strip():
        yield from paragraphs(truncate(summary, LENGTH // 2), 3)
    if url := pr_url(result):
        yield section(link(url))
    for text in (change_summary(result), counts_summary(result)):
        yield from paragraphs(truncate(text, LENGTH // 4), 1)
    if facts := list(_facts(subject, outcome=False)):
        yield context(*facts)
    if overflow_files(message):
        yield context(TRUNCATED_NOTICE if is_truncated_result(message) else DATA_NOTICE)
    controls = [_buttons(subject)] if subject.status in RETRYABLE else []
    if subject.type == AGENT_TYPE and subject.status in TERMINAL:
        value = ids.job_value(subject.number)
        controls.append(button("Retry with changes…", ids.REVISE, value))
    if buttons := [control for control in controls if control is not None]:
        yield actions(buttons)


def _notice(message: Message) -> Iterator[Block]:
    prefix, *spans = notice_spans(message)
    yield from paragraphs((prefix, *truncate_spans(spans, LENGTH)), 5)
    if is_long(spans_text(spans)) and "to" not in (message.payload or {}):
        yield context(TRUNCATED_NOTICE)
    if isinstance(rule := (message.payload or {}).get("rule"), int) and rule > 0:
        value = ids.rule_value(rule)
        ratify = button("Ratify", ids.RATIFY_RULE, value, style="primary")
        yield actions([ratify, button("Decline", ids.DECLINE_RULE, value, style="danger")])
