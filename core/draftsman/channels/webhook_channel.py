"""The channel `webhook`: signed HTTP requests according to Standard Webhooks.

Delivery is at least once: an unconfirmed message is sent again with the same `webhook-id`, by which
a receiver deduplicates.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from draftsman.channels.message_json import message_document
from draftsman.domain.deliveries import webhook_signature
from draftsman.domain.deliveries.delivery import (
    ChannelName,
    File,
    Message,
    RateLimit,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.errors import Failure, UsageError
from draftsman.outbound import secret_values
from draftsman.outbound.timeouts import Timeouts
from draftsman.settings import HttpSettings, WebhookSettings

if TYPE_CHECKING:
    from draftsman.outbound.http_client import OutboundResponse

ERROR_BODY_LIMIT: Final = 500
"""Bytes kept of an error response's body."""


class WebhookChannel:
    """Posts to the configured webhooks; `timeout` of a call is in seconds."""

    name = ChannelName.WEBHOOK

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

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return no limits: an endpoint replies 429 to throttle."""
        return ()

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the webhook's bucket."""
        return f"{self.name}:{message.target}"

    async def send(self, message: Message) -> SendResult:
        """Post the message."""
        return await self._post(message, {})

    async def edit(self, message: Message) -> SendResult:
        """Post the new state of the message whose id is in `edits`."""
        return await self._post(message, {})

    async def upload(self, message: Message, file: File) -> SendResult:
        """Post the file as base64."""
        return await self._post(message, {"content": base64.b64encode(file.data).decode()})

    async def find(self, message: Message) -> SendResult | None:
        """Return None: the receiver deduplicates a repeated message by its id."""
        return None

    async def close(self) -> None:
        """Do nothing: no connection stays open."""

    async def _post(self, message: Message, extra: dict[str, Any]) -> SendResult:
        webhook = self._webhooks.get(message.target)
        if webhook is None:
            text = f"webhook {message.target!r} is not configured in this process"
            return _refused(text, "no_such_webhook")
        content = message_document(message)
        content["data"] |= extra
        body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        try:
            keys = secret_values.signing_keys(webhook, message.target)
        except (Failure, UsageError) as error:
            return _refused(str(error), "no_secret")
        headers = webhook_signature.sign(keys, message.marker, int(self._now()), body)
        headers["content-type"] = "application/json"
        return await self._exchange(webhook.url, headers, body, message)

    async def _exchange(
        self, url: str, headers: dict[str, str], body: bytes, message: Message
    ) -> SendResult:
        """Send the request; a failure after it was sent, without a response, is Unconfirmed."""
        from draftsman.outbound.http_client import HttpCall, HttpClient

        client, call = HttpClient(self._http, trusted=[url]), HttpCall("POST", url, headers, body)
        sent, refusal = False, None

        def mark_sent() -> None:
            nonlocal sent
            sent = True

        try:
            async with client.stream(call, self._timeouts, leaves=mark_sent) as response:
                if 200 <= response.status < 300:
                    return Receipt(message.edits or message.marker)
                refusal = _refusal(response, b"")
                return _refusal(response, await response.beginning(ERROR_BODY_LIMIT))
        except Failure as error:
            return refusal or (Unconfirmed(str(error)) if sent else error)


def _refusal(response: OutboundResponse, body: bytes) -> Failure:
    from draftsman.outbound.http_failures import retry_after

    text = body.decode("utf-8", "replace").strip()
    return Failure(
        f"HTTP {response.status}{f': {text}' if text else ''}",
        origin="http",
        http_status=response.status,
        retry_after=retry_after(response.headers),
    )


def _refused(text: str, code: str) -> Failure:
    return Failure(text, origin="http", code=code, declared="PERMANENT")
