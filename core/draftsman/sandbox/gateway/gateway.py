"""Calls of an agent to its model: checked, sent with the key, streamed back and metered."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Protocol
from uuid import UUID

from draftsman.costs.budgets import CallEstimate
from draftsman.errors import Failure
from draftsman.ids import new_id
from draftsman.jobs.retries import RetryPolicy
from draftsman.outbound import secret_values
from draftsman.outbound.http_client import HttpCall, HttpClient, OutboundResponse
from draftsman.outbound.server_sent_events import parse_events
from draftsman.outbound.timeouts import Timeouts
from draftsman.sandbox.gateway import api_formats
from draftsman.sandbox.gateway.api_formats import RETURNED_HEADERS, TokenUsage
from draftsman.sandbox.gateway.http_server import GatewayReply, GatewayRequest
from draftsman.settings.http import HttpSettings
from draftsman.settings.llm import GatewaySettings, PriceSettings

# Prices of models.


PER: Final = 1_000_000
"""Tokens that a price is for."""


def find_price(prices: Mapping[str, PriceSettings], model: str) -> PriceSettings | None:
    """Return the price of a model: of its name, else of the longest pattern that matches it."""
    if model in prices:
        return prices[model]
    patterns = [pattern for pattern in prices if fnmatchcase(model, pattern)]
    return prices[max(patterns, key=lambda item: (len(item), item))] if patterns else None


def cost_usd(price: PriceSettings, usage: TokenUsage) -> float:
    """Return the cost of a call in US dollars."""
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    uncached = max(usage.input - usage.cache_read - usage.cache_write, 0)
    total = uncached * price.input + usage.output * price.output
    return (total + usage.cache_read * read + usage.cache_write * write) / PER


MAX_MODEL: Final = 200
"""Maximum characters of the name of a model."""
KEPT_CONNECTIONS: Final = 4
"""Idle connections to the provider that the next calls use."""
BYTES_PER_TOKEN: Final = 4
"""For requests, and for responses that report no tokens."""
DEFAULT_OUTPUT: Final = 4096
"""Output tokens that are reserved for a request without a maximum."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call that a provider has answered; `id` is that of its reservation."""

    id: UUID
    model: str
    usage: TokenUsage
    cost_usd: float | None
    """None: no price is configured for the model."""


class CallLedger(Protocol):
    """Records the metered calls of a gateway; each is reserved, and then recorded or released."""

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
                call, estimate = self._call(request, path)
            except ValueError as error:
                await self._refuse(reply, 400, str(error))
                return
            if estimate is None:
                await self._forward(call, None, reply)
            else:
                await self._forward_metered(call, estimate, reply)

    def _call(self, request: GatewayRequest, path: str) -> tuple[HttpCall, CallEstimate | None]:
        """Return the provider's call, and its maximum use if it is metered.

        Raises ValueError, MissingSecret.
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
        reported = api_formats.request_usage_report(path, body)
        data = request.body if reported is body else json.dumps(reported).encode()
        metered = api_formats.is_metered(path)
        estimate = self._estimate(model, len(data), body) if metered else None
        return HttpCall("POST", url, headers, data), estimate

    def _estimate(self, model: str, size: int, body: Mapping[str, Any]) -> CallEstimate:
        output = api_formats.max_output(body) or DEFAULT_OUTPUT
        # the dearest kind of input
        usage = TokenUsage(size // BYTES_PER_TOKEN, output)
        written = TokenUsage(usage.input, output, 0, usage.input)
        price = find_price(self._prices, model)
        cost = None if price is None else max(cost_usd(price, usage), cost_usd(price, written))
        return CallEstimate(model, usage.input, output, cost)

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
        meter = _Meter(estimate.model, len(call.body or b""))
        try:
            await self._forward(call, meter, reply)
        finally:
            if meter.answered:
                await self._record(id, meter)
            else:
                await self._ledger.release(id)

    async def _forward(self, call: HttpCall, meter: _Meter | None, reply: GatewayReply) -> None:
        """Send the call and stream its response, read by a meter."""
        try:
            async with self._client.stream(call, self._timeouts) as response:
                headers = [
                    (name, response.headers[name])
                    for name in RETURNED_HEADERS
                    if name in response.headers
                ]
                await reply.start(response.status, headers)
                if meter is None or response.status != 200:
                    await self._send_unmetered(response, reply)
                    return
                meter.answered = True
                await _stream(response, reply, meter)
        except Failure as error:
            _log.warning("gateway: %s", error)
            if reply.started:
                raise OSError(str(error)) from None  # a cut response is an error to the agent
            await self._refuse(reply, 502, str(error))

    async def _send_unmetered(self, response: OutboundResponse, reply: GatewayReply) -> None:
        """Send a body that costs nothing; an error of a provider may quote the key."""
        body = (await response.read()).decode("utf-8", "replace")
        key = self._settings.api_key
        secret = secret_values.read_secret(key, "API key of the gateway") if key else ""
        await reply.write(secret_values.redact_values(body, secret).encode())

    async def _record(self, id: UUID, meter: _Meter) -> None:
        usage = meter.total()
        price = find_price(self._prices, meter.model)
        cost = None if price is None else cost_usd(price, usage)
        await self._ledger.record(ModelCall(id, meter.model[:MAX_MODEL], usage, cost))

    async def _refuse(self, reply: GatewayReply, status: int, message: str) -> None:
        body = api_formats.error_body(self._settings.provider, status, message)
        await reply.send_json(status, body)


class _Meter:
    """The model and the tokens that a response reports; estimated if it reports none."""

    def __init__(self, model: str, sent: int) -> None:
        self.model = model
        self._usage = TokenUsage()
        self.answered = False
        self._sent = sent
        self.received = 0

    def total(self) -> TokenUsage:
        """Return the tokens of the call."""
        if self._usage != TokenUsage():
            return self._usage
        return TokenUsage(self._sent // BYTES_PER_TOKEN, self.received // BYTES_PER_TOKEN)

    def add(self, text: str | bytes) -> None:
        """Add a body, or the data of an event."""
        try:
            data = json.loads(text)
        except ValueError:
            return
        if isinstance(data, dict):
            self.model = api_formats.reported_model(data) or self.model
            if (usage := api_formats.reported_usage(data)) is not None:
                self._usage = self._usage.merge(usage)


async def _stream(response: OutboundResponse, reply: GatewayReply, meter: _Meter) -> None:
    """Send each part of the body as it arrives, and read the tokens from a copy.

    An agent that closes the connection pays for the whole response: its tokens are reported last.
    """
    connected = True

    async def forwarded() -> AsyncIterator[bytes]:
        nonlocal connected
        async for chunk in response.chunks():
            meter.received += len(chunk)
            if connected:
                try:
                    await reply.write(chunk)
                except OSError:
                    connected = False
            yield chunk

    if response.headers.get("content-type", "").startswith("text/event-stream"):
        async for event in parse_events(forwarded()):
            meter.add(event.data)
    else:
        meter.add(b"".join([chunk async for chunk in forwarded()]))


def _json_object(body: bytes) -> dict[str, Any]:
    """Return the object in a body; raises ValueError, also for a repeated key.

    Of a repeated key the gateway and the provider might each read another value.
    """
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
