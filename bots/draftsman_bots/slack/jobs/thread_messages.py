"""Replies in the thread of a job that answer no question, as messages to its agent.

A finished job takes them while its pull request is open: they start a follow-up. Without one, a
mention starts a job after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from draftsman.actions import jobs
from draftsman.errors import NotPermitted
from draftsman.jobs.control.job_message import MAX_TEXT
from draftsman.jobs.job import AGENT_TYPE, TERMINAL
from draftsman_bots.conversation.commands import Access
from draftsman_bots.conversation.replies import act
from draftsman_bots.conversation.requests import JobRequest
from draftsman_bots.slack.ephemeral import Reply, error_reply, spoken
from draftsman_bots.slack.payloads.payloads import MessageChange
from draftsman_bots.slack.people.access import SlackConversation, authorize_person
from draftsman_bots.slack.records.service import SlackThreads
from draftsman_bots.slack.requests import job_requests, revisions
from draftsman_bots.slack.requests.job_requests import RequestOrigin, job_target

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import FileRef
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.payloads.payloads import MessageEvent
    from draftsman_bots.slack.people.user import SlackUser

NOT_A_MESSAGE: Final = Reply("")
"""No job of the thread takes messages."""


async def handle_message(ctx: BotContext, message: MessageEvent) -> Reply | None:
    """Send a reply to the agent of its thread's job; return the reply to its author."""
    live, finished = await _agents_jobs(ctx, message)
    if not live and finished and await ctx.rt.forge_events.follow_ups.is_open(finished[0]):
        live = finished[:1]
    text = message.text.strip() or _file_text(message)
    addressed = message.mentioned or (message.private and ctx.identity.is_agent)
    if not live and finished and text and addressed:
        await _follow_up(ctx, message, finished[0], text)
        return None
    if not live or not text or message.change is MessageChange.DELETED:
        return NOT_A_MESSAGE
    if addressed and await job_requests.find_job(ctx, message):
        return None  # it has started a job of the thread, and is delivered again
    try:
        await authorize_person(ctx, message.user)
        if message.change is MessageChange.EDITED:
            return Reply(f"An edit is not sent to the agent of D-{live[0]}. Write another message.")
        if len(live) > 1:
            names = " or ".join(f"D-{job}" for job in live)
            command = f"{ctx.settings.command} tell D-{live[0]} TEXT"
            return Reply(f"Which job is this message for, {names}? Send it with `{command}`.")
        refs = job_requests.file_refs(ctx, message.files)
        return await send(ctx, message.user, live[0], text, message.key, refs)
    except NotPermitted as error:  # talk of people who may not send messages: told once
        first = ctx.background.first(("message", live[0], message.user.id))
        return error_reply(error) if first else None


async def finished_job(ctx: BotContext, message: MessageEvent) -> int | None:
    """Return the newest finished agent's job of a message's thread; None if another is active."""
    if not message.thread:
        return None
    live, finished = await _agents_jobs(ctx, message)
    return finished[0] if finished and not live else None


async def _agents_jobs(ctx: BotContext, message: MessageEvent) -> tuple[list[int], list[int]]:
    """Return the unfinished and the finished agents' jobs of a thread, newest first."""
    live = list[int]()
    finished = list[int]()
    topics = await SlackThreads(ctx.rt).topics(message.channel, message.thread)
    for number in dict.fromkeys(topic.job for topic in topics):
        job = await ctx.rt.read_model.job(number)
        if job.type == AGENT_TYPE:
            (finished if job.status in TERMINAL else live).append(number)
    return live, finished


async def _follow_up(ctx: BotContext, message: MessageEvent, number: int, text: str) -> None:
    """Submit a mention in the thread of a finished job as a job after it; raises DraftsmanError.

    The new job posts its own message in the thread. Slack delivers a mention twice, also after
    the new job has begun: the key of the message makes a single job.
    """
    if message.change is not MessageChange.POSTED:
        return
    actor = await authorize_person(ctx, message.user, message.channel)
    job = await ctx.rt.read_model.job(number)
    request = JobRequest(text, str(job.agent_request.mode), revisions.repository_options(job))
    refs = job_requests.request_refs(
        ctx, message.channel, message.thread, message.ts, message.files
    )
    target = job_target(message.channel, message.thread, message.user.id)
    origin = RequestOrigin(message.key, target, attachments=refs, revises=number)
    await job_requests.submit(ctx, actor, origin, request)


def _file_text(message: MessageEvent) -> str:
    """Return the text of a message that has only files."""
    names = ", ".join(file.name for file in message.files)
    return f"See the attached files: {names}"[:MAX_TEXT] if names else ""


async def send(
    ctx: BotContext,
    user: SlackUser,
    job: int,
    text: str,
    key: str,
    files: Sequence[FileRef] = (),
) -> Reply | None:
    """Send a message, with its files, to the agent of a job; raises DraftsmanError."""
    conversation = SlackConversation(ctx, user, Access.PERSON)
    reply = await act(conversation, jobs.tell, job, text, key, files=files)
    if files:
        ctx.downloads.wake()
    return spoken(reply)
