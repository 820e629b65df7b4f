"""Calls of an agent to its model: checked, sent with the key, streamed back and metered."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import math
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol
from uuid import UUID

from draftsman.costs.budgets import CallEstimate
from draftsman.errors import Failure
from draftsman.ids import new_id
from draftsman.jobs.retries import RetryPolicy
from draftsman.outbound import secret_values
from draftsman.outbound.http_client import (
    HttpCall,
    HttpClient,
    OutboundResponse,
    limit_reset,
    retry_after,
)
from draftsman.outbound.server_sent_events import parse_events
from draftsman.outbound.timeouts import Timeouts
from draftsman.sandbox.gateway import api_formats
from draftsman.sandbox.gateway.allowed_requests import NotAllowed, check_request
from draftsman.sandbox.gateway.api_formats import RETURNED_HEADERS, TokenUsage
from draftsman.sandbox.gateway.http_server import GatewayReply, GatewayRequest
from draftsman.sandbox.gateway.metering import (
    BYTES_PER_TOKEN,
    FREE_CALLS,
    FREE_PERIOD,
    FreeCalls,
    Meter,
    cost_usd,
    find_price,
)
from draftsman.settings.http import HttpSettings
from draftsman.settings.llm import GatewaySettings, PriceSettings
from draftsman.tracing import gen_ai
from draftsman.tracing.tracer import Attributes, Kind, span

MAX_MODEL: Final = 200
"""Maximum characters of the name of a model."""
KEPT_CONNECTIONS: Final = 4
"""Idle connections to the provider that the next calls use."""
DEFAULT_OUTPUT: Final = 4096
"""Output tokens that are reserved for a request without a maximum."""
BUSY: Final = frozenset({429, 502, 503, 529})
"""Statuses of a provider that is busy; it bills nothing."""
SMALL: Final = 16 * 1024
"""Characters of an event that is parsed in the event loop."""
MAX_VALUES: Final = 1_000_000
"""Maximum commas and brackets of a body: each value needs a hundred bytes of memory."""
MAX_TRIES: Final = 5
FIRST_DELAY: Final = 1.0
"""Seconds until the second try of a call; each further one takes twice as long."""
MAX_DELAY: Final = 30.0
"""Seconds; a provider that asks for more is answered by the agent."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call that a provider has answered; `id` is that of its reservation."""

    id: UUID
    model: str
    usage: TokenUsage
    cost_usd: float


class CallLedger(Protocol):
    """Records the metered calls of a gateway; each is reserved, and then recorded or released."""

    async def refuse(self, reason: str) -> None:
        """Note a request that the gateway does not allow."""

    async def reserve(self, call: UUID, estimate: CallEstimate) -> str | None:
        """Reserve the maximum use of a call; return why it is refused."""

    async def record(self, call: ModelCall) -> None:
        """Record a call that the provider has answered."""

    async def release(self, call: UUID) -> None:
        """Release the reservation of a call that the provider has refused."""


class Gateway:
    """The gateway of a run, whose agent authenticates by `token`."""

    def __init__(
        self,
        settings: GatewaySettings,
        http: HttpSettings,
        prices: Mapping[str, PriceSettings],
        limits: RetryPolicy,
        ledger: CallLedger,
    ) -> None:
        self.token: Final = secrets.token_urlsafe(24)
        self._settings = settings
        self._prices = prices
        self._timeouts = Timeouts.of(limits)
        self._ledger = ledger
        self._free = FreeCalls()
        self._parsing = asyncio.Semaphore(1)
        trusted = [] if settings.base_url is None else [settings.base_url]
        self._client = HttpClient(http, trusted=trusted, keep=KEPT_CONNECTIONS)

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._client.close()

    async def respond(self, request: GatewayRequest, reply: GatewayReply) -> None:
        """Respond to a request of the agent."""
        provider = self._settings.provider
        path = api_formats.route(provider, request.method, request.path)
        token = api_formats.received_token(request.headers)
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            await self._refuse(reply, 401, "the token is not that of this run")
        elif isinstance(path, int):
            problem = f"{request.method} {request.path[:200]} is not available here"
            await self._refuse(reply, path, problem)
        else:
            try:
                async with self._parsing:  # one large body at a time
                    call, estimate = await asyncio.to_thread(self._call, request, path)
            except NotAllowed as error:
                await self._ledger.refuse(str(error))
                await self._refuse(reply, 403, str(error))
                return
            except ValueError as error:
                await self._refuse(reply, 400, str(error))
                return
            if estimate is None:
                await self._forward_free(call, reply)
            else:
                await self._forward_metered(call, estimate, reply)

    def _call(self, request: GatewayRequest, path: str) -> tuple[HttpCall, CallEstimate | None]:
        """Return the provider's call, and its maximum use if it is metered.

        Raises NotAllowed, ValueError, MissingSecret.
        """
        settings = self._settings
        headers = {
            name: value
            for name, value in request.headers.items()
            if name in api_formats.PASSED_HEADERS
        }
        if settings.api_key is not None:
            key = secret_values.read_secret(settings.api_key, "API key of the gateway")
            headers |= api_formats.key_headers(settings.provider, key)
        url = api_formats.upstream_url(settings.provider, settings.base_url, path)
        if request.method == "GET":
            return HttpCall("GET", url, headers), None
        body = _json_object(request.body)
        model = api_formats.requested_model(path, body)
        if not isinstance(model, str) or not 0 < len(model) <= MAX_MODEL:
            raise ValueError(f"model must be a name of at most {MAX_MODEL} characters")
        check_request(settings.provider, path, request.headers, body, settings.allow)
        headers["content-type"] = "application/json"
        reported = api_formats.request_usage_report(path, body)
        data = request.body if reported is body else json.dumps(reported).encode()
        metered = api_formats.is_metered(path)
        estimate = self._estimate(model, data, body) if metered else None
        return HttpCall("POST", url, headers, data), estimate

    def _estimate(self, model: str, data: bytes, body: Mapping[str, Any]) -> CallEstimate:
        output = api_formats.max_output(body) or DEFAULT_OUTPUT
        # the dearest kind of input
        usage = TokenUsage(len(data) // BYTES_PER_TOKEN, output)
        hour = usage.input if b'"1h"' in data else 0
        written = TokenUsage(usage.input, output, 0, usage.input, hour)
        price = find_price(self._prices, model)
        cost = None if price is None else max(cost_usd(price, usage), cost_usd(price, written))
        return CallEstimate(model, usage.input, output, cost)

    async def _forward_free(self, call: HttpCall, reply: GatewayReply) -> None:
        """Forward a call that counts for nothing, unless there were too many."""
        if not (seconds := self._free.wait()):
            await self._forward(call, None, reply)
            return
        text = f"more than {FREE_CALLS} calls in {FREE_PERIOD:g} s that list models or count tokens"
        after = ("retry-after", str(math.ceil(seconds)))
        await self._refuse(reply, 429, text, [after])

    async def _forward_metered(
        self, call: HttpCall, estimate: CallEstimate, reply: GatewayReply
    ) -> None:
        """Forward a call within its budgets, and record its usage."""
        id = new_id()
        if (refusal := await self._ledger.reserve(id, estimate)) is not None:
            provider = self._settings.provider
            body = api_formats.budget_error(provider, refusal)
            await reply.send_json(api_formats.BUDGET_STATUS[provider], body)
            return
        meter = Meter(estimate, len(call.body or b""))
        model = estimate.model
        attributes = gen_ai.call(self._settings.provider, model)
        try:
            with span(gen_ai.call_name(model), attributes, Kind.CLIENT) as traced:
                await self._forward(call, meter, reply)
                traced.set(_response_attributes(meter))
        finally:
            if meter.is_billed:
                await self._record(id, meter)
            else:
                await self._ledger.release(id)

    async def _forward(self, call: HttpCall, meter: Meter | None, reply: GatewayReply) -> None:
        """Send the call and stream its response, read by a meter."""

        def leaves() -> None:
            if meter is not None:
                meter.left = True

        try:
            async with self._answer(call, leaves) as response:
                headers = [
                    (name, response.headers[name])
                    for name in RETURNED_HEADERS
                    if name in response.headers
                ]
                if meter is not None and response.status // 100 == 2:
                    if response.headers.get("content-type", "").startswith("text/event-stream"):
                        response.limit_silence(self._settings.stream_timeout)
                    await _stream(response, headers, reply, meter, self._timeouts.silence)
                    return
                if meter is not None:
                    meter.refused = True
                await reply.start(response.status, headers)
                await self._send_unmetered(response, reply)
        except Failure as error:
            _log.warning("gateway: %s", error)
            if reply.started:
                raise OSError(str(error)) from None  # a cut response is an error to the agent
            await self._refuse(reply, 502, str(error))

    @asynccontextmanager
    async def _answer(
        self, call: HttpCall, leaves: Callable[[], None]
    ) -> AsyncIterator[OutboundResponse]:
        """Send the call, again while the provider is busy; yield the response. Raises Failure.

        No byte of a response has reached the agent until then. The last response of a busy
        provider is the agent's, and so is one that asks for a longer wait.
        """
        for attempt in range(MAX_TRIES):
            async with self._client.stream(call, self._timeouts, leaves=leaves) as response:
                wait = _wait(response, attempt)
                if wait is None or attempt == MAX_TRIES - 1:
                    yield response
                    return
            _log.info("gateway: the provider is busy (%s): %.1f s", response.status, wait)
            await asyncio.sleep(wait)

    async def _send_unmetered(self, response: OutboundResponse, reply: GatewayReply) -> None:
        """Send a body that costs nothing; an error of a provider may quote the key."""
        body = (await response.read()).decode("utf-8", "replace")
        key = self._settings.api_key
        secret = secret_values.read_secret(key, "API key of the gateway") if key else ""
        await reply.write(secret_values.redact_values(body, secret).encode())

    async def _record(self, id: UUID, meter: Meter) -> None:
        cost = meter.cost_usd(self._prices)
        await self._ledger.record(ModelCall(id, meter.model[:MAX_MODEL], meter.total(), cost))

    async def _refuse(
        self,
        reply: GatewayReply,
        status: int,
        message: str,
        headers: Iterable[tuple[str, str]] = (),
    ) -> None:
        body = api_formats.error_body(self._settings.provider, status, message)
        await reply.send_json(status, body, headers)


def _response_attributes(meter: Meter) -> Attributes:
    if not meter.is_billed:
        return {"error.type": "refused" if meter.left else "not_sent"}
    usage = meter.total()
    return gen_ai.response(meter.model[:MAX_MODEL], usage.input, usage.output)


def _wait(response: OutboundResponse, attempt: int) -> float | None:
    """Return the seconds until the call is sent again; None for the agent's response."""
    if response.status not in BUSY:
        return None
    asked = retry_after(response.headers)
    if asked is not None:
        return asked if asked <= MAX_DELAY else None
    reset = limit_reset(response.headers) or 0.0
    return min(max(reset, FIRST_DELAY * (1 << attempt)), MAX_DELAY)


async def _stream(
    response: OutboundResponse,
    headers: Iterable[tuple[str, str]],
    reply: GatewayReply,
    meter: Meter,
    patience: float,
) -> None:
    """Send each part of the response as it arrives, and read the tokens from a copy.

    An agent that closes the connection, at any time, pays for the whole response: its tokens are
    reported last. So does one that reads nothing for `patience` seconds.
    """
    connected = await _is_sent(reply.start(response.status, headers), patience)

    async def forwarded() -> AsyncIterator[bytes]:
        nonlocal connected
        async for chunk in response.chunks():
            meter.received += len(chunk)
            connected = connected and await _is_sent(reply.write(chunk), patience)
            yield chunk

    if response.headers.get("content-type", "").startswith("text/event-stream"):
        async for event in parse_events(forwarded()):
            if len(event.data) < SMALL:
                meter.add_event(event.data)
            else:
                await asyncio.to_thread(meter.add_event, event.data)
    else:
        body = b"".join([chunk async for chunk in forwarded()])
        await asyncio.to_thread(meter.add_body, body)


async def _is_sent(sending: Coroutine[Any, Any, None], patience: float) -> bool:
    """Send something to the agent; return whether it is still there."""
    try:
        async with asyncio.timeout(patience):
            await sending
    except OSError:
        return False
    return True


def _json_object(body: bytes) -> dict[str, Any]:
    """Return the object in a body; raises ValueError, also for a repeated key.

    Of a repeated key the gateway and the provider might each read another value.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise ValueError(f"the body has more than {MAX_VALUES:,} commas and brackets")
    try:
        value = json.loads(body, object_pairs_hook=_unique)
    except _RepeatedKey:
        raise
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ValueError("the body must be a JSON object")
    return value


class _RepeatedKey(ValueError):
    """A key that an object has more than once."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, item in pairs:
        if name in value:
            raise _RepeatedKey(f"the body has the key {name[:100]!r} more than once in an object")
        value[name] = item
    return value
