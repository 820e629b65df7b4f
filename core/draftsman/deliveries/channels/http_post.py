"""A message as an HTTP request, and the result that its response means."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from draftsman.deliveries.delivery import NOT_SERVED, Receipt, SendResult, Unconfirmed
from draftsman.errors import Failure

if TYPE_CHECKING:
    from draftsman.outbound.http_client import OutboundResponse
    from draftsman.outbound.timeouts import Timeouts
    from draftsman.settings.http import HttpSettings

ERROR_BODY_LIMIT: Final = 500
"""Bytes kept of an error response's body."""


async def post(
    http: HttpSettings,
    timeouts: Timeouts,
    url: str,
    headers: dict[str, str],
    body: bytes,
    *,
    reference: str,
    redact: Callable[[str], str] = str,
) -> SendResult:
    """Send a message; return a Receipt with `reference` for a status from 200 to 299.

    A failure after the message was sent, without a response, is Unconfirmed. `redact` removes
    secrets from the texts of failures.
    """
    from draftsman.outbound.http_client import HttpCall, HttpClient

    client = HttpClient(http, trusted=[url])
    call = HttpCall("POST", url, headers, body)
    sent = False
    refusal = None

    def mark_sent() -> None:
        nonlocal sent
        sent = True

    try:
        async with client.stream(call, timeouts, leaves=mark_sent) as response:
            if 200 <= response.status < 300:
                return Receipt(reference)
            refusal = _refusal(response, "")
            reply = (await response.beginning(ERROR_BODY_LIMIT)).decode("utf-8", "replace")
            return _refusal(response, redact(reply))
    except Failure as error:
        if refusal is not None:
            return refusal
        text = redact(str(error))
        if sent:
            return Unconfirmed(text)
        return error if text == str(error) else Failure(text, origin="http", code=error.code)


def not_served(text: str) -> Failure:
    """Return the failure of a message that another process may send."""
    return Failure(text, origin="http", code=NOT_SERVED, declared="TRANSIENT_INFRA")


def _refusal(response: OutboundResponse, body: str) -> Failure:
    from draftsman.outbound.http_client import retry_after

    text = body.strip()
    return Failure(
        f"HTTP {response.status}{f': {text}' if text else ''}",
        origin="http",
        http_status=response.status,
        retry_after=retry_after(response.headers),
    )
