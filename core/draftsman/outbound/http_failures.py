"""Translation of HTTP client errors to failures."""

from __future__ import annotations

import email.utils
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import h11
import httpx

from draftsman.errors import Failure
from draftsman.jobs.error_classes import errno_name

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
    """Translate an error of httpx, or its cause, to a Failure of origin `http`."""
    for inner in _chain(error):
        if isinstance(inner, ssl.SSLCertVerificationError):
            return _failure(where, f"certificate: {inner.verify_message}", "tls_certificate")
        if isinstance(inner, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return _failure(where, "connection closed during the TLS handshake", "disconnected")
        if isinstance(inner, ssl.SSLError):
            return _failure(where, f"TLS: {inner.reason or inner}", "tls")
        if isinstance(inner, h11.RemoteProtocolError) and inner.error_status_hint == 431:
            return _failure(where, "response headers are too large", "header_too_large")
        if isinstance(inner, OSError) and (name := errno_name(inner)) is not None:
            return _failure(where, _os_message(inner), name)
    code = next((code for kind, code in _CODES if isinstance(error, kind)), None)
    return _failure(where, str(error) or type(error).__name__, code)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the delay that a response requests, in seconds.

    A date is relative to the response's `Date`, since the clocks may differ.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _is_number(milliseconds):
        return int(milliseconds) / 1000
    header = headers.get("retry-after", "").strip()
    if _is_number(header):
        return float(int(header))
    until = _date(header)
    if until is None:
        return None
    since = _date(headers.get("date", "")) or now or datetime.now(UTC)
    return max(0.0, (until - since).total_seconds())


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def _date(text: str) -> datetime | None:
    try:
        date = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)


def _os_message(error: OSError) -> str:
    """Return the system's message, which asyncio replaces for a failed connection."""
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or type(error).__name__
    return os.strerror(error.errno)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its causes, and the members of groups."""
    seen: set[int] = set()
    pending = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        pending += [current.__context__, current.__cause__]
        if isinstance(current, BaseExceptionGroup):
            pending += current.exceptions


def _failure(where: str, reason: str, code: str | None) -> Failure:
    return Failure(f"{where}: {reason}", origin="http", code=code)
