"""The live log of a job as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import StreamingResponse

from draftsman.agent_runs.activity.service.log_feed import LogCursor, log_items
from draftsman.errors import DraftsmanError, NotFound
from draftsman.ids import job_number
from draftsman_bots.web.context import MAX_ALL_STREAMS, MAX_STREAMS
from draftsman_bots.web.log_lines import encode_cursor, item_text, parse_cursor
from draftsman_bots.web.problems import PageProblem

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from draftsman_bots.web.access import Visit
    from draftsman_bots.web.context import WebContext

HEARTBEAT: Final = 15.0
"""Seconds between comments in a silent stream, and between checks of its session."""
LIFETIME: Final = 600.0
"""Seconds after which a stream ends; the browser connects again."""
_BUFFER: Final = 200
"""Items that wait for a slow browser."""


async def stream(context: WebContext, request: Request) -> Response:
    """Send the log after `after`, or after the last event that the browser received."""
    visit = await context.access.required(request)
    number = job_number(request.path_params["job"])
    if number is None:
        raise NotFound("there is no such job")
    await context.rt.read_model.version(number)
    own, total = context.streams[visit.session.id], context.streams.total()
    if own >= MAX_STREAMS or total >= MAX_ALL_STREAMS:
        raise PageProblem(429, "Too many live logs are open.", "Close a page.", retry_after=30)
    after = request.headers.get("last-event-id") or request.query_params.get("after", "")
    events = _events(context, visit, number, parse_cursor(after))
    return _LogResponse(context, visit.session.id, events)


class _LogResponse(StreamingResponse):
    """A stream that counts from its creation until its end, or until its browser reads no more."""

    def __init__(self, context: WebContext, session: int, events: AsyncIterator[str]) -> None:
        headers = {"x-accel-buffering": "no"}  # nginx would hold the events back
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._streams, self._session = context.streams, session
        self._streams[session] += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; a browser that does not read them in time is disconnected."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LIFETIME + HEARTBEAT):
                    await super().__call__(scope, receive, send)
        finally:
            self._streams[self._session] -= 1
            if self._streams[self._session] <= 0:
                del self._streams[self._session]


async def _events(
    context: WebContext, visit: Visit, number: int, after: LogCursor
) -> AsyncIterator[str]:
    """Yield events; the last has the name `end`, if the job has ended."""
    queue: asyncio.Queue[Any] = asyncio.Queue(_BUFFER)
    reader = asyncio.create_task(_read(context, number, after, queue))
    loop = asyncio.get_running_loop()
    end, checked, cursor = loop.time() + LIFETIME, loop.time(), after
    try:
        yield "retry: 3000\n\n"
        while not context.stop and loop.time() < end:
            if loop.time() >= checked + HEARTBEAT:
                checked = loop.time()
                if await context.sessions.find(visit.token) is None:
                    return
                yield ": alive\n\n"
            try:
                async with asyncio.timeout(1):
                    item = await queue.get()
            except TimeoutError:
                continue
            if item is None:
                yield "event: end\ndata: {}\n\n"
                return
            cursor = cursor.after(item)
            kind, text = item_text(item)
            data = json.dumps({"kind": kind, "text": text})
            yield f"id: {encode_cursor(cursor)}\ndata: {data}\n\n"
    except DraftsmanError:  # of the check of the session: the browser connects again
        return
    finally:
        reader.cancel()


async def _read(
    context: WebContext, number: int, after: LogCursor, queue: asyncio.Queue[Any]
) -> None:
    """Put the items of the log into the queue, then None; ends silently with the database."""
    with contextlib.suppress(DraftsmanError):
        jobs, checkpoints = context.rt.read_model, context.rt.checkpoints
        async for item in log_items(jobs, checkpoints, number, follow=True, after=after):
            await queue.put(item)
        await queue.put(None)
