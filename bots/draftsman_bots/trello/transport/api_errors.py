"""Translation of HTTP errors and Trello's statuses to failures.

A write without a valid reply may have been applied: it is an UnconfirmedCall, and is searched for
before it is repeated. Exceptions of py-trello and httpx are not passed on, because they may contain
the token and cannot be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx

from draftsman.deliveries.delivery import COPY_GONE, TARGET_GONE
from draftsman.errors import Failure
from draftsman.formats.received_json import read_object

PAUSES: Final = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
"""Seconds before each retry while Trello rejects the account; the last repeats. The first is short,
since Trello sometimes returns a single spurious 401."""
MAX_TEXT: Final = 200
"""Maximum characters of Trello's error text."""
ACCOUNT: Final = "account"
"""Code of a Failure of the whole account, for which deliveries wait."""
CONNECT: Final = "connect"
NO_REPLY: Final = "no_reply"
TIMEOUT: Final = "timeout"
LIMIT: Final = "limit"
"""Codes of failures: not sent; no reply; no reply in time; rate limit reached."""
_NEVER_LEFT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.ProxyError,
)


class UnconfirmedCall(Failure):
    """A write that may have been applied: the reply was lost or invalid."""


def no_reply(error: BaseException, where: str, *, writes: bool) -> Failure:
    """Return the failure of a call without a readable reply."""
    if isinstance(error, _NEVER_LEFT):
        text = f"connect: {where}: {type(error).__name__}"
        return Failure(text, origin="trello", code=CONNECT)
    if isinstance(error, httpx.TimeoutException):
        return timed_out(where, type(error).__name__, writes=writes)
    return unconfirmed(f"{where}: no reply ({type(error).__name__})", writes=writes)


def timed_out(where: str, limit: str, *, writes: bool) -> Failure:
    """Return the failure of a call that timed out; `limit` is the name of the timeout."""
    kind = UnconfirmedCall if writes else Failure
    return kind(f"{where}: no reply in time ({limit})", origin="trello", code=TIMEOUT)


def unconfirmed(text: str, *, writes: bool, status: int | None = None) -> Failure:
    """Return the failure of a call with an unknown result; unconfirmed only if it writes."""
    kind = UnconfirmedCall if writes else Failure
    return kind(text, origin="trello", code=NO_REPLY, http_status=status)


def from_status(status: int, body: str, where: str, *, writes: bool, wait: float = 0.0) -> Failure:
    """Return the failure of a status other than 2xx; `wait` is in seconds, for 429.

    `where` is the method and path, which tell whether a comment or the card is missing.
    """
    message = _message(body)
    text = f"{message or f'HTTP {status}'} ({where})"
    if status == 429:
        code = _code(body) or LIMIT
        return Failure(text, origin="trello", code=code, http_status=status, retry_after=wait)
    if status >= 500:
        return unconfirmed(f"HTTP {status} ({where})", writes=writes, status=status)
    if status == 401 and "permission" not in message:
        return Failure(
            text, origin="trello", code=ACCOUNT, http_status=status, retry_after=PAUSES[-1],
            declared="TRANSIENT_INFRA",
        )  # fmt: skip
    is_missing = status in (401, 403, 404, 410) or (status == 400 and message == "invalid id")
    return Failure(
        text,
        origin="trello",
        code=_missing_code(where) if is_missing else None,
        http_status=status,
        declared="TRANSIENT_INFRA" if status == 408 else "PERMANENT",
    )


def _missing_code(where: str) -> str:
    """Return the code for a missing comment, which is an action in Trello, or a missing card."""
    return COPY_GONE if " /1/actions/" in where else TARGET_GONE


def _message(body: str) -> str:
    """Return Trello's error text as a line; empty for an HTML page."""
    text = body.strip()
    if text.startswith("<"):
        return ""
    if text.startswith("{"):
        fields = _object(text)
        text = str(fields.get("message") or fields.get("error") or "")
    return " ".join(text.split())[:MAX_TEXT]


def _code(body: str) -> str | None:
    """Return the name of the limit, such as `API_TOKEN_LIMIT_EXCEEDED`."""
    code = _object(body).get("error")
    return code if isinstance(code, str) and code.isascii() and len(code) < 60 else None


def _object(text: str) -> Mapping[str, Any]:
    return read_object(text) or {}
