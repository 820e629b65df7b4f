"""What Trello's errors mean: one table, by status; their text is plain, and said only to people.

A write that got no reply, or one that makes no sense, may have been done: it is InDoubt, and is
looked for before it is repeated. Nothing of what py-trello or httpx raises goes on from here: it
may hold the token, and cannot be sent to another process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx

from draftsman.domain.messages.delivery import COPY_GONE, TARGET_GONE
from draftsman.errors import Failure

PAUSES: Final = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
"""Seconds until the next try while Trello refuses the account; the last repeats. A single stray 401
is over after the first."""
MAX_TEXT: Final = 200
"""Characters of a refusal's own words that are kept."""
ACCOUNT: Final = "account"
"""Code of a Failure that nothing can be said to anybody: deliveries wait."""
CONNECT: Final = "connect"
NO_REPLY: Final = "no_reply"
TIMEOUT: Final = "timeout"
LIMIT: Final = "limit"
"""Codes of Failures: nothing left; nothing came back; nothing came in time; too many requests."""
_NEVER_LEFT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.ProxyError,
)


class UnconfirmedCall(Failure):
    """It may have been done: the reply was lost, or made no sense."""


def no_reply(error: BaseException, where: str, *, writes: bool) -> Failure:
    """Return what it means that no reply came, or none that can be read."""
    if isinstance(error, _NEVER_LEFT):
        text = f"connect: {where}: {type(error).__name__}"
        return Failure(text, origin="trello", code=CONNECT)
    if isinstance(error, httpx.TimeoutException):
        return timed_out(where, type(error).__name__, writes=writes)
    return unconfirmed(f"{where}: no reply ({type(error).__name__})", writes=writes)


def timed_out(where: str, limit: str, *, writes: bool) -> Failure:
    """Return the failure of a call that got no reply in time; `limit` is the time-out's name."""
    kind = UnconfirmedCall if writes else Failure
    return kind(f"{where}: no reply in time ({limit})", origin="trello", code=TIMEOUT)


def unconfirmed(text: str, *, writes: bool, status: int | None = None) -> Failure:
    """Return the failure of a call that may have been done, if it does anything."""
    kind = UnconfirmedCall if writes else Failure
    return kind(text, origin="trello", code=NO_REPLY, http_status=status)


def from_status(status: int, said: str, where: str, *, writes: bool, wait: float = 0.0) -> Failure:
    """Return what a status other than 2xx means; `wait` is in seconds, for 429.

    `where` is the method and the path, by which what is gone is known: a copy, or the card.
    """
    words = _words(said)
    text = f"{words or f'HTTP {status}'} ({where})"
    if status == 429:
        code = _code(said) or LIMIT
        return Failure(text, origin="trello", code=code, http_status=status, retry_after=wait)
    if status >= 500:
        return unconfirmed(f"HTTP {status} ({where})", writes=writes, status=status)
    if status == 401 and "permission" not in words:
        return Failure(
            text, origin="trello", code=ACCOUNT, http_status=status, retry_after=PAUSES[-1],
            declared="TRANSIENT_INFRA",
        )  # fmt: skip
    gone = status in (401, 403, 404, 410) or (status == 400 and words == "invalid id")
    return Failure(
        text,
        origin="trello",
        code=_gone(where) if gone else None,
        http_status=status,
        declared="TRANSIENT_INFRA" if status == 408 else "PERMANENT",
    )


def _gone(where: str) -> str:
    """Return what is not there any more: comments are actions."""
    return COPY_GONE if " /1/actions/" in where else TARGET_GONE


def _words(said: str) -> str:
    """Return what Trello says, in a line; nothing of a page of HTML."""
    text = said.strip()
    if text.startswith("<"):
        return ""
    if text.startswith("{"):
        found = _object(text)
        text = str(found.get("message") or found.get("error") or "")
    return " ".join(text.split())[:MAX_TEXT]


def _code(said: str) -> str | None:
    """Return the name of the limit: `API_TOKEN_LIMIT_EXCEEDED`."""
    found = _object(said).get("error")
    return found if isinstance(found, str) and found.isascii() and len(found) < 60 else None


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
