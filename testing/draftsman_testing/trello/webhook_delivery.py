"""Delivery of webhooks in the requested order and number of copies."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from draftsman_testing.fake.callbacks import CallbackClient, CallbackResponse
from draftsman_testing.trello.entities import Delivery, Json
from draftsman_testing.trello.world import World, iso

PATIENCE: Final = 30.0
"""Seconds until a response is due: trello-archive/api-docs#53 of 2017; according to #157 of 2021
the page does not name them any more."""
RETRIES: Final = 3
"""Number of retries: trello-archive/api-docs#53. No source names the delay, or the number of
failures after which a webhook is deactivated."""


@dataclass(frozen=True)
class Ack:
    """How the callback answered: the status, or None if it did not; `attempts` counts the POSTs."""

    status: int | None
    delivery: Delivery
    attempts: int = 1
    body: str = ""

    @property
    def acked(self) -> bool:
        """Whether Trello considers it delivered."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def action(self) -> Json:
        """Return the action that was delivered."""
        return self.delivery.action


class WebhookDelivery:
    """Delivers pending actions, signed, over real HTTP."""

    def __init__(self, world: World) -> None:
        self.patience = PATIENCE
        self.retries = RETRIES
        """How often a delivery is repeated that was not acked."""
        self.disable_after: int | None = None
        """Failures in a row after which a webhook is not active any more. How many they are with
        Trello is unknown: None is never."""
        self.sent: list[Delivery] = []
        """Everything that was delivered or lost, once each, oldest first."""
        self._world = world
        self._client = CallbackClient()

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()

    async def deliver(
        self,
        *,
        copies: int = 1,
        shuffle: int | None = None,
        drop: Callable[[Json], bool] | None = None,
        replay: bool = False,
        together: bool = False,
    ) -> list[Ack]:
        """Deliver the pending actions in order; return the responses.

        `copies` of each are sent; `shuffle` is the seed of a random order; `drop` selects actions
        that are lost; `replay` also repeats all earlier deliveries; `together` sends all at once.
        """
        pending = self._world.pending
        self._world.pending = []
        deliveries = [*(self.sent if replay else []), *pending]
        self.sent += pending
        deliveries = [
            delivery for delivery in deliveries if drop is None or not drop(delivery.action)
        ] * copies
        if shuffle is None:
            deliveries.sort(key=lambda delivery: str(delivery.action["date"]))
        else:
            random.Random(shuffle).shuffle(deliveries)
        if together:
            return list(await asyncio.gather(*map(self._insist, deliveries)))
        return [await self._insist(delivery) for delivery in deliveries]

    async def _insist(self, delivery: Delivery) -> Ack:
        attempts = 0
        ack = Ack(None, delivery)
        while attempts <= self.retries and not ack.acked:
            attempts += 1
            ack = await self.once(delivery, attempts)
            self._count(delivery.webhook, ack)
            if delivery.webhook not in self._world.webhooks:
                break
        return ack

    def _count(self, id: str, ack: Ack) -> None:
        webhook = self._world.webhooks.get(id)
        if webhook is None:
            return
        if ack.status == 410:
            del self._world.webhooks[id]
        elif ack.acked:
            webhook.failures = 0
            webhook.first_failure = None
        else:
            webhook.failures += 1
            webhook.first_failure = webhook.first_failure or iso(self._world.now())
            if self.disable_after is not None and webhook.failures >= self.disable_after:
                webhook.active = False

    async def once(self, delivery: Delivery, attempts: int = 1) -> Ack:
        """Deliver once."""
        status, text = await self.post(delivery.url, delivery.body, self.signed(delivery))
        return Ack(status, delivery, attempts, text)

    def signed(self, delivery: Delivery) -> dict[str, str]:
        """Return the headers of a delivery."""
        return self.headers(delivery.body, delivery.url)

    def headers(self, body: bytes, url: str) -> dict[str, str]:
        """Return the headers of a body that is signed for this callbackURL."""
        digest = hmac.new(self._world.secret.encode(), body + url.encode(), hashlib.sha1).digest()
        return {
            "Content-Type": "application/json",
            "User-Agent": "Trello",
            "X-Trello-Webhook": base64.b64encode(digest).decode(),
        }

    async def post(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int | None, str]:
        """Post raw bytes; the status is None when no answer came in time."""
        response = await self.request("POST", url, body, headers)
        return response.status, response.text

    async def head(self, url: str) -> int | None:
        """Arguments a callback whether it is there, as Trello does before it makes a webhook."""
        return (await self.request("HEAD", url, None, {"User-Agent": "Trello"})).status

    async def request(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> CallbackResponse:
        """Send any request to a callback."""
        return await self._client.send(method, url, body, headers or {}, self.patience)
