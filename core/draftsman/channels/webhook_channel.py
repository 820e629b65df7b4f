"""The channel `webhook`: signed HTTP, after Standard Webhooks.

At least once: a receiver tells repetitions by `webhook-id`, which a delivery keeps for ever. There
is nothing to look at, so what may have arrived is sent again.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from draftsman.channels.message_json import message_document
from draftsman.domain.messages import webhook_signature
from draftsman.domain.messages.delivery import (
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
"""Bytes of a refusal's body that are kept."""


class WebhookChannel:
    """Posts to the endpoints of the configuration, by their names. A call takes `timeout` s."""

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
        self._patience = Timeouts(call=timeout, connect=timeout)
        self._now = now

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Take from no bucket: an endpoint that has enough says 429."""
        return ()

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket of the endpoint."""
        return f"{self.name}:{message.target}"

    async def send(self, message: Message) -> SendResult:
        """Post the message."""
        return await self._post(message, {})

    async def edit(self, message: Message) -> SendResult:
        """Post what became of the earlier message, whose id is in `edits`."""
        return await self._post(message, {})

    async def upload(self, message: Message, file: File) -> SendResult:
        """Post the file as base64."""
        return await self._post(message, {"content": base64.b64encode(file.data).decode()})

    async def find(self, message: Message) -> SendResult | None:
        """Find nothing: a repetition has the same id, and does no harm."""
        return None

    async def close(self) -> None:
        """Hold nothing open."""

    async def _post(self, message: Message, more: dict[str, Any]) -> SendResult:
        webhook = self._webhooks.get(message.target)
        if webhook is None:
            text = f"there is no webhook {message.target!r} in the configuration of this process"
            return _refused(text, "no_such_webhook")
        content = message_document(message)
        content["data"] |= more
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
        """Send it: what was not refused, and may have left, may have arrived."""
        from draftsman.outbound.http_client import HttpCall, HttpClient

        client, call = HttpClient(self._http, trusted=[url]), HttpCall("POST", url, headers, body)
        left, refusal = False, None

        def leaves() -> None:
            nonlocal left
            left = True

        try:
            async with client.stream(call, self._patience, leaves=leaves) as answer:
                if 200 <= answer.status < 300:
                    return Receipt(message.edits or message.marker)
                refusal = _refusal(answer, b"")
                return _refusal(answer, await answer.beginning(ERROR_BODY_LIMIT))
        except Failure as error:
            return refusal or (Unconfirmed(str(error)) if left else error)


def _refusal(answer: OutboundResponse, body: bytes) -> Failure:
    from draftsman.outbound.http_failures import retry_after

    said = body.decode("utf-8", "replace").strip()
    return Failure(
        f"HTTP {answer.status}{f': {said}' if said else ''}",
        origin="http",
        http_status=answer.status,
        retry_after=retry_after(answer.headers),
    )


def _refused(text: str, code: str) -> Failure:
    return Failure(text, origin="http", code=code, declared="PERMANENT")
