"""Socket Mode client with two connections, which are replaced in turn.

Slack announces that it will close a connection. Its replacement is opened before it is closed, and
envelopes that arrived through it are still acknowledged on it. Envelopes without an acknowledgment
are delivered again, through either connection, and recognized by their key. (The SDK's own client
disconnects before it reconnects.)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError

from draftsman.formats.received_json import read_object
from draftsman.processes.lifecycle import StopSignal
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import NETWORK, error_code
from draftsman_bots.slack.transport.acknowledgments import Acknowledgment
from draftsman_bots.slack.transport.dispatcher import DEADLINE, SlackDispatcher

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

CONNECTIONS: Final = 2
PING: Final = 10.0
"""Seconds between pings; a connection without a pong for half of it is dead."""
BACKOFF: Final = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds between attempts, reduced at random by up to half; the last repeats."""
HELLO_TIMEOUT: Final = 10.0
"""Seconds until Slack's hello; a connection that only answers pings is useless."""
DISABLED_BACKOFF: Final = 60.0
"""Seconds between attempts after an error that a retry does not fix."""
STABLE_AFTER: Final = 5.0
"""Seconds after which a connection is stable, and is replaced without a delay."""
LINGER: Final = 30.0
"""Seconds for which a connection is read after its end was announced; Slack announces 10."""
LOST_AFTER: Final = 300.0
"""Seconds without a connection after which events are lost: Slack retries for five minutes."""
DRAIN_TIME: Final = 1.0
"""Seconds for which an old connection is read after its replacement is open."""
MAX_IN_FLIGHT: Final = 2000
"""Concurrent envelopes; above it the sockets are not read."""
MAX_FRAME_BYTES: Final = 4 * 1024 * 1024
HEALTH_KEY: Final = "sockets"
FATAL_ERRORS: Final = {
    "link_disabled": "Socket Mode is disabled in the app's settings (link_disabled): enable it, or"
    ' set mode = "http"',
    "too_many_websockets": "the app has too many Socket Mode connections (too_many_websockets):"
    " check whether another draftsman runs with the same app_token",
}
Task = asyncio.Task[None]
_log = logging.getLogger(__name__)


class SocketModeClient:
    """The connections of a process; `run` returns after `stop` and all replies."""

    def __init__(
        self,
        bot: SlackDispatcher,
        client: AsyncWebClient,
        app_token: str,
        health: BotHealth,
        *,
        ping: float = PING,
        hello_timeout: float = HELLO_TIMEOUT,
    ) -> None:
        self.stop = StopSignal()
        self.on_reconnect: Callable[[], None] = lambda: None
        """Called when a connection is open again after so long that Slack dropped events."""
        self._bot = bot
        self._client = client
        self._token = app_token
        self._health = health
        self._ping = ping
        self._hello_timeout = hello_timeout
        self._open = 0
        self._disconnected_since: float | None = None
        """Start of the time without a connection, by the monotonic clock."""
        self._payload_tasks: set[Task] = set()
        self._readers: set[Task] = set()

    async def run(self) -> None:
        """Keep the connections until `stop`; then acknowledge pending envelopes and disconnect."""
        self._health.pending(HEALTH_KEY, "no Socket Mode connection yet")
        async with aiohttp.ClientSession() as session:
            try:
                await asyncio.gather(
                    *(self._keep_connected(session, n) for n in range(CONNECTIONS))
                )
            finally:
                if self._payload_tasks:
                    await asyncio.wait(self._payload_tasks, timeout=DEADLINE)
                for reader in self._readers:
                    reader.cancel()
                await asyncio.gather(*self._readers, return_exceptions=True)

    async def _keep_connected(self, session: aiohttp.ClientSession, number: int) -> None:
        """Keep a connection, and replace it before or after it ends."""
        problem = f"socket {number + 1}"
        failures = 0
        connection: Connection | None = None
        while not self.stop:
            previous = connection
            try:
                connection = await self._connect(session)
            except (SlackApiError, *NETWORK) as error:
                delay = self._connection_failed(error, problem, failures)
                failures += 1
                await self.stop.wait(delay)
                continue
            reader = self._start_task(self._read(connection, problem, previous), self._readers)
            connected_at = time.monotonic()
            reason = await self._wait_for_end(connection, reader)
            stable = connection.hello_received and time.monotonic() - connected_at > STABLE_AFTER
            failures = 0 if stable else failures + 1
            if reason in FATAL_ERRORS:
                self._health.problem(problem, FATAL_ERRORS[reason])
                reader.cancel()
                await self.stop.wait(DISABLED_BACKOFF)
            elif failures:
                await self.stop.wait(_delay(failures - 1))

    async def _wait_for_end(self, connection: Connection, reader: Task) -> str:
        """Wait until the connection ended or its end was announced; return Slack's reason."""
        closing = asyncio.create_task(connection.closing.wait())
        stop = asyncio.create_task(self.stop.wait(float("inf")))
        await asyncio.wait({closing, stop, reader}, return_when=asyncio.FIRST_COMPLETED)
        for task in (closing, stop):
            task.cancel()
        if connection.reason:
            _log.info("Slack is replacing a connection: %s", connection.reason)
        elif reader.done():
            _log.warning("a Socket Mode connection was lost; reconnecting")
        return connection.reason

    async def _connect(self, session: aiohttp.ClientSession) -> Connection:
        response = await self._client.apps_connections_open(app_token=self._token)
        ws = await session.ws_connect(
            str(response.get("url")),
            heartbeat=self._ping,
            max_msg_size=MAX_FRAME_BYTES,
            proxy=self._client.proxy,
            ssl=self._client.ssl if self._client.ssl is not None else True,
        )
        return Connection(ws, self._hello_timeout)

    def _connection_failed(self, error: Exception, problem: str, failures: int) -> float:
        """Report why there is no connection; return the seconds until the next attempt."""
        if not isinstance(error, SlackApiError):
            # the error's text may contain the URL, which has a secret ticket
            _log.warning("cannot open a Socket Mode connection: %s", type(error).__name__)
            return _delay(failures)
        code = error_code(error)
        text = FATAL_ERRORS.get(code, f"Slack rejected a Socket Mode connection: {code}")
        if code == "ratelimited":
            return _seconds(error, DISABLED_BACKOFF)
        self._health.problem(problem, text)
        return DISABLED_BACKOFF if code in FATAL_ERRORS else max(_delay(failures), BACKOFF[3])

    async def _read(
        self, connection: Connection, problem: str, previous: Connection | None
    ) -> None:
        """Read envelopes until the connection ends, or `LINGER` after that was announced.

        The previous connection is closed after Slack's hello.
        """
        is_counted = False
        try:
            while (text := await connection.receive()) is not None:
                await self._handle_text(connection, text)
                if connection.hello_received and not is_counted:
                    is_counted = True
                    self._count(+1)
                    self._health.clear(problem)
                    if previous is not None:
                        self._start_task(previous.close_when_answered(), self._readers)
        finally:
            if is_counted:
                self._count(-1)
            with contextlib.suppress(Exception):
                await connection.ws.close()

    async def _handle_text(self, connection: Connection, text: str) -> None:
        arrived = asyncio.get_running_loop().time()
        envelope = connection.parse_envelope(text)
        if envelope is None:
            return
        if len(self._payload_tasks) >= MAX_IN_FLIGHT:
            await asyncio.wait(self._payload_tasks, return_when=asyncio.FIRST_COMPLETED)
        task = self._start_task(
            self._acknowledge(connection, envelope, arrived), self._payload_tasks
        )
        connection.in_flight.add(task)
        task.add_done_callback(connection.in_flight.discard)

    def _start_task(self, coroutine: Coroutine[Any, Any, None], tasks: set[Task]) -> Task:
        task = asyncio.create_task(coroutine)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def _acknowledge(
        self, connection: Connection, envelope: dict[str, Any], arrived: float
    ) -> None:
        retry = envelope.get("retry_attempt")
        reply = await self._bot.answer(
            envelope.get("payload"),
            arrived=arrived,
            retry=retry if isinstance(retry, int) else 0,
        )
        if not reply.final:
            return
        try:
            await connection.ws.send_str(json.dumps(acknowledgement(envelope, reply)))
        except (*NETWORK, RuntimeError) as error:
            _log.warning("an acknowledgment was not sent: %s", type(error).__name__)

    def _count(self, change: int) -> None:
        self._open += change
        self._health.set_connections(self._open)
        if self._open:
            self._health.clear(HEALTH_KEY)
            if (
                self._disconnected_since is not None
                and time.monotonic() - self._disconnected_since >= LOST_AFTER
            ):
                self.on_reconnect()
            self._disconnected_since = None
        elif not self.stop:
            self._disconnected_since = time.monotonic()
            self._health.problem(HEALTH_KEY, "no Socket Mode connection")


class Connection:
    """A connection, from connecting to its end."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, hello_timeout: float) -> None:
        self.ws = ws
        self.hello_received = False
        self.closing = asyncio.Event()
        self.reason = ""
        self.in_flight: set[Task] = set()
        self._deadline: float | None = asyncio.get_running_loop().time() + hello_timeout
        """Deadline of reads, by the loop's clock: until the hello, and after an announced end."""

    async def close_when_answered(self) -> None:
        """Close after the pending envelopes are acknowledged; safe if it already ended."""
        await asyncio.sleep(DRAIN_TIME)
        if self.in_flight:
            await asyncio.wait(self.in_flight, timeout=DEADLINE)
        with contextlib.suppress(Exception):
            await self.ws.close()

    async def receive(self) -> str | None:
        """Return the next text, or None at the end."""
        while True:
            try:
                async with asyncio.timeout_at(self._deadline):
                    frame = await self.ws.receive()
            except TimeoutError:
                if not self.hello_received:
                    _log.warning("no hello from Slack on a connection; reconnecting")
                return None
            if frame.type is aiohttp.WSMsgType.TEXT:
                return str(frame.data)
            if frame.type not in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.CONTINUATION):
                return None

    def parse_envelope(self, text: str) -> dict[str, Any] | None:
        """Return the envelope in a text, if it is to be acknowledged."""
        envelope = read_object(text)
        if envelope is None:
            _log.warning("ignored a frame that is not a JSON object")
            return None
        if envelope.get("type") == "hello":
            self.hello_received = True
            if not self.closing.is_set():
                self._deadline = None
        elif envelope.get("type") == "disconnect":
            self.reason = str(envelope.get("reason"))[:60]
            self._deadline = asyncio.get_running_loop().time() + LINGER
            self.closing.set()
        elif isinstance(envelope.get("envelope_id"), str):
            return envelope
        return None


def acknowledgement(envelope: dict[str, Any], reply: Acknowledgment) -> dict[str, Any]:
    """Return the frame that acknowledges an envelope, with the response payload."""
    frame: dict[str, Any] = {"envelope_id": envelope["envelope_id"]}
    if reply.status != 200 or not reply.body or envelope.get("accepts_response_payload") is False:
        return frame
    payload = {"text": reply.body} if isinstance(reply.body, str) else dict(reply.body)
    return frame | {"payload": payload}


def _delay(failures: int) -> float:
    return BACKOFF[min(failures, len(BACKOFF) - 1)] * random.uniform(0.5, 1.0)


def _seconds(error: SlackApiError, default: float) -> float:
    header = str(getattr(error.response, "headers", {}).get("Retry-After", ""))
    return float(header) if header.isascii() and header.isdigit() else default
