"""The stop button of a session: pauses the jobs that run in its thread.

docs.slack.dev/reference/events/agent_session_stopped. Slack asks for no confirmation, so the button
ends nothing: the run stops at its checkpoint, and the job continues when a person resumes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from draftsman.actions import jobs
from draftsman.errors import DraftsmanError
from draftsman.jobs.job import LEASED
from draftsman_bots.conversation.commands import Access
from draftsman_bots.conversation.replies import press
from draftsman_bots.slack import ids
from draftsman_bots.slack.controls import job_button
from draftsman_bots.slack.deliveries.blocks import actions, section
from draftsman_bots.slack.ephemeral import Reply, error_reply, is_retryable, send_once, spoken
from draftsman_bots.slack.payloads.payloads import EventPayload, ReplyTarget, Text, at
from draftsman_bots.slack.people.access import SlackConversation, may_be_external
from draftsman_bots.slack.people.user import SlackUser
from draftsman_bots.slack.records.service import SlackThreads

if TYPE_CHECKING:
    from draftsman_bots.slack.context import BotContext
    from draftsman_bots.slack.transport.dispatcher import EventListener

REASON: Final = "stopped in Slack"
NOTHING: Final = "No job is running in this thread."
SHARED: Final = (
    "In a channel that is shared with another organization, the stop button does not say which"
    " organization you belong to. Use `{command} pause D-142 REASON`."
)


class SessionStop(EventPayload):
    """A stop of the session of a thread."""

    thread: Text = at("event.thread_ts")
    event_ts: Text = at("event.event_ts")

    @property
    def user(self) -> SlackUser:
        """Its author, whose workspace the event does not name."""
        return SlackUser(id=self.user_id, channel=self.channel)

    @property
    def key(self) -> str:
        """The idempotency key, the same for each delivery."""
        return ids.stop_key(self.channel, self.thread, self.user_id, self.event_ts)


def events(ctx: BotContext) -> dict[str, EventListener]:
    """Return the listener of the event."""

    async def stopped(body: dict[str, Any]) -> None:
        await _on_stop(ctx, SessionStop.model_validate(body))

    return {"agent_session_stopped": stopped}


async def _on_stop(ctx: BotContext, stop: SessionStop) -> None:
    """Pause the running jobs of a thread; raises errors after which Slack is to send it again."""
    if not (stop.user_id and stop.channel and stop.thread):
        return
    target = ReplyTarget(stop.user_id, stop.channel, stop.thread)
    if await may_be_external(ctx, stop.channel, stop.is_shared):
        send_once(ctx, stop.key, target, Reply(SHARED.format(command=ctx.settings.command)))
        return
    conversation = SlackConversation(ctx, stop.user, Access.PERSON)
    topics = await SlackThreads(ctx.rt).topics(stop.channel, stop.thread)
    numbers = list(dict.fromkeys(topic.job for topic in topics))
    running = [job for job in numbers if (await ctx.rt.read_model.job(job)).status in LEASED]
    if not running:
        send_once(ctx, stop.key, target, Reply(NOTHING))
    for job in running:
        try:
            reply = spoken(await press(conversation, jobs.pause, job, REASON, stop.key))
        except DraftsmanError as error:
            if is_retryable(error):
                raise
            reply = error_reply(error)
        else:
            reply = reply and _with_cancel(reply, job)
        send_once(ctx, f"{stop.key}:{job}", target, reply)


def _with_cancel(reply: Reply, job: int) -> Reply:
    """Return the reply with the button that ends the job."""
    return Reply(reply.text, [section(reply.text), actions([job_button(jobs.cancel, job)])])
