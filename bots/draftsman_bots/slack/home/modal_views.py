"""The modals and the App Home. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from slack_sdk.errors import SlackApiError

from draftsman.actions import jobs, questions
from draftsman.deliveries.documents.builder import RETRYABLE
from draftsman.formats.amounts import count_text
from draftsman.formats.truncation import utf16_length
from draftsman.ids import question_name
from draftsman.jobs.job import TERMINAL
from draftsman.jobs.job_summary import JobSummary
from draftsman.jobs.status_display import display_of
from draftsman.people.policy import Verb
from draftsman.questions.question import OpenQuestion
from draftsman_bots.conversation.requests import MODES
from draftsman_bots.slack import ids
from draftsman_bots.slack.controls import job_button
from draftsman_bots.slack.deliveries.blocks import (
    Block,
    actions,
    bold,
    button,
    context,
    option,
    plain_text,
    section,
)
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated, local_time
from draftsman_bots.slack.deliveries.render import controls
from draftsman_bots.slack.ephemeral import Reply, send_ephemeral
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.text import truncate

if TYPE_CHECKING:
    from draftsman.actions.action import Action
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import Interaction


View = dict[str, Any]

TEXT: Final = "text"
MODE: Final = "mode"
AGENT: Final = "agent"
REPO: Final = "repo"
REASON: Final = "reason"
"""Block ids of the inputs."""
MAX_INPUT: Final = 3000
"""Characters of an input."""
MAX_AGENTS: Final = 100
HOME_JOBS: Final = 10
"""Jobs that the App Home shows."""
HOME_QUESTIONS: Final = 15
"""Open questions that the App Home shows: a view has at most 100 blocks."""


def new_job(agents: Sequence[str], target: str = "", text: str = "") -> View:
    """Return the modal of a new job; `target` is that of its notifications."""
    is_truncated = utf16_length(text) > MAX_INPUT
    blocks = [_input(TEXT, "What should be done?", truncate(text, MAX_INPUT), multiline=True)]
    if is_truncated:
        blocks.append(
            context(f"The message is longer; these are its first {MAX_INPUT} characters.")
        )
    blocks.append(_select(MODE, "Mode", MODES))
    if len(agents) > 1:
        blocks.append(_select(AGENT, "Agent", agents[:MAX_AGENTS]))
    blocks.append(_input(REPO, "Repository (name or URL)", optional=True))
    return modal(blocks, callback=ids.NEW_JOB, title="New job", submit="Start", metadata=target)


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """The request of a job as its form shows it."""

    text: str
    mode: str
    agent: str | None
    repo: str


def revised_request(job: int, request: ShownRequest, agents: Sequence[str], target: str) -> View:
    """Return the modal of a job's request, to submit it with changes.

    A text that is longer than an input is not shown: the changes are added to it.
    """
    if is_too_long(request.text):
        label = "What should be different?"
        text = ""
        length = f"{len(request.text):,}"
        note = f"The request of D-{job} has {length} characters; your text is added to it."
        notes = [context(note)]
    else:
        label = "What should be done?"
        text = request.text
        notes = []
    blocks = [_input(TEXT, label, text, multiline=True), *notes]
    blocks.append(_select(MODE, "Mode", MODES, request.mode))
    if len(agents) > 1:
        blocks.append(_select(AGENT, "Agent", agents[:MAX_AGENTS], request.agent))
    blocks.append(_input(REPO, "Repository (name or URL)", request.repo, optional=True))
    metadata = ids.revision_metadata(job, target)
    title = truncate(f"D-{job} with changes", 24)
    return modal(blocks, callback=ids.REVISE_VIEW, title=title, submit="Start", metadata=metadata)


def is_too_long(text: str) -> bool:
    """Return whether an input cannot show this text."""
    return utf16_length(text) > MAX_INPUT


def free_text(job: int, question: int, text: str = "") -> View:
    """Return the modal for an answer in free text."""
    return _question_modal(questions.answer, (job, question), TEXT, ids.FREE_VIEW, text)


def deny_reason(job: int, question: int) -> View:
    """Return the modal for the optional reason of a denial."""
    return _question_modal(questions.deny, (job, question), REASON, ids.DENY_VIEW)


def wanted_changes(job: int, question: int) -> View:
    """Return the modal for what to change; a line `FILE:LINE=TEXT` is a comment."""
    return _question_modal(
        questions.request_changes, (job, question), TEXT, ids.REQUEST_CHANGES_VIEW
    )


def _question_modal(
    action: Action[questions.QuestionRow, ..., Any],
    row: questions.QuestionRow,
    block: str,
    callback: str,
    text: str = "",
) -> View:
    name = question_name(*row)
    verb = action.name.capitalize().replace("-", " ")
    optional = action.takes.usage.startswith("[")
    label = action.takes.prompt.format(name)
    field = _input(block, label, truncate(text, MAX_INPUT), optional=optional, multiline=True)
    title = truncate(f"{verb} {name}", 24)
    value = ids.answer_value(*row)
    return modal([field], callback=callback, title=title, submit=verb, metadata=value)


@dataclass(frozen=True, slots=True)
class OwnJobs:
    """The newest jobs of a person, one more than is shown if there are more.

    `allowed` are the permitted actions; `is_partial`: older jobs were not scanned.
    """

    jobs: Sequence[JobSummary] = ()
    allowed: frozenset[Verb] = frozenset()
    is_partial: bool = False


def home(waiting: Sequence[OpenQuestion], count: int, own_jobs: OwnJobs, command: str) -> View:
    """Return the App Home: the first of `count` questions for the person, then their jobs."""
    blocks = [_head(), section(f"*Questions for you{f': {count_text(count)}' if count else ''}*")]
    if not waiting:
        blocks.append(section("No question waits for you."))
    for question in waiting[:HOME_QUESTIONS]:
        heading = f"*{question.name}* {bold(question.title, 120)}"
        blocks.append(section(f"{heading}\n{escape_truncated(question.text, 1000)}"))
        blocks.extend(controls(question))
    if count > HOME_QUESTIONS:
        blocks.append(context(f"Showing the first {HOME_QUESTIONS}."))
    blocks.append(section("*Your jobs*"))
    blocks.extend(_job(job, own_jobs.allowed) for job in own_jobs.jobs[:HOME_JOBS])
    if len(own_jobs.jobs) > HOME_JOBS:
        blocks.append(context(f"Showing your newest {HOME_JOBS} jobs."))
    elif own_jobs.is_partial:
        blocks.append(context("Only the newest jobs were searched for yours."))
    elif not own_jobs.jobs:
        blocks.append(
            section(f"No jobs yet. Start one with `{command} fix TEXT` or *New job…* above.")
        )
    return {"type": "home", "blocks": blocks}


def home_denied(reason: str) -> View:
    """Return the App Home of a user without access, with the reason."""
    return {"type": "home", "blocks": [actions([_refresh()]), section(escape_truncated(reason))]}


def _head() -> Block:
    new = button("New job…", ids.NEW_JOB, ids.NEW_JOB, style="primary")
    return actions([new, _refresh()])


def _refresh() -> Block:
    return button("Refresh", ids.REFRESH, ids.REFRESH)


def _job(job: JobSummary, allowed: frozenset[Verb]) -> Block:
    display = display_of(job.status, paused=job.shown_as_paused)
    title = bold(job.title, 120)
    block = section(f"{display.emoji_code} *D-{job.number}* {title}")
    block["text"]["text"] += f"\n{display.word} · {local_time(job.finished_at or job.created_at)}"
    if job.status in RETRYABLE and Verb.RETRY in allowed:
        block["accessory"] = job_button(jobs.retry, job.number, f":{job.number}")
    elif job.status not in TERMINAL and Verb.CANCEL in allowed:
        block["accessory"] = job_button(jobs.cancel, job.number, f":{job.number}")
    return block


def modal(blocks: list[Block], *, callback: str, title: str, submit: str, metadata: str) -> View:
    """Return a modal with these blocks."""
    return {
        "type": "modal",
        "callback_id": callback,
        "title": plain_text(title, 24),
        "submit": plain_text(submit, 24),
        "close": plain_text("Cancel", 24),
        "private_metadata": metadata,
        "blocks": blocks,
    }


def _input(
    block: str, label: str, text: str = "", *, optional: bool = False, multiline: bool = False
) -> Block:
    element: Block = {
        "type": "plain_text_input",
        "action_id": block,
        "multiline": multiline,
        "max_length": MAX_INPUT,
    }
    if text:
        element["initial_value"] = text
    return {
        "type": "input",
        "block_id": block,
        "label": plain_text(label, 2000),
        "element": element,
        "optional": optional,
    }


def _select(block: str, label: str, names: Sequence[str], initial: str | None = None) -> Block:
    options = [option(name, name) for name in names]
    selected = names.index(initial) if initial in names else 0
    element = {
        "type": "static_select",
        "action_id": block,
        "options": options,
        "initial_option": options[selected],
    }
    return {
        "type": "input",
        "block_id": block,
        "label": plain_text(label, 2000),
        "element": element,
    }


# Opening of modals, before any lookup, because a trigger id expires after 3 s.


TIMED_OUT: Final = Reply("Slack timed out. Please try again.")
REFUSED: Final = "Slack did not open the form: {}."


def open_modal(ctx: BotContext, opened: Interaction, view: View) -> None:
    """Open a modal in the background; if the trigger id expired, tell the user."""
    ctx.background.spawn(_show(ctx, opened, view))


async def _show(ctx: BotContext, opened: Interaction, view: View) -> None:
    target = opened.reply_target
    try:
        await ctx.client.views_open(trigger_id=opened.trigger_id, view=view)
    except SlackApiError as error:
        if (code := error_code(error)) == "exchanged_trigger_id":
            return  # an earlier delivery of the same request opened it
        timed_out = code in ("expired_trigger_id", "invalid_trigger_id")
        send_ephemeral(ctx, target, TIMED_OUT if timed_out else Reply(REFUSED.format(code)))
    except NETWORK:
        send_ephemeral(ctx, target, TIMED_OUT)
