"""Dispatch of Slack's payloads to listeners, with an acknowledgment within the deadline.

Bolt finds the listeners of commands and interactions, whose acknowledgments have content. An event
has a listener for its type and an empty acknowledgment, which needs nothing of Bolt.

Listeners commit first and acknowledge after: Slack gets no 200 before the change is committed.
Exceptions of a listener become an acknowledgment here.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.error import BoltUnhandledRequestError
from slack_bolt.listener.async_listener_start_handler import AsyncListenerStartHandler
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from draftsman.errors import Conflict, DatabaseUnreachable, DraftsmanError, LostRace
from draftsman_bots.json_fields import nested, string
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import NETWORK, Identity
from draftsman_bots.slack.payloads.payloads import (
    PAYLOAD,
    Interaction,
    MissingField,
    parse_interaction,
)
from draftsman_bots.slack.transport import acknowledgments, payload_kind
from draftsman_bots.slack.transport.acknowledgments import Acknowledgment
from draftsman_bots.slack.transport.installation import INSTALLATION
from draftsman_bots.slack.transport.payload_kind import PayloadKind

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient


# Protection from environment variables that Bolt reads on its own.


PREFIX: Final = "SLACK_"
"""Prefix of all variables that Bolt reads: SLACK_CLIENT_ID and SLACK_CLIENT_SECRET, for instance,
make it set up an OAuth flow with a store of installations in files.
"""


@contextmanager
def hide_slack_variables() -> Iterator[None]:
    """Remove these variables from the environment during the block or call."""
    hidden = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


# Events about the app itself, which need neither a listener nor the database.


LOST_EVENTS: Final = {
    "app_uninstalled": "the app was uninstalled from the workspace: reinstall it",
    "tokens_revoked": "Slack revoked draftsman's tokens: reinstall the app and set the new token",
}
"""Events after which nothing can be posted; jobs and deliveries are kept."""
RATE_LIMITED: Final = "rate_limited"
RATE_LIMITED_TEXT: Final = "Slack is rate limiting events: over 30,000 in an hour"
NOTE_SECONDS: Final = 180.0
"""Slack repeats the event every minute; the note ends this many seconds after the last."""
MAX_LENGTH: Final = 300
"""Characters of a challenge that are returned."""


@dataclass(slots=True)
class Signals:
    """Callbacks for events about the app."""

    on_lost: Callable[[str], None] = lambda _: None
    on_rate_limit: Callable[[], None] = lambda: None


def answer_app_event(
    kind: PayloadKind, body: Mapping[str, Any], health: BotHealth, signals: Signals
) -> Acknowledgment | None:
    """Return the acknowledgment, or None if the event is for a listener."""
    if kind is PayloadKind.URL_VERIFICATION:
        challenge = body.get("challenge")
        return Acknowledgment(
            "done", body=challenge[:MAX_LENGTH] if isinstance(challenge, str) else ""
        )
    if kind is PayloadKind.SSL_CHECK:
        return Acknowledgment("done")
    if kind is PayloadKind.RATE_LIMITED:
        health.note(RATE_LIMITED, RATE_LIMITED_TEXT, seconds=NOTE_SECONDS)
        signals.on_rate_limit()
        return Acknowledgment("done")
    if kind is PayloadKind.OTHER:
        return acknowledgments.ignored()
    if kind is PayloadKind.EVENT and (text := LOST_EVENTS.get(body["event"]["type"])) is not None:
        if _concerns_the_bot(body["event"]):
            health.problem(INSTALLATION, text)
            signals.on_lost(text)
        return Acknowledgment("done")
    return None


def _concerns_the_bot(event: Mapping[str, Any]) -> bool:
    """Return whether the bot's token was revoked, and not a user's."""
    tokens = event.get("tokens")
    return not isinstance(tokens, dict) or bool(tokens.get("bot")) or "oauth" not in tokens


LISTENER_TIMEOUT: Final = 2.2
"""Seconds from the arrival until a listener is canceled."""
DEADLINE: Final = 2.5
"""Seconds from the arrival until an acknowledgment is sent; Slack's own deadline is three."""
_ERROR: Final = "draftsman_error"
_STARTED: Final = "draftsman_begun"
_log = logging.getLogger(__name__)
_bolt = logging.getLogger("slack_bolt.draftsman")
_bolt.setLevel(logging.ERROR)  # at lower levels Bolt logs payloads

Register = Callable[["AsyncApp"], None]
EventListener = Callable[[dict[str, Any]], Awaitable[None]]
"""Takes the payload of an event."""


@hide_slack_variables()
def build(client: AsyncWebClient, identity: Identity, register: Register) -> AsyncApp:
    """Return Bolt's app with its listeners.

    Signatures are verified before the app, and the listeners ignore the bot's own messages.
    """

    async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=enterprise_id,
            team_id=team_id,
            bot_user_id=identity.bot_user,
            bot_id=identity.bot_id,
            bot_token=client.token,
        )

    app = AsyncApp(
        name="draftsman",
        logger=_bolt,
        client=client,
        authorize=authorize,
        process_before_response=True,
        raise_error_for_unhandled_request=True,
        request_verification_enabled=False,
        ssl_check_enabled=False,
        url_verification_enabled=False,
        attaching_function_token_enabled=False,
        attaching_conversation_kwargs_enabled=False,
    )
    app.listener_runner.listener_start_handler = _StartRecorder()
    app.error(_record_error)
    register(app)
    return app


class _StartRecorder(AsyncListenerStartHandler):
    """Records that Bolt parsed the payload: later failures are internal errors."""

    async def handle(self, request: AsyncBoltRequest, response: BoltResponse | None) -> None:
        request.context[_STARTED] = True


async def _record_error(error: Exception, request: AsyncBoltRequest) -> BoltResponse:
    """Record the exception for the dispatcher."""
    request.context[_ERROR] = error
    return BoltResponse(status=500)


class SlackDispatcher:
    """Acknowledges each payload separately and within the deadline."""

    def __init__(
        self, app: AsyncApp, events: Mapping[str, EventListener], health: BotHealth
    ) -> None:
        self.signals = Signals()
        self.send_text: Callable[[Interaction, str], None] = _drop_message
        """Sends the payload's author a message that the acknowledgment cannot show."""
        self._app = app
        self._events = events
        self._health = health
        self._timed_out: set[asyncio.Task[Acknowledgment]] = set()

    async def answer(self, body: Any, *, arrived: float, retry: int = 0) -> Acknowledgment:
        """Return the acknowledgment of an authenticated payload; raises nothing.

        Its time is limited from its arrival by the clock of the event loop, however busy that is.
        """
        started = time.monotonic()
        kind = payload_kind.kind_of(body) if isinstance(body, dict) else PayloadKind.OTHER
        try:
            reply = await self._answer(kind, body, arrived, retry)
        except Exception as error:
            _log.exception("unexpected error in a payload of kind %s", kind, exc_info=error)
            reply = acknowledgments.internal_error(kind, {})
        if reply.ephemeral_text:
            self._send_ephemeral_text(kind, body, reply.ephemeral_text)
        self._health.count_answer(kind, reply.outcome, time.monotonic() - started, retry=retry > 0)
        return reply

    def _send_ephemeral_text(self, kind: PayloadKind, body: dict[str, Any], text: str) -> None:
        try:
            self.send_text(parse_interaction(kind, body), text)
        except Exception as error:  # the acknowledgment matters more
            _log.warning("an ephemeral message was not sent: %s", type(error).__name__)

    async def close(self) -> None:
        """Wait for the listeners that timed out."""
        if self._timed_out:
            await asyncio.wait(self._timed_out, timeout=DEADLINE)

    async def _answer(
        self, kind: PayloadKind, body: Any, arrived: float, retry: int
    ) -> Acknowledgment:
        if not isinstance(body, dict):
            return acknowledgments.ignored()
        if kind is PayloadKind.EVENT:
            if not isinstance(body.get("authorizations"), list | None):
                return _unreadable(kind, "without authorizations")
            if not string(nested(body, "event"), "type"):
                return _unreadable(kind, "without event.type")
        if (acknowledgment := answer_app_event(kind, body, self._health, self.signals)) is not None:
            return acknowledgment
        if kind is PayloadKind.EVENT:
            listener = self._events.get(body["event"]["type"])
            if listener is None:
                return acknowledgments.ignored()
            return await self._in_time(kind, body, arrived, self._pass_event(kind, body, listener))
        try:
            payload = parse_interaction(kind, body)
            request = AsyncBoltRequest(mode="socket_mode", body=body, headers=_headers(retry))
        except MissingField as error:
            return _unreadable(kind, str(error))
        except Exception as error:  # Slack sends no payload that Bolt cannot read
            return _unreadable(kind, type(error).__name__)
        request.context[PAYLOAD] = payload
        return await self._in_time(kind, body, arrived, self._dispatch(kind, body, request))

    async def _in_time(
        self,
        kind: PayloadKind,
        body: dict[str, Any],
        arrived: float,
        listener: Coroutine[Any, Any, Acknowledgment],
    ) -> Acknowledgment:
        """Run the listener; cancel it at its timeout, which rolls its change back."""
        task = asyncio.create_task(listener)
        try:
            done = await _wait_until(arrived + LISTENER_TIMEOUT, task)
            if not done:
                task.cancel()
                done = await _wait_until(arrived + DEADLINE, task)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            self._timed_out.add(task)
            task.add_done_callback(self._on_late_end)
            _log.error("%s timed out; it is unknown whether it was done", kind)
            return acknowledgments.retry_later(kind, body, acknowledgments.IN_DOUBT)
        if task.cancelled():
            _log.warning("%s canceled after %s s", kind, LISTENER_TIMEOUT)
            return acknowledgments.retry_later(kind, body)
        return task.result()

    def _on_late_end(self, task: asyncio.Task[Acknowledgment]) -> None:
        self._timed_out.discard(task)
        if task.cancelled():
            _log.warning("a request that timed out was canceled")
        elif (error := task.exception()) is not None:
            _log.error("a request that timed out failed: %s", type(error).__name__)
        else:
            _log.warning("a request that timed out completed: %s", task.result().outcome)

    async def _pass_event(
        self, kind: PayloadKind, body: dict[str, Any], listener: EventListener
    ) -> Acknowledgment:
        try:
            await listener(body)
        except Exception as error:
            return self._failed(kind, body, error)
        return Acknowledgment("done")

    async def _dispatch(
        self, kind: PayloadKind, body: dict[str, Any], request: AsyncBoltRequest
    ) -> Acknowledgment:
        response = await self._app.async_dispatch(request)
        error = request.context.get(_ERROR)
        if error is None:
            return _reply(response)
        if isinstance(error, BoltUnhandledRequestError):
            return acknowledgments.ignored()
        if not request.context.get(_STARTED):
            return _unreadable(kind, type(error).__name__)
        return self._failed(kind, body, error)

    def _failed(self, kind: PayloadKind, body: dict[str, Any], error: Exception) -> Acknowledgment:
        """Return the acknowledgment for an exception of a listener."""
        if isinstance(error, DatabaseUnreachable | LostRace):
            _log.warning("%s failed; Slack will retry: %s", kind, error)
            return acknowledgments.retry_later(kind, body)
        if isinstance(error, NETWORK):
            _log.warning("%s failed; Slack will retry: %s", kind, type(error).__name__)
            return acknowledgments.retry_later(kind, body)
        if isinstance(error, Conflict):
            _log.info("%s conflicts with an earlier request: %s", kind, error)
            return acknowledgments.rejected(kind, body, str(error))
        if isinstance(error, DraftsmanError):
            _log.info("%s rejected: %s", kind, error)
            return acknowledgments.rejected(kind, body, str(error))
        _log.error("listener failed for a payload of kind %s", kind, exc_info=error)
        return acknowledgments.internal_error(kind, body)


async def _wait_until(moment: float, task: asyncio.Task[Acknowledgment]) -> bool:
    """Return whether the task is done, at this time of the event loop at the latest."""
    left = moment - asyncio.get_running_loop().time()
    await asyncio.wait({task}, timeout=max(0.0, left))
    return task.done()


def _drop_message(payload: Interaction, text: str) -> None:
    """Drop the message: no context is set."""


def _unreadable(kind: PayloadKind, problem: str) -> Acknowledgment:
    """Ignore a payload of a form that Slack never sends."""
    _log.warning("ignored a payload of kind %s: %s", kind, problem)
    return acknowledgments.ignored()


def _reply(response: BoltResponse) -> Acknowledgment:
    """Convert the response of a listener."""
    headers = {name: values[0] for name, values in response.headers.items() if values}
    headers.pop("content-type", None)
    if response.status != 200:
        return Acknowledgment("retry" if response.status >= 500 else "ignored", response.status)
    return Acknowledgment("done", 200, _decoded(response), headers)


def _decoded(response: BoltResponse) -> Mapping[str, Any] | str:
    content_type = (response.headers.get("content-type") or [""])[0]
    if response.body and content_type.startswith("application/json"):
        data = json.loads(response.body)
        return data if isinstance(data, dict) else response.body
    return response.body or ""


def _headers(retry: int) -> dict[str, str | Sequence[str]] | None:
    return {"x-slack-retry-num": str(retry)} if retry else None
