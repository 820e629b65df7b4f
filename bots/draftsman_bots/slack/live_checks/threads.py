"""Live checks of the status of a thread, and of the session of an agent."""

from __future__ import annotations

from typing import Final

from draftsman.deliveries.channels.live_check import LiveCheck, NotTried
from draftsman_bots.slack.jobs.session_stops import NOTHING
from draftsman_bots.slack.live.calls import SESSION, STATUS, SessionState
from draftsman_bots.slack.live.steps import MAX_STATUS
from draftsman_bots.slack.live_checks.place import MessageId, ScratchChannel

NO_AGENT: Final = "the app is no agent of Slack: it lacks assistant:write"
SIGNS: Final = "*no bold* _no italics_ :eyes:"
"""A text that is visible as it is where Slack does not parse it."""


async def _status_in_thread(place: ScratchChannel) -> str:
    channel, ts = await place.post("status-in-thread")
    call = place.call(STATUS, channel_id=channel, thread_ts=ts, status="is checking")
    await place.assumed(call)
    return f"{STATUS} was accepted"


async def _session_in_thread(place: ScratchChannel) -> str:
    if not place.identity.is_agent:
        raise NotTried(NO_AGENT)
    channel, ts = await place.post("session-in-thread")
    state = {"channel_id": channel, "thread_ts": ts, "title": "D-1: live check"}
    for status in (SessionState.PROCESSING, SessionState.CLOSED):
        await place.assumed(place.call(SESSION, **state, status=status))
    return f"{SESSION} was accepted"


async def _session_stop(place: ScratchChannel) -> str:
    if not place.identity.is_agent:
        raise NotTried(NO_AGENT)
    channel, ts = await place.post("session-stop")
    state = {"channel_id": channel, "thread_ts": ts, "title": "D-1: live check"}
    await place.call(SESSION, **state, status=SessionState.PROCESSING)
    place.session.look(
        f"While draftsman bots runs, open the thread {place.link((channel, ts))}, and press its"
        f" stop button: does the bot reply \u201c{NOTHING}\u201d?"
    )
    return "the person saw the reply of the bot"


async def _status_removed(place: ScratchChannel) -> str:
    first = await _thread_with_status(place, "status-removed", "is checking its removal")
    await place.post("status-removed", thread=first[1])
    second = await _thread_with_status(place, "status-removed", "is checking a stream")
    chunks = [{"type": "plan_update", "title": "a stream"}]
    await place.begin_stream(second, chunks, place.reader)
    place.session.look(
        f"Open the threads {place.link(first)} and {place.link(second)}: is the status line,"
        " \u201cis checking \u2026\u201d, gone from both?"
    )
    return "the person saw no status"


async def _status_text(place: ScratchChannel) -> str:
    end = " until END"
    text = f"is checking {SIGNS} ".ljust(MAX_STATUS - len(end), ".") + end
    root = await _thread_with_status(place, "status-text", text)
    place.session.look(
        f"Open the thread {place.link(root)} within two minutes: does its status line end with END,"
        f" and show {SIGNS} with these signs?"
    )
    return f"the person saw {len(text)} characters, as they were sent"


async def _thread_with_status(place: ScratchChannel, check: str, text: str) -> MessageId:
    """Post a message, and set the status of its thread."""
    channel, ts = await place.post(check)
    await place.call(STATUS, channel_id=channel, thread_ts=ts, status=text)
    return channel, ts


CHECKS: Final = (
    LiveCheck(
        name="status-in-thread",
        assumption="`assistant.threads.setStatus` works in any thread with `chat:write`, and"
        " without the app being an assistant",
        otherwise="The method is refused, and threads have no status line.",
        run=_status_in_thread,
    ),
    LiveCheck(
        name="session-in-thread",
        assumption="`agents.sessions.setStatus` begins a session in a thread that has messages of"
        " the app only",
        otherwise="The method is refused, and off for a day; the status line continues.",
        run=_session_in_thread,
    ),
    LiveCheck(
        name="session-stop",
        assumption="`agent_session_stopped` arrives for a thread in any channel of the app",
        otherwise="The button has no effect; `/draftsman pause` does the same.",
        run=_session_stop,
    ),
    LiveCheck(
        name="status-removed",
        assumption="A message of the app removes the status, and `chat.startStream` counts as one",
        otherwise="The status is set once more than needed, or its removal costs one call.",
        run=_status_removed,
    ),
    LiveCheck(
        name="status-text",
        assumption="Slack shows a status of 100 characters, and does not parse it",
        otherwise="It is cut. It contains no `<` and `>`, so it mentions no person.",
        run=_status_text,
    ),
)
