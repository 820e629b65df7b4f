"""Live checks of the streams that show the steps of a run."""

from __future__ import annotations

from typing import Final

from draftsman.deliveries.channels.live_check import LiveCheck, NotTried, require
from draftsman_bots.json_fields import string
from draftsman_bots.slack.live.calls import APPEND, EDIT, OVER, STOP
from draftsman_bots.slack.live.steps import MAX_STEPS
from draftsman_bots.slack.live_checks.place import MessageId, ScratchChannel, task
from draftsman_bots.slack.live_checks.threads import SIGNS

EARLY: Final = 240.0
"""Seconds at which a stream is still open."""
LATE: Final = 90.0
"""Seconds after that at which Slack has closed it."""
BYTES: Final = 6000
STEP: Final = [task("a", "a step")]


async def _first_message(place: ScratchChannel) -> str:
    root = await place.post("stream-in-thread")
    await place.assumed(place.begin_stream(root, STEP, place.reader))
    return "the stream began"


async def _organization(place: ScratchChannel) -> str:
    identity = place.identity
    if not identity.enterprise:
        raise NotTried("the workspace belongs to no organization")
    others = [reader for reader in place.readers if reader.team != identity.team]
    if not others:
        raise NotTried("nobody of another workspace of the organization is in the channel")
    reader = others[0]
    reader.team = identity.team or ""
    root = await place.post("stream-in-organization")
    await place.assumed(place.begin_stream(root, STEP, reader))
    return "the stream began"


async def _direct(place: ScratchChannel) -> str:
    root = await place.post("stream-in-direct-message", await place.direct())
    await place.assumed(place.begin_stream(root, STEP, None))
    return "the stream began"


async def _replaced_task(place: ScratchChannel) -> str:
    stream = await place.stream("stream-task-replaced", task("a", "FIRST"))
    await _append(place, stream, task("a", "SECOND", "complete"))
    place.session.look(
        f"Open {place.link(stream)}: does the message show a single step, SECOND, and is it"
        " complete?"
    )
    return "the person saw a single step"


async def _size(place: ScratchChannel) -> str:
    titles = [f"step {number} ".ljust(BYTES // MAX_STEPS - 30, "x") for number in range(MAX_STEPS)]
    chunks = [task(f"step-{number}", title) for number, title in enumerate(titles)]
    root = await place.post("stream-size")
    chunks.append(task("now", "the newest line"))
    await place.assumed(place.begin_stream(root, chunks, place.reader))
    return f"{len(chunks)} tasks were accepted"


async def _inert_task(place: ScratchChannel) -> str:
    stream = await place.stream("stream-task-text", task("a", f"a step {SIGNS}"))
    place.session.look(f"Open {place.link(stream)}: does its step show {SIGNS} with these signs?")
    return "the person saw the text as it was sent"


async def _visible(place: ScratchChannel) -> str:
    stream = await place.stream("stream-in-replies")
    for message in await place.thread(stream):
        if message.get("ts") == stream[1]:
            own = message.get("bot_id") == place.identity.bot_id
            require(own, f"bot_id is {message.get('bot_id')}, that of the app is another")
            require(not message.get("metadata"), f"metadata: {message.get('metadata')}")
            return "the message has the bot's id, and no metadata"
    require(False, "the thread has no such message")
    return ""


async def _lifetime(place: ScratchChannel) -> str:
    stream = await place.stream("stream-lifetime")
    await place.session.wait(EARLY)
    code = await place.refusal(APPEND, channel=stream[0], ts=stream[1], chunks=[task("b", "b")])
    require(not code, f"after {EARLY:.0f} s: {code}")
    await place.session.wait(LATE)
    code = await place.refusal(APPEND, channel=stream[0], ts=stream[1], chunks=[task("c", "c")])
    place.expired = stream if code else None
    require(code, f"it is open after {EARLY + LATE:.0f} s")
    require(code == "message_not_in_streaming_state", f"after {EARLY + LATE:.0f} s: {code}")
    require(code in OVER, f"draftsman does not know {code}")
    return f"{code} between {EARLY:.0f} and {EARLY + LATE:.0f} s after its start"


async def _replaced(place: ScratchChannel) -> str:
    if place.expired is None:
        raise NotTried("no stream was closed by Slack")
    channel, ts = place.expired
    text = "replaced by draftsman"
    await place.assumed(place.call(EDIT, channel=channel, ts=ts, text=text, blocks=[]))
    messages = await place.thread(place.expired)
    shown = [string(message, "text") for message in messages if message.get("ts") == ts]
    require(shown == [text], f"the message is {shown}")
    return "the message has the new text"


async def _append(place: ScratchChannel, stream: MessageId, *chunks: dict[str, str]) -> None:
    channel, ts = stream
    await place.call(APPEND, channel=channel, ts=ts, chunks=[*chunks])
    await place.call(STOP, channel=channel, ts=ts)


_CARD: Final = "and the status message shows the progress."
CHECKS: Final = (
    LiveCheck(
        name="stream-in-thread",
        assumption="`chat.startStream` accepts the app's own status message as the first message of"
        " the thread",
        otherwise=f"The stream is refused, {_CARD}",
        run=_first_message,
    ),
    LiveCheck(
        name="stream-in-organization",
        assumption="The workspace of the token is accepted as that of each reader of the"
        " organization, in an Enterprise Grid too",
        otherwise=f"The stream is refused, {_CARD}",
        run=_organization,
    ),
    LiveCheck(
        name="stream-in-direct-message",
        assumption="In direct messages a stream needs no recipient",
        otherwise="`missing_recipient_user_id` or `invalid_arguments`: the status message shows the"
        " progress.",
        run=_direct,
    ),
    LiveCheck(
        name="stream-task-replaced",
        assumption="`task_update` replaces title and state of a task with the same id",
        otherwise="Steps appear twice in the stream.",
        run=_replaced_task,
    ),
    LiveCheck(
        name="stream-size",
        assumption="A stream of at most 31 tasks and about 6,000 bytes is accepted",
        otherwise="`msg_too_long`: the stream ends, and the status message continues.",
        run=_size,
    ),
    LiveCheck(
        name="stream-task-text",
        assumption="Text of a task card is not parsed",
        otherwise="It contains no `<` and `>`, so it mentions no person.",
        run=_inert_task,
    ),
    LiveCheck(
        name="stream-in-replies",
        assumption="`conversations.replies` shows an open stream as a message of the bot without"
        " metadata",
        otherwise="A stream whose start was not confirmed stays open until Slack closes it.",
        run=_visible,
    ),
    LiveCheck(
        name="stream-lifetime",
        assumption="Slack closes a stream about 300 seconds after its start; the next call gets"
        " `message_not_in_streaming_state`",
        otherwise="Earlier: the message is replaced by a summary of the steps, and the status"
        " message continues. Later: nothing changes.",
        run=_lifetime,
    ),
    LiveCheck(
        name="closed-stream-replaced",
        assumption="`chat.update` replaces a stream that Slack closed",
        otherwise="The message keeps the mark that Slack gives it.",
        run=_replaced,
    ),
)
