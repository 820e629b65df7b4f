"""The loop over live threads: sets their status, and starts, continues and ends their streams.

    claim ─> a running job:  stream (start | append), session, status line
             any other job:  end of the stream, state of the session, removal of the status;
                             removal of the row, unless the session of the job goes on

Each step is recorded when it is known to have happened; a start is recorded before its call. The
outbox knows nothing of it: it posts the question or the result, and edits the status message.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from slack_sdk.web.async_client import AsyncWebClient

from draftsman.agent_runs.activity.live_thread import LiveProgress, LiveThread, StreamState
from draftsman.deliveries.delivery import Unconfirmed
from draftsman.deliveries.service.live_threads import LiveThreads
from draftsman.errors import DraftsmanError, Failure
from draftsman.jobs.job import TERMINAL, WAITING, Status
from draftsman.processes.lifecycle import OutageGuard, StopSignal
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.message_ref import CLOCK_SKEW, MessageRef
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.live import steps
from draftsman_bots.slack.live.calls import LiveCalls, LiveRefusal, SessionState
from draftsman_bots.slack.transport.web_api import WebApi

# Search for a stream whose start was not confirmed.
#
# A stream has no marker: `chat.startStream` takes no metadata. Every other message of draftsman in
# a thread has some, so the candidates are the bot's messages without any since the call.


async def candidates(
    web_api: WebApi, identity: Identity, thread: LiveThread, channel: str, ts: str
) -> list[str] | None:
    """Return references of messages that may be the stream; None if the search failed.

    Without the scope for the thread's history there are none.
    """
    assert thread.started_at is not None  # noqa: S101 - the stream was being started
    oldest = f"{(thread.started_at - CLOCK_SKEW).timestamp():.6f}"
    refs: list[str] = []
    args = {"channel": channel, "ts": ts, "oldest": oldest, "include_all_metadata": "true"}
    async for page in web_api.pages("conversations.replies", **args):
        if isinstance(page, Failure):
            return None if page.code in {"connect", "no_reply", "ratelimited"} else refs
        messages = page.get("messages")
        refs += [
            ids.message_ref(channel, str(message["ts"]))
            for message in (messages if isinstance(messages, list) else [])
            if _may_be_stream(message, identity, ts)
        ]
    return refs


def _may_be_stream(message: Mapping[str, Any], identity: Identity, root: str) -> bool:
    is_own = message.get("bot_id") is not None and message.get("bot_id") == identity.bot_id
    return is_own and not message.get("metadata") and message.get("ts") != root


INTERVAL: Final = 2.0
"""Seconds between two looks at a thread."""
LEASE: Final = 60.0
"""Seconds until another process continues a thread of a process that died."""
MAX_CLAIMED: Final = 50
STATUS_INTERVAL: Final = 10.0
"""Seconds between two texts of a status."""
RENEWAL: Final = 80.0
"""Seconds until a status is set again: Slack removes it after 120."""
START_AFTER: Final = 5.0
"""Seconds until a run gets a stream, so that a short run has none."""
STREAM_LIFE: Final = 240.0
"""Seconds until a stream is ended: Slack closes it after about 300, with an error mark."""
GIVE_UP: Final = 600.0
"""Seconds until the end of a stream is no longer tried: Slack has closed it."""
PARKED: Final = 86_400.0
"""Seconds until a session is looked at again whose job did not change."""
_log = logging.getLogger(__name__)


class LiveThreadLoop:
    """The live threads of a bot process; `run_once` is a round."""

    def __init__(
        self,
        live: LiveThreads,
        web: AsyncWebClient,
        identity: Identity,
        health: BotHealth,
        *,
        timeout: float,
        streams: bool,
    ) -> None:
        self.stop = StopSignal()
        self._live = live
        self._identity = identity
        self._streams = streams
        self._calls = LiveCalls(web, live, identity, health, timeout)
        self._outage = OutageGuard("live threads")

    async def run(self) -> None:
        """Continue the threads until stopped; another process or a timeout of Slack ends them."""
        while not self.stop:
            await self._outage.guard(self.run_once)
            await self.stop.wait(INTERVAL)

    async def run_once(self) -> None:
        """Continue each thread that is due."""
        if self._identity.bot_user is None:
            return
        claimed = await self._live.claim(MAX_CLAIMED, LEASE)
        await asyncio.gather(*(self._continue(thread, progress) for thread, progress in claimed))

    async def _continue(self, thread: LiveThread, progress: LiveProgress) -> None:
        """Continue a thread within half of its claim; another process continues it otherwise."""
        try:
            async with asyncio.timeout(LEASE / 2):
                if thread.is_running:
                    await self._show(thread, progress)
                else:
                    await self._end(thread, progress)
        except TimeoutError:
            _log.info("%s: the live thread is continued later", thread.name)
        except DraftsmanError as error:
            _log.info("%s: the live thread is continued later: %s", thread.name, error)
        except Exception:  # it must not end the bot, which delivers messages
            _log.exception("%s: unexpected error; its run is not shown any more", thread.name)
            hidden = replace(thread.closed(), quiet=True, status_text="")
            with contextlib.suppress(DraftsmanError):
                await self._live.record(hidden, INTERVAL)

    async def _show(self, thread: LiveThread, progress: LiveProgress) -> None:
        if (address := _channel_and_thread(thread)) is not None:
            channel, root = address
            thread = await self._show_stream(thread, progress, channel, root)
            thread = await self._show_status(thread, progress, channel, root)
        await self._live.record(thread, INTERVAL)

    async def _end(self, thread: LiveThread, progress: LiveProgress) -> None:
        state = session_state(thread.job_status)
        if (address := _channel_and_thread(thread)) is None:
            thread = replace(thread, session="")
        else:
            channel, root = address
            thread = await self._end_stream(thread, progress, channel, root)
            if thread.session and state is not SessionState.PROCESSING:
                thread = await self._set_session(thread, state, channel, root)
            thread = await self._remove_status(thread, channel, root)
            if thread.has_status or thread.stream in (StreamState.STARTING, StreamState.OPEN):
                await self._live.record(thread, INTERVAL)
                return
        if thread.current_run > thread.run:
            await self._live.record(thread.next_run(), 0)
        elif thread.session and thread.session != state:
            await self._live.record(thread, RENEWAL)
        elif thread.session and state is not SessionState.CLOSED:
            await self._live.park(thread, PARKED)
        else:
            await self._live.remove(thread)

    async def _show_stream(
        self, thread: LiveThread, progress: LiveProgress, channel: str, root: str
    ) -> LiveThread:
        match thread.stream:
            case StreamState.NONE if self._streams and progress:
                if thread.age(thread.added_at) >= START_AFTER:
                    return await self._start(thread, progress, channel, root)
            case StreamState.STARTING:
                return await self._end_stream(thread, progress, channel, root)
            case StreamState.OPEN:
                if not self._streams or thread.age(thread.started_at) >= STREAM_LIFE:
                    return await self._end_stream(thread, progress, channel, root)
                return await self._append(thread, progress, channel)
            case _:
                pass
        return thread

    async def _start(
        self, thread: LiveThread, progress: LiveProgress, channel: str, root: str
    ) -> LiveThread:
        """Start the only stream of the run, unless its reader is unknown."""
        reader = {} if channel.startswith("D") else await self._reader(thread)
        if reader is None or not await self._calls.may_start(channel):
            return thread
        if (started_at := await self._live.begin_stream(thread)) is None:
            raise DraftsmanError("another process continues this thread")
        thread = replace(thread, stream=StreamState.STARTING, started_at=started_at)
        tasks = steps.steps_of(thread, progress)
        result = await self._calls.start(channel, root, steps.changed(tasks, {}), **reader)
        if result is LiveRefusal.LATER:
            return replace(thread, stream=StreamState.NONE, started_at=None)
        if isinstance(result, Unconfirmed):
            return thread
        ts = None if isinstance(result, LiveRefusal) else result.get("ts")
        if not isinstance(ts, str):
            return thread.closed()
        ref = ids.message_ref(channel, ts)
        opened = replace(thread, stream=StreamState.OPEN, stream_ref=ref, shown=tasks)
        if not await self._live.keep(opened, LEASE):
            await self._calls.stop(channel, ts, None)
            raise DraftsmanError("another process continues this thread")
        return opened

    async def _append(self, thread: LiveThread, progress: LiveProgress, channel: str) -> LiveThread:
        tasks = steps.steps_of(thread, progress)
        ref = MessageRef.parse(thread.stream_ref)
        if ref is None or not (chunks := steps.changed(tasks, thread.shown)):
            return thread
        result = await self._calls.append(channel, ref.ts, chunks)
        if result is LiveRefusal.LATER:
            return thread
        if isinstance(result, LiveRefusal):
            return await self._end_stream(thread, progress, channel, "")
        return replace(thread, shown=tasks)

    async def _end_stream(
        self, thread: LiveThread, progress: LiveProgress, channel: str, root: str
    ) -> LiveThread:
        """End an open stream; a stream that cannot be ended yet stays as it is."""
        is_over = thread.age(thread.started_at) >= GIVE_UP
        if thread.stream is StreamState.STARTING:
            ended = await self._end_orphans(thread, channel, root)
            return thread.closed() if ended or is_over else thread
        ref = MessageRef.parse(thread.stream_ref)
        if thread.stream is not StreamState.OPEN or ref is None:
            return thread
        tasks = steps.ended(thread, progress)
        result = await self._calls.stop(channel, ref.ts, steps.changed(tasks, thread.shown))
        if result is LiveRefusal.CONTENT:
            result = await self._calls.stop(channel, ref.ts, None)
        if result is LiveRefusal.LATER:
            return thread.closed() if is_over else thread
        if isinstance(result, LiveRefusal):  # Slack has closed it, and marks it as broken
            await self._calls.replace(channel, ref.ts, *steps.summary(tasks))
        return thread.closed()

    async def _end_orphans(self, thread: LiveThread, channel: str, root: str) -> bool:
        """End the stream of an unconfirmed start; return whether the search is complete."""
        refs = await candidates(self._calls.web_api, self._identity, thread, channel, root)
        if refs is None:
            return False
        known_refs = await self._live.known_streams(refs)
        results = [
            await self._calls.stop(channel, ref.rpartition("/")[2], None)
            for ref in refs
            if ref not in known_refs
        ]
        return LiveRefusal.LATER not in results

    async def _show_status(
        self, thread: LiveThread, progress: LiveProgress, channel: str, root: str
    ) -> LiveThread:
        text = steps.status_line(thread, progress)
        age = thread.age(thread.status_at)
        is_due = age >= (STATUS_INTERVAL if text != thread.status_text else RENEWAL)
        if thread.quiet or not (is_due or thread.is_status_removed):
            return thread
        thread = await self._set_session(thread, SessionState.PROCESSING, channel, root)
        result = await self._calls.set_status(channel, root, text)
        if isinstance(result, LiveRefusal):
            return replace(thread, quiet=result is not LiveRefusal.LATER)
        return thread.with_status(text)

    async def _remove_status(self, thread: LiveThread, channel: str, root: str) -> LiveThread:
        if not thread.has_status:
            return thread
        result = await self._calls.set_status(channel, root, "")
        return thread if result is LiveRefusal.LATER else thread.with_status("")

    async def _set_session(
        self, thread: LiveThread, state: SessionState, channel: str, root: str
    ) -> LiveThread:
        """Set the state of the thread's session, if the app is an agent of Slack."""
        if thread.session == state:
            return thread
        if not self._identity.is_agent:
            return replace(thread, session="")
        title = steps.session_title(thread)
        result = await self._calls.set_session(channel, root, state, title)
        if result is LiveRefusal.LATER:
            return thread
        return replace(thread, session="" if isinstance(result, LiveRefusal) else state)

    async def _reader(self, thread: LiveThread) -> dict[str, str] | None:
        """Return the reader of a stream in a channel; None: unknown to Slack."""
        account = await self._live.reader(thread)
        user, _, team = (account or "").partition("@")
        team = team or self._identity.team or ""
        if not user or not team:
            return None
        return {"recipient_user_id": user, "recipient_team_id": team}


def session_state(status: Status) -> SessionState:
    """Return the state of the session of a job."""
    if status in TERMINAL:
        return SessionState.CLOSED
    if status in WAITING:
        return SessionState.SUSPENDED
    return SessionState.PROCESSING if status is Status.RUNNING else SessionState.ACTIVE


def _channel_and_thread(thread: LiveThread) -> tuple[str, str] | None:
    """Return channel and thread; None before the status message is posted."""
    root = MessageRef.parse(thread.root)
    return None if root is None else (root.channel, thread.thread or root.thread_root)
