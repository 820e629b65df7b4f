"""One HTTP client for everything that calls out.

    URL -> name resolved once -> address checked -> that address connected to -> answer, bounded

The address that was checked is the one that is connected to, so that a name that changes meanwhile
gains nothing; Host and SNI stay the name's. Each redirect goes through all of it again. Memory is
bounded: headers by the protocol's parser (100 kB), the body by the configuration, unpacked.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import httpx

from draftsman.errors import ConfigError, Failure
from draftsman.outbound.decompression import Decompressor
from draftsman.outbound.dns import Resolver, resolve
from draftsman.outbound.egress_policy import EgressPolicy, IpAddress, parse_ip, refusal_text
from draftsman.outbound.http_failures import to_failure
from draftsman.outbound.timeouts import Timeouts, time_limit
from draftsman.settings import HttpSettings

OWN: Final = {
    "user-agent": "draftsman",
    "accept": "*/*",
    "accept-encoding": "gzip, deflate",
    "connection": "close",
}
HARMLESS: Final = frozenset(
    {"accept", "accept-language", "content-type", "user-agent", "idempotency-key"}
)
"""Headers that another origin gets to see after a redirect; any other may be a credential."""
BECOMES_GET: Final = frozenset({301, 302, 303})
REDIRECTS: Final = BECOMES_GET | {307, 308}


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


class OutboundResponse:
    """The head of a response, and its body as it comes."""

    def __init__(
        self, response: httpx.Response, url: httpx.URL, patience: Timeouts, most: int
    ) -> None:
        self.status = response.status_code
        self.reason = response.reason_phrase
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }
        self.url = str(url)
        self.where = display_url(url)
        coding = self.headers.get("content-encoding", "").strip().lower()
        self._unpacker = Decompressor(coding, most)
        self._response = response
        self._patience = patience

    @property
    def packed(self) -> bool:
        """Whether the body stays packed in a way that nobody here can open."""
        return not self._unpacker.known

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body, unpacked. Raises Failure beyond a cap or a limit."""
        raw = self._response.aiter_raw()
        while True:
            try:
                async with time_limit("idle", self._patience.idle, f"{self.where}: no byte"):
                    chunk = await anext(raw, None)
            except httpx.HTTPError as error:
                raise to_failure(error, self.where) from error
            if chunk is None:
                break
            for piece in self._unpacker.feed(chunk):
                yield piece
        self._unpacker.end()

    async def read(self) -> bytes:
        """Return the whole body."""
        return b"".join([piece async for piece in self.chunks()])

    async def beginning(self, most: int) -> bytes:
        """Return the first bytes of the body, whatever is wrong with the rest."""
        kept = bytearray()
        try:
            async for piece in self.chunks():
                kept += piece
                if len(kept) >= most:
                    break
        except Failure:
            pass  # an error is to be told; that its page is broken as well helps nobody
        return bytes(kept[:most])


class HttpClient:
    """Calls out. `trusted` are URLs that the configuration names itself, see Allowed."""

    def __init__(
        self, settings: HttpSettings, *, trusted: Iterable[str] = (), resolve: Resolver = resolve
    ) -> None:
        self._settings = settings
        self._allowed = EgressPolicy(settings.allow, trusted)
        self._resolve = resolve

    @asynccontextmanager
    async def stream(
        self,
        call: HttpCall,
        patience: Timeouts,
        *,
        redirects: int = 0,
        leaves: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[OutboundResponse]:
        """Give the answer, of any status; everything in the block counts for the call's limit.

        `leaves` is called before the first byte of a request goes out: what fails before that never
        arrived. Raises Failure of origin `http`.
        """
        async with time_limit("call", patience.call, f"{_where(call)}: no complete answer"):
            transport = self._transport()
            try:
                response, url = await self._follow(transport, call, patience, redirects, leaves)
                try:
                    yield OutboundResponse(response, url, patience, self._settings.max_body)
                finally:
                    await response.aclose()
            finally:
                await transport.aclose()

    async def _follow(
        self,
        transport: httpx.AsyncHTTPTransport,
        call: HttpCall,
        patience: Timeouts,
        redirects: int,
        leaves: Callable[[], None],
    ) -> tuple[httpx.Response, httpx.URL]:
        left = redirects
        while True:
            request = _request(call)
            url = request.url
            response = await self._send(transport, request, patience, leaves)
            location = response.headers.get("location")
            if redirects == 0 or response.status_code not in REDIRECTS or location is None:
                return response, url
            await response.aclose()
            if left == 0:
                text = f"{display_url(url)}: more than {redirects} redirects"
                raise Failure(text, origin="http", code="too_many_redirects")
            left -= 1
            call = _redirected(call, url, response.status_code, location)

    async def _send(
        self,
        transport: httpx.AsyncHTTPTransport,
        request: httpx.Request,
        patience: Timeouts,
        leaves: Callable[[], None],
    ) -> httpx.Response:
        """Connect to one of the addresses of the host that may be reached, and ask."""
        url = request.url
        opened: list[Any] = []
        async with time_limit(
            "connect", patience.connect, f"{display_url(url)}: no connection"
        ) as scope:

            async def trace(event: str, about: Mapping[str, Any]) -> None:
                if event == "connection.connect_tcp.complete":
                    opened.append(about["return_value"])
                if event.endswith(".send_request_headers.started"):
                    scope.reschedule(None)
                    leaves()

            request.extensions = {**request.extensions, "trace": trace}
            try:
                return await self._first(transport, request, patience.connect)
            except BaseException:  # one that is cancelled during TLS stays open otherwise
                for stream in opened:
                    await stream.aclose()
                raise

    async def _first(
        self, transport: httpx.AsyncHTTPTransport, request: httpx.Request, connect: float
    ) -> httpx.Response:
        """Ask the first address that can be connected to; each but the last gets its share."""
        url = request.url
        *others, last = await self._addresses(url)
        for address in others:
            pinned = _pinned(request, address, connect / (len(others) + 1))
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
        """Return where to connect; None stands for the proxy's own way to the host."""
        host, port = url.host, _port(url)
        literal = parse_ip(host)
        if self._settings.proxy is not None and literal is None:
            return [None]
        found = [literal] if literal else await self._resolve(host, port)
        may = [one for one in found if self._allowed.allows(host, one, port)]
        if not may:
            text = refusal_text(host, port, found[0])
            raise Failure(text, origin="http", code="address_refused")
        return [None] if self._settings.proxy is not None else list(may)

    def _transport(self) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=_trust(self._settings.ca_file),
            trust_env=False,
            proxy=self._settings.proxy,
            limits=httpx.Limits(max_keepalive_connections=0),
        )


def display_url(url: httpx.URL) -> str:
    """Return scheme, host and path of a URL; its query may hold a secret."""
    return f"{url.scheme}://{url.netloc.decode('ascii').rpartition('@')[2]}{url.path}"[:500]


def origin(url: httpx.URL) -> tuple[str, str, int]:
    """Return what has to be equal for a credential to go along."""
    return url.scheme, url.host, _port(url)


def parse_url(url: str) -> httpx.URL:
    """Return the URL; raises Failure `url`."""
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise Failure(f"{url[:200]!r} is no URL: {error}", origin="http", code="url") from None
    if found.scheme not in {"http", "https"} or not found.host:
        text = f"{url[:200]!r} is not asked for: only http and https are"
        raise Failure(text, origin="http", code="url")
    return found.copy_with(username=None, password=None, fragment=None)


def _where(call: HttpCall) -> str:
    return display_url(parse_url(call.url))


def _request(call: HttpCall) -> httpx.Request:
    headers = {**OWN, **{name.lower(): value for name, value in call.headers.items()}}
    return httpx.Request(call.method, parse_url(call.url), headers=headers, content=call.body)


def _redirected(call: HttpCall, url: httpx.URL, status: int, location: str) -> HttpCall:
    """Return the request that a redirect leads to; another origin learns nothing private."""
    try:
        target = parse_url(str(url.join(location)))
    except (httpx.InvalidURL, ValueError):
        target = parse_url(location)
    method, body, headers = call.method, call.body, dict(call.headers)
    if status in BECOMES_GET and method not in {"GET", "HEAD"}:
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    if origin(target) != origin(url):
        headers = {name: value for name, value in headers.items() if name.lower() in HARMLESS}
    return replace(call, method=method, url=str(target), headers=headers, body=body)


def _pinned(
    request: httpx.Request, address: IpAddress | None, connect: float | None
) -> httpx.Request:
    """Return the request for one address; Host and SNI stay those of the name."""
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
def _trust(ca_file: Path | None) -> ssl.SSLContext:
    context = httpx.create_ssl_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            why = getattr(error, "strerror", None) or error
            raise ConfigError(f"http.ca_file {ca_file}: {why}; name a PEM file") from None
    return context
