"""Delivery of payloads to the app, over HTTP or a socket, with duplicates and reordering."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import hmac
import json
import time
import uuid
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypedDict
from urllib.parse import urlencode

from draftsman_testing.fake.callbacks import CallbackClient
from draftsman_testing.slack.sockets import NOTHING, Sockets
from draftsman_testing.slack.world import Json, World

Kind = Literal["events_api", "interactive", "slash_commands"]
PATIENCE: Final = 3.0
"""Seconds of Slack's deadline."""


class DeliveryOptions(TypedDict, total=False):
    """Options of a delivery.

    `copies` of each payload are sent at once, with a `new_event_id` each, or in the
    `same_envelope`; `reordered` sends the last first. `retries` are sent while there is no ack;
    `attempt` is the number of the first retry that is sent, as if all before it were lost. `extra`
    is merged into the payload.
    """

    copies: int
    new_event_id: bool
    same_envelope: bool
    reordered: bool
    retries: int
    attempt: int
    extra: Json


@dataclass(frozen=True)
class Ack:
    """The app's response.

    `status` is the HTTP status, 200 for the ack of a socket, None after a timeout. `copies` are the
    responses to everything that was sent; the other fields are those of the first that was not 200,
    else of the last. Without copies, the app is not subscribed to the event.
    """

    status: int | None = None
    body: Any = None
    seconds: float = 0.0
    payload: Json | None = None
    kind: Kind = "events_api"
    headers: tuple[tuple[str, str], ...] = ()
    copies: tuple[Ack, ...] = ()
    attempts: int = 1
    ts: str = ""
    """The ts of the message."""

    @property
    def acked(self) -> bool:
        """Whether Slack considers it delivered."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def sent(self) -> Json:
        """The payload."""
        assert self.payload is not None, "nothing was sent"
        return self.payload


@dataclass(frozen=True)
class Delivery:
    """A payload in transit."""

    kind: Kind
    payload: Json
    envelope: str
    attempt: int = 0


class EventDelivery:
    """Delivers to `request_url` if it is set, else to the open sockets."""

    def __init__(self, world: World, sockets: Sockets) -> None:
        self.request_url: str | None = None
        self.patience = PATIENCE
        self._world = world
        self._sockets = sockets
        self._client = CallbackClient()

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.close()

    async def deliver(self, kind: Kind, *payloads: Json, options: DeliveryOptions) -> Ack:
        """Deliver these payloads and their copies at once."""
        deliveries: list[Delivery] = []
        for payload in payloads:
            deliveries += self._copies(kind, payload | options.get("extra", {}), options)
        if options.get("reordered"):
            deliveries.reverse()
        retries = options.get("retries", 0)
        acks = await asyncio.gather(*(self._insist(item, retries) for item in deliveries))
        if not acks:
            return Ack()
        first_failure = next((ack for ack in acks if not ack.acked), acks[-1])
        return replace(first_failure, copies=tuple(acks))

    def _copies(self, kind: Kind, payload: Json, options: DeliveryOptions) -> list[Delivery]:
        deliveries = []
        envelope = str(uuid.uuid4())
        for number in range(options.get("copies", 1)):
            content = copy.deepcopy(payload)
            if number and options.get("new_event_id") and "event_id" in content:
                content["event_id"] = self._world.id("Ev")
                content["event_context"] = self._world.id("EC")
            if number and not options.get("same_envelope"):
                envelope = str(uuid.uuid4())
            deliveries.append(Delivery(kind, content, envelope, options.get("attempt", 0)))
        return deliveries

    async def _insist(self, delivery: Delivery, retries: int) -> Ack:
        first = delivery.attempt
        ack = await self.once(delivery)
        while not ack.acked and delivery.attempt < retries:
            if ("x-slack-no-retry", "1") in ack.headers:
                break
            delivery = replace(delivery, attempt=delivery.attempt + 1, envelope=str(uuid.uuid4()))
            ack = await self.once(delivery)
        return replace(ack, attempts=delivery.attempt - first + 1)

    async def once(self, delivery: Delivery) -> Ack:
        """Deliver a payload."""
        began = time.monotonic()
        if self.request_url is None:
            ack = await self._by_socket(delivery)
        else:
            ack = await self._by_http(delivery)
        seconds = time.monotonic() - began
        return replace(ack, seconds=seconds, payload=delivery.payload, kind=delivery.kind)

    async def _by_socket(self, delivery: Delivery) -> Ack:
        envelope: Json = {
            "envelope_id": delivery.envelope,
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": delivery.kind != "events_api",
        }
        if delivery.kind == "events_api":
            envelope["retry_attempt"] = delivery.attempt
            envelope["retry_reason"] = "timeout" if delivery.attempt else ""
        result = await self._sockets.send(envelope, self.patience)
        return Ack() if result is NOTHING else Ack(200, result)

    async def _by_http(self, delivery: Delivery) -> Ack:
        if delivery.kind == "events_api":
            first_failure = "application/json"
            text = json.dumps(delivery.payload)
        else:
            fields = delivery.payload
            if delivery.kind == "interactive":
                fields = {"payload": json.dumps(delivery.payload)}
            text = urlencode(fields, errors="surrogatepass")
            first_failure = "application/x-www-form-urlencoded"
        headers = {"Content-Type": first_failure}
        if delivery.attempt:
            headers["X-Slack-Retry-Num"] = str(delivery.attempt)
            headers["X-Slack-Retry-Reason"] = "http_timeout"
        return await self.post(text.encode(), headers)

    def signed(self, body: bytes, timestamp: int | None = None) -> dict[str, str]:
        """Return the signature headers of a body, at this or another time."""
        when = str(int(time.time()) if timestamp is None else timestamp)
        secret = self._world.signing_secret.encode()
        digest = hmac.new(secret, b"v0:" + when.encode() + b":" + body, hashlib.sha256)
        return {
            "X-Slack-Request-Timestamp": when,
            "X-Slack-Signature": f"v0={digest.hexdigest()}",
        }

    async def post(self, body: bytes, headers: dict[str, str], *, sign: bool = True) -> Ack:
        """Post raw bytes to the request_url."""
        assert self.request_url is not None, "set request_url first"
        user_agent = {"User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)"}
        all_headers = user_agent | (self.signed(body) if sign else {}) | headers
        response = await self._client.send(
            "POST", self.request_url, body, all_headers, self.patience
        )
        return Ack(response.status, _parsed(response.text), headers=response.headers)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text or None
