"""HTTP client for all outbound calls.

    URL -> resolve the name once -> check the address -> connect to this address -> bounded response

The checked address is used for the connection, so that a changed DNS record has no effect; Host and
SNI have the name. Each redirect is checked in the same way. Memory is bounded: headers by the
parser (100 kB), the decompressed body by the configuration.
"""

from __future__ import annotations

import asyncio
import email.utils
import os
import re
import socket
import ssl
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import h11
import httpx

from draftsman.errors import ConfigError, Failure
from draftsman.jobs.retries import errno_name
from draftsman.outbound.dns import Resolver, resolve
from draftsman.outbound.egress_policy import EgressPolicy, IpAddress, parse_ip, refusal_text
from draftsman.outbound.timeouts import Timeouts, time_limit
from draftsman.settings.http import HttpSettings

# Translation of HTTP client errors to failures.


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


def limit_reset(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the last limit of a provider's `x-ratelimit-reset*` ends."""
    values = [text for name, text in headers.items() if name.startswith("x-ratelimit-reset")]
    return max((seconds for text in values if (seconds := _span(text)) is not None), default=None)


_SPAN: Final = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)(ms|s|m|h|)", re.ASCII)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def _span(text: str) -> float | None:
    """Return the seconds of a span such as `6m0s`, `20ms` or `1.5`; None for other texts."""
    parts = _SPAN.findall(text)
    if not parts or "".join(map("".join, parts)) != text.strip():
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


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


# Bounded, incremental decompression of response bodies.


CHUNK_SIZE: Final = 64 * 1024
"""Maximum bytes of a decompressed chunk."""
MAX_RATIO: Final = 100
"""Maximum compression ratio of a body above RATIO_THRESHOLD."""
RATIO_THRESHOLD: Final = 1024 * 1024
"""Decompressed bytes below which the ratio is not checked."""
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_RAW: Final = -15


class Decompressor:
    """Decompresses the chunks of a body; raises Failure above `limit` bytes."""

    def __init__(self, encoding: str, limit: int) -> None:
        self.known = encoding in _WINDOWS or encoding in {"", "identity"}
        """Whether the encoding is supported; others are passed through."""
        self._window = _WINDOWS.get(encoding)
        self._stream = None if self._window is None else zlib.decompressobj(self._window)
        self._limit = limit
        self._packed = 0
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes of a chunk."""
        self._packed += len(chunk)
        for piece in self._unpack(chunk) if self._stream is not None else (chunk,):
            self._size += len(piece)
            if self._size > self._limit:
                text = f"the response is larger than {self._limit:,} bytes (http.max_body)"
                raise Failure(text, origin="http", code="body_too_large")
            if self._size > RATIO_THRESHOLD and self._size > self._packed * MAX_RATIO:
                text = f"the response decompresses to over {MAX_RATIO} times its size"
                raise Failure(text, origin="http", code="decompression_bomb")
            if piece:
                yield piece

    def end(self) -> None:
        """Raise Failure if the compressed stream is incomplete."""
        if self._stream is not None and self._packed and not self._stream.eof:
            raise _invalid("unexpected end of data")

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        piece = b""
        while (chunk or len(piece) == CHUNK_SIZE) and self._stream is not None:
            if self._stream.eof and chunk:  # next member of the file
                self._stream = zlib.decompressobj(self._window or 0)
            piece = self._piece(chunk)
            chunk = self._stream.unconsumed_tail or self._stream.unused_data
            yield piece

    def _piece(self, chunk: bytes) -> bytes:
        if self._stream is None:
            return chunk
        try:
            return self._stream.decompress(chunk, CHUNK_SIZE)
        except zlib.error as error:
            if self._window == 15 and self._packed == len(
                chunk
            ):  # raw deflate without a zlib header
                self._window = _RAW
                self._stream = zlib.decompressobj(_RAW)
                return self._piece(chunk)
            raise _invalid(str(error)) from None


def _invalid(reason: str) -> Failure:
    text = f"the response cannot be decompressed: {reason}"
    return Failure(text, origin="http", code="content_encoding")


DEFAULT_HEADERS: Final = {
    "user-agent": "draftsman",
    "accept": "*/*",
    "accept-encoding": "gzip, deflate",
    "connection": "close",
}
SAFE_HEADERS: Final = frozenset(
    {"accept", "accept-language", "content-type", "user-agent", "idempotency-key"}
)
"""Headers that are sent to another origin after a redirect; others may be credentials."""
BECOMES_GET: Final = frozenset({301, 302, 303})
REDIRECTS: Final = BECOMES_GET | {307, 308}

# httpcore imports sniffio for each of its locks, eight times a call; where it is not installed, the
# failing search of all folders takes a fifth of the CPU of a call. None makes it fail at once.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


KEPT_SECONDS: Final = 15.0
"""Seconds that an idle connection is kept; servers keep theirs longer."""


class OutboundResponse:
    """A response whose body is streamed."""

    def __init__(
        self,
        response: httpx.Response,
        url: httpx.URL,
        timeouts: Timeouts,
        limit: int,
        scope: asyncio.Timeout,
    ) -> None:
        self.status = response.status_code
        self.reason = response.reason_phrase
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }
        self.url = str(url)
        self.where = display_url(url)
        encoding = self.headers.get("content-encoding", "").strip().lower()
        self._decompressor = Decompressor(encoding, limit)
        self._response = response
        self._timeouts = timeouts
        self._idle = timeouts.idle
        self._scope = scope

    def limit_silence(self, total: float | None) -> None:
        """Limit the seconds without a byte instead of those of the call, and `total` from now."""
        end = None if total is None else asyncio.get_running_loop().time() + total
        self._scope.reschedule(end)
        self._idle = self._timeouts.silence

    @property
    def packed(self) -> bool:
        """Whether the body has an unsupported content encoding."""
        return not self._decompressor.known

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the decompressed body; raises Failure above a limit or after a timeout."""
        raw = self._response.aiter_raw()
        while True:
            try:
                async with time_limit("idle", self._idle, f"{self.where}: no byte"):
                    chunk = await anext(raw, None)
            except httpx.HTTPError as error:
                raise to_failure(error, self.where) from error
            if chunk is None:
                break
            for piece in self._decompressor.feed(chunk):
                yield piece
        self._decompressor.end()

    async def read(self) -> bytes:
        """Return the whole body."""
        return b"".join([piece async for piece in self.chunks()])

    async def beginning(self, limit: int) -> bytes:
        """Return the first bytes of the body, without errors of the rest."""
        start = bytearray()
        try:
            async for piece in self.chunks():
                start += piece
                if len(start) >= limit:
                    break
        except Failure:
            pass  # the caller reports an error response; a broken body adds nothing to it
        return bytes(start[:limit])


class HttpClient:
    """An HTTP client with an egress policy; `trusted` are configured URLs.

    With `keep`, idle connections to checked addresses are used again, and `close` ends them. All
    calls then are for a single host: a connection is that of its address.
    """

    def __init__(
        self,
        settings: HttpSettings,
        *,
        trusted: Iterable[str] = (),
        resolve: Resolver = resolve,
        keep: int = 0,
    ) -> None:
        self._settings = settings
        self._policy = EgressPolicy(settings.allow, trusted)
        self._resolve = resolve
        self._keep = keep
        self._open_transport: httpx.AsyncHTTPTransport | None = None

    async def close(self) -> None:
        """Close the connections that are kept."""
        if self._open_transport is not None:
            transport = self._open_transport
            self._open_transport = None
            await transport.aclose()

    @asynccontextmanager
    async def stream(
        self,
        call: HttpCall,
        timeouts: Timeouts,
        *,
        redirects: int = 0,
        leaves: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[OutboundResponse]:
        """Send a request and yield the response; the block counts towards the call timeout.

        `leaves` is called before the first byte of a request is sent: the request did not arrive if
        it fails before. Raises Failure of origin `http`.
        """
        what = f"{_where(call)}: no complete response"
        async with time_limit("call", timeouts.call, what) as scope:
            transport = self._open_transport or self._transport()
            if self._keep:
                self._open_transport = transport
            try:
                response, url = await self._follow(transport, call, timeouts, redirects, leaves)
                try:
                    yield OutboundResponse(response, url, timeouts, self._settings.max_body, scope)
                finally:
                    await response.aclose()
            finally:
                if transport is not self._open_transport:
                    await transport.aclose()

    async def _follow(
        self,
        transport: httpx.AsyncHTTPTransport,
        call: HttpCall,
        timeouts: Timeouts,
        redirects: int,
        leaves: Callable[[], None],
    ) -> tuple[httpx.Response, httpx.URL]:
        remaining = redirects
        while True:
            request = _request(call, keep=self._keep > 0)
            url = request.url
            response = await self._send(transport, request, timeouts, leaves)
            location = response.headers.get("location")
            if redirects == 0 or response.status_code not in REDIRECTS or location is None:
                return response, url
            await response.aclose()
            if remaining == 0:
                text = f"{display_url(url)}: more than {redirects} redirects"
                raise Failure(text, origin="http", code="too_many_redirects")
            remaining -= 1
            call = _redirected(call, url, response.status_code, location)

    async def _send(
        self,
        transport: httpx.AsyncHTTPTransport,
        request: httpx.Request,
        timeouts: Timeouts,
        leaves: Callable[[], None],
    ) -> httpx.Response:
        """Connect to an allowed address of the host and send the request."""
        url = request.url
        opened: list[Any] = []
        async with time_limit(
            "connect", timeouts.connect, f"{display_url(url)}: no connection"
        ) as scope:

            async def trace(event: str, info: Mapping[str, Any]) -> None:
                if event == "connection.connect_tcp.complete":
                    opened.append(info["return_value"])
                if event.endswith(".send_request_headers.started"):
                    scope.reschedule(None)
                    leaves()

            request.extensions = {**request.extensions, "trace": trace}
            try:
                return await self._first(transport, request, timeouts.connect)
            except BaseException:  # httpcore leaves a stream open that is canceled during TLS
                for stream in opened:
                    await stream.aclose()
                raise

    async def _first(
        self, transport: httpx.AsyncHTTPTransport, request: httpx.Request, connect: float
    ) -> httpx.Response:
        """Send to the first reachable address; all but the last get a share of the timeout."""
        url = request.url
        *earlier, last = await self._addresses(url)
        for address in earlier:
            pinned = _pinned(request, address, connect / (len(earlier) + 1))
            try:
                return await transport.handle_async_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
            except httpx.HTTPError as error:
                raise to_failure(error, display_url(url)) from error
        try:
            return await transport.handle_async_request(_pinned(request, last, None))
        except httpx.HTTPError as error:
            raise to_failure(error, display_url(url)) from error

    async def _addresses(self, url: httpx.URL) -> list[IpAddress | None]:
        """Return the allowed addresses; None if the proxy connects to the host."""
        host = url.host
        port = _port(url)
        literal = parse_ip(host)
        if self._settings.proxy is not None and literal is None:
            return [None]
        addresses = [literal] if literal else await self._resolve(host, port)
        allowed = [address for address in addresses if self._policy.allows(host, address, port)]
        if not allowed:
            text = refusal_text(host, port, addresses[0])
            raise Failure(text, origin="http", code="address_refused")
        return [None] if self._settings.proxy is not None else list(allowed)

    def _transport(self) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=trusted_certificates(self._settings.ca_file),
            trust_env=False,
            proxy=self._settings.proxy,
            limits=httpx.Limits(
                max_keepalive_connections=self._keep, keepalive_expiry=KEPT_SECONDS
            ),
        )


def display_url(url: httpx.URL) -> str:
    """Return scheme, host and path of a URL without the query, which may contain a secret."""
    return f"{url.scheme}://{url.netloc.decode('ascii').rpartition('@')[2]}{url.path}"[:500]


def origin(url: httpx.URL) -> tuple[str, str, int]:
    """Return the origin, to which a credential is limited."""
    return url.scheme, url.host, _port(url)


def parse_url(url: str) -> httpx.URL:
    """Parse a URL; raises Failure with the code `url`."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise Failure(f"invalid URL {url[:200]!r}: {error}", origin="http", code="url") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        text = f"unsupported URL {url[:200]!r}: only http and https are supported"
        raise Failure(text, origin="http", code="url")
    return parsed.copy_with(username=None, password=None, fragment=None)


def _where(call: HttpCall) -> str:
    return display_url(parse_url(call.url))


def _request(call: HttpCall, *, keep: bool) -> httpx.Request:
    headers = {**DEFAULT_HEADERS, **{name.lower(): value for name, value in call.headers.items()}}
    if keep:
        del headers["connection"]
    return httpx.Request(call.method, parse_url(call.url), headers=headers, content=call.body)


def _redirected(call: HttpCall, url: httpx.URL, status: int, location: str) -> HttpCall:
    """Return the request of a redirect, with safe headers only for another origin."""
    try:
        target = parse_url(str(url.join(location)))
    except (httpx.InvalidURL, ValueError):
        target = parse_url(location)
    method = call.method
    body = call.body
    headers = dict(call.headers)
    if status in BECOMES_GET and method not in {"GET", "HEAD"}:
        method = "GET"
        body = None
        headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    if origin(target) != origin(url):
        headers = {name: value for name, value in headers.items() if name.lower() in SAFE_HEADERS}
    return replace(call, method=method, url=str(target), headers=headers, body=body)


def _pinned(
    request: httpx.Request, address: IpAddress | None, connect: float | None
) -> httpx.Request:
    """Return the request for an address, with Host and SNI of the name."""
    extensions = {**request.extensions, "timeout": {"connect": connect}}
    url = request.url
    if address is not None:
        if url.scheme == "https" and parse_ip(url.host) is None:
            extensions["sni_hostname"] = url.host
        url = url.copy_with(host=str(address))
    return httpx.Request(
        request.method, url, headers=request.headers, stream=request.stream, extensions=extensions
    )


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


@lru_cache(maxsize=4)
def trusted_certificates(ca_file: Path | None) -> ssl.SSLContext:
    """Return the context of TLS connections, with additional certificates; raises ConfigError."""
    context = httpx.create_ssl_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"http.ca_file {ca_file}: {reason}; use a PEM file") from None
    return context
