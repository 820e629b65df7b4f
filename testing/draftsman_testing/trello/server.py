"""The fake Trello: a real HTTP server on a free port of 127.0.0.1."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from draftsman_testing.trello import serializers
from draftsman_testing.trello.api import MAX_BODY, Api
from draftsman_testing.trello.entities import Json
from draftsman_testing.trello.faults import Faults
from draftsman_testing.trello.interactions import Interactions
from draftsman_testing.trello.limits import Limits, Meter
from draftsman_testing.trello.methods.registry import ROUTES
from draftsman_testing.trello.webhook_delivery import Ack, WebhookDelivery
from draftsman_testing.trello.world import World


class FakeTrello(Interactions):
    """Trello with one app, whose token belongs to its own member.

    The app uses `api_url`, `key`, `token` and `secret`; people's interactions are methods; the rest
    is for inspection. `limits` are the rate limits, None for no limits. With `label_actions`, a
    card that is created with labels sends addLabelToCard too: whether Trello does is unknown.
    `world` is the state of an earlier server, which goes on with it.
    """

    def __init__(
        self,
        limits: Limits | None = Limits(),  # noqa: B008
        *,
        label_actions: bool = False,
        world: World | None = None,
    ) -> None:
        super().__init__(world or World(label_actions=label_actions))
        self.webhook_delivery = WebhookDelivery(self.world)
        self.faults = Faults(frozenset((route.method, route.path) for route in ROUTES))
        self.meter = Meter(limits)
        self.api = Api(self.world, self.webhook_delivery, self.faults, self.meter)

    async def __aenter__(self) -> Self:
        """Listen."""
        await self.start(self.api.routes(), MAX_BODY)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server and close the connections."""
        await self.webhook_delivery.close()
        await self.stop()
        if self.api.broken:
            raise ExceptionGroup("the fake Trello itself is broken", self.api.broken)

    @property
    def api_url(self) -> str:
        """The base URL of the API and of the website, without `/1`."""
        return self.world.base

    @property
    def key(self) -> str:
        """Return the app's key."""
        return self.world.key

    @property
    def token(self) -> str:
        """Return the bot's token."""
        return self.world.token

    @property
    def secret(self) -> str:
        """Return the secret that signs webhooks."""
        return self.world.secret

    @property
    def webhooks(self) -> list[Json]:
        """Return the webhooks as Trello shows them."""
        return [serializers.webhook(webhook) for webhook in self.world.webhooks.values()]

    @property
    def all_actions(self) -> list[Json]:
        """Return every action, oldest first; without those of deleted objects."""
        return list(self.world.actions.values())

    async def deliver(
        self,
        *,
        copies: int = 1,
        shuffle: int | None = None,
        drop: Callable[[Json], bool] | None = None,
        replay: bool = False,
        together: bool = False,
    ) -> list[Ack]:
        """Deliver the pending actions; see `WebhookDelivery.deliver`."""
        return await self.webhook_delivery.deliver(
            copies=copies, shuffle=shuffle, drop=drop, replay=replay, together=together
        )

    def deactivate(self, webhook: str, failures: int = 30) -> None:
        """Deactivate a webhook, as after many failures."""
        entity = self.world.webhooks[webhook]
        entity.active = False
        entity.failures = failures

    def revoke(self, revoked: bool = True) -> None:
        """Make the token bad, which also deletes its webhooks; or make it good again."""
        self.world.revoked = revoked
        if revoked:
            self.world.webhooks.clear()
