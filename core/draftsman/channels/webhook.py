"""The channel `webhook`: signed HTTP, after Standard Webhooks.

At least once: a receiver tells repetitions by `webhook-id`, which a delivery keeps for ever. There
is nothing to look at, so what may have arrived is sent again.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from draftsman.channels.document import document
from draftsman.domain.delivery import ChannelName, Ended, File, Limit, Message, Receipt, Unknown
from draftsman.domain.signature import sign
from draftsman.errors import ConfigError, Failure
from draftsman.settings import WebhookSettings

ClientFactory = Callable[[], httpx.AsyncClient]
TOLD: Final = 500
"""Bytes of a refusal's body that are kept."""
NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Errors before the first byte of the request."""


class WebhookChannel:
    """Posts to the endpoints of the configuration, by their names."""

    name = ChannelName.WEBHOOK

    def __init__(
        self,
        webhooks: Mapping[str, WebhookSettings],
        client: ClientFactory,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._webhooks = webhooks
        self._factory = client
        self._client: httpx.AsyncClient | None = None
        self._now = now

    def limits(self, message: Message) -> Sequence[Limit]:
        """Take from no bucket: an endpoint that has enough says 429."""
        return ()

    def bucket(self, message: Message) -> str:
        """Return the bucket of the endpoint."""
        return f"{self.name}:{message.target}"

    async def send(self, message: Message) -> Ended:
        """Post the message."""
        return await self._post(message, {})

    async def edit(self, message: Message) -> Ended:
        """Post what became of the earlier message, whose id is in `edits`."""
        return await self._post(message, {})

    async def upload(self, message: Message, file: File) -> Ended:
        """Post the file as base64."""
        return await self._post(message, {"content": base64.b64encode(file.data).decode()})

    async def find(self, message: Message) -> Ended | None:
        """Find nothing: a repetition has the same id, and does no harm."""
        return None

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _post(self, message: Message, more: dict[str, Any]) -> Ended:
        content = document(message)
        content["data"] |= more
        body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        try:
            webhook = self._webhooks[message.target]
            headers = self._headers(webhook, message.marker, body)
        except KeyError:
            text = f"there is no webhook {message.target!r} in the configuration of this process"
            return _refused(text, "no_such_webhook")
        except ConfigError as error:
            return _refused(str(error), "no_secret")
        try:
            return await self._exchange(webhook.url, body, headers, message)
        except NEVER_SENT as error:
            return Failure(f"cannot connect: {_said(error)}", origin="http", code="connect")
        except httpx.InvalidURL as error:
            return _refused(f"the url is wrong: {error}", "bad_url")
        except httpx.UnsupportedProtocol as error:
            return _refused(f"the url is wrong: {error}", "bad_url")
        except httpx.HTTPError as error:
            return Unknown(_said(error))

    async def _exchange(
        self, url: str, body: bytes, headers: dict[str, str], message: Message
    ) -> Ended:
        if self._client is None:
            self._client = self._factory()
        async with self._client.stream("POST", url, content=body, headers=headers) as response:
            if 200 <= response.status_code < 300:
                return Receipt(message.edits or message.marker)
            said = b""
            async for piece in response.aiter_raw(TOLD):
                said = piece[:TOLD]
                break
        text = said.decode("utf-8", "replace").strip()
        return Failure(
            f"HTTP {response.status_code}{f': {text}' if text else ''}",
            origin="http",
            http_status=response.status_code,
            retry_after=retry_after(response.headers.get("retry-after"), self._now()),
        )

    def _headers(self, webhook: WebhookSettings, id: str, body: bytes) -> dict[str, str]:
        timestamp = int(self._now())
        return {
            "content-type": "application/json",
            "user-agent": "draftsman",
            "webhook-id": id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": sign(secret_of(webhook), id, timestamp, body),
        }


def secret_of(webhook: WebhookSettings) -> str:
    """Return the secret, read anew each time: it may be rotated. Raises ConfigError."""
    if webhook.secret_file is not None:
        try:
            secret = webhook.secret_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{webhook.secret_file}: the secret cannot be read: {error}"
            ) from None
    else:
        secret = os.environ.get(webhook.secret_env or "", "").strip()
    if not secret:
        where = webhook.secret_file or f"${webhook.secret_env}"
        raise ConfigError(f"{where}: the webhook's secret is missing")
    return secret


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds that a `Retry-After` means, from a count or a date; None: it has none."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value.strip()[:9])
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.fromtimestamp(now, UTC)).total_seconds())


def _refused(text: str, code: str) -> Failure:
    return Failure(text, origin="http", code=code, declared="PERMANENT")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
