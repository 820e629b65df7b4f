"""The channel `webhook`: signed HTTP requests according to Standard Webhooks.

Delivery is at least once: an unconfirmed message is sent again with the same `webhook-id`, by which
a receiver deduplicates.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from draftsman.channels import WEBHOOK
from draftsman.deliveries.channel import Channel
from draftsman.deliveries.channels.http_post import not_served, post
from draftsman.deliveries.channels.usable_secrets import UsableSecrets
from draftsman.deliveries.delivery import File, Message, SendResult
from draftsman.deliveries.documents.json import message_json
from draftsman.errors import Failure, UsageError
from draftsman.outbound import secret_values, webhook_signature
from draftsman.outbound.timeouts import Timeouts
from draftsman.settings.http import HttpSettings
from draftsman.settings.webhooks import WebhookSettings


class WebhookChannel(Channel):
    """Posts to the configured webhooks; `timeout` of a call is in seconds."""

    name = WEBHOOK

    def __init__(
        self,
        webhooks: Mapping[str, WebhookSettings],
        http: HttpSettings,
        timeout: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._webhooks = webhooks
        self._http = http
        self._timeouts = Timeouts(call=timeout, connect=timeout)
        self._now = now
        self._usable = UsableSecrets(webhooks, secret_values.signing_keys)

    def served(self) -> Sequence[str]:
        """Return the webhooks whose secret this process can read."""
        return self._usable.names()

    def problems(self) -> Sequence[str]:
        """Return why the others cannot be used."""
        return self._usable.problems()

    async def send(self, message: Message) -> SendResult:
        """Post the message."""
        return await self._post(message, {})

    async def edit(self, message: Message) -> SendResult:
        """Post the new state of the message whose id is in `edits`."""
        return await self._post(message, {})

    async def upload(self, message: Message, file: File) -> SendResult:
        """Post the file as base64."""
        return await self._post(message, {"content": base64.b64encode(file.data).decode()})

    async def _post(self, message: Message, extra: dict[str, Any]) -> SendResult:
        webhook = self._webhooks.get(message.target)
        if webhook is None:
            return not_served(f"webhook {message.target!r} is not configured in this process")
        content = message_json(message)
        content["data"] |= extra
        body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        try:
            keys = secret_values.signing_keys(webhook, message.target)
        except (Failure, UsageError) as error:
            return not_served(str(error))
        headers = webhook_signature.sign(keys, message.marker, int(self._now()), body)
        headers["content-type"] = "application/json"
        reference = message.edits or message.marker
        return await post(
            self._http, self._timeouts, webhook.url, headers, body, reference=reference
        )
