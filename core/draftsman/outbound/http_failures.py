"""What goes wrong with a connection, translated once."""

from __future__ import annotations

import email.utils
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import h11
import httpx

from draftsman.domain.retries.error_classes import errno_name
from draftsman.errors import Failure

_CODES: tuple[tuple[type[Exception], str], ...] = (
    (httpx.ConnectTimeout, "connect_timeout"),
    (httpx.TimeoutException, "call_timeout"),
    (httpx.LocalProtocolError, "request"),
    (httpx.RemoteProtocolError, "protocol"),
    (httpx.UnsupportedProtocol, "url"),
    (httpx.InvalidURL, "url"),
    (httpx.ProxyError, "proxy"),
    (httpx.NetworkError, "disconnected"),
)


def to_failure(error: Exception, where: str) -> Failure:
    """Return an error of httpx, and of what it stands on, as a Failure of origin `http`."""
    for inner in _chain(error):
        if isinstance(inner, ssl.SSLCertVerificationError):
            return _failure(where, f"its certificate: {inner.verify_message}", "tls_certificate")
        if isinstance(inner, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return _failure(where, "it hung up during TLS", "disconnected")
        if isinstance(inner, ssl.SSLError):
            return _failure(where, f"TLS: {inner.reason or inner}", "tls")
        if isinstance(inner, h11.RemoteProtocolError) and inner.error_status_hint == 431:
            return _failure(where, "its headers are too large to be read", "header_too_large")
        if isinstance(inner, OSError) and (name := errno_name(inner)) is not None:
            return _failure(where, _said(inner), name)
    code = next((code for kind, code in _CODES if isinstance(error, kind)), None)
    return _failure(where, str(error) or type(error).__name__, code)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that an answer asks to wait: in milliseconds, in seconds, or as a date.

    A date counts from the answer's own `Date`, since the clocks may differ.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _is_number(milliseconds):
        return int(milliseconds) / 1000
    wanted = headers.get("retry-after", "").strip()
    if _is_number(wanted):
        return float(int(wanted))
    until = _date(wanted)
    if until is None:
        return None
    since = _date(headers.get("date", "")) or now or datetime.now(UTC)
    return max(0.0, (until - since).total_seconds())


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def _date(text: str) -> datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _said(error: OSError) -> str:
    """Return the system's words; asyncio has its own for a connection that failed."""
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or type(error).__name__
    return os.strerror(error.errno)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what caused it; a group's members too."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__context__, one.__cause__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def _failure(where: str, why: str, code: str | None) -> Failure:
    return Failure(f"{where}: {why}", origin="http", code=code)
