"""The HTTP client of outbound calls: responses, addresses, TLS, timeouts and memory."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from respx import MockRouter

from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.outbound.egress_policy import IpAddress, parse_ip
from draftsman.outbound.http_client import HttpCall, HttpClient, OutboundResponse
from draftsman.outbound.timeouts import Timeouts
from draftsman.settings.http import HttpSettings
from tests.support.cases import cases
from tests.support.faulty_server import (
    CERTIFICATE,
    FaultyServer,
    answer,
    bomb,
    chunk,
    head,
    unresponsive_port,
    web,
)

E = ErrorClass
LONG = Timeouts(30, 30)
CAP = 256 * 1024
PLACE = "127.0.0.1:1"
SITE = f"http://{PLACE}/"


@pytest.fixture
async def site() -> AsyncIterator[FaultyServer]:
    """Give a server."""
    async with web() as server:
        yield server


async def pieces(data: bytes, size: int = 4096) -> AsyncIterator[bytes]:
    """Yield a body in pieces."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def endless(piece: bytes, pause: float = 0) -> AsyncIterator[bytes]:
    """Yield a body that never ends."""
    while True:
        yield piece
        await asyncio.sleep(pause)


class Resolver:
    """A resolver: each lookup of a name returns its next address."""

    def __init__(self, **names: list[str]) -> None:
        self.names = {name.replace("_", "."): list(addresses) for name, addresses in names.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[IpAddress]:
        self.asked.append(host)
        known = self.names[host]
        parsed = parse_ip(known.pop(0) if len(known) > 1 else known[0])
        assert parsed is not None
        return [parsed]


def client(
    *allowed: str | FaultyServer, names: Resolver | None = None, **settings: Any
) -> HttpClient:
    """Return a client that may call these addresses."""
    allow = [item if isinstance(item, str) else item.place for item in allowed]
    http_settings = HttpSettings.model_validate({"max_body": CAP, "allow": allow} | settings)
    return HttpClient(http_settings) if names is None else HttpClient(http_settings, resolve=names)


async def fetch(
    client: HttpClient, url: str, patience: Timeouts = LONG, *, redirects: int = 5, **call: Any
) -> tuple[OutboundResponse, bytes]:
    """Send the request, and read the whole response."""
    request = HttpCall(call.pop("method", "GET"), url, **call)
    async with client.stream(request, patience, redirects=redirects) as response:
        return response, await response.read()


async def failing(client: HttpClient, url: str, patience: Timeouts = LONG, **call: Any) -> Failure:
    """Send the request, and return its failure."""
    with pytest.raises(Failure) as raised:
        await fetch(client, url, patience, **call)
    assert "\n" not in str(raised.value)
    return raised.value


async def test_a_response_has_its_headers_and_its_body(site: FaultyServer) -> None:
    site.routes["/a"] = answer(b"hello", x_mood="good")
    response, body = await fetch(client(site), site.url("/a?key=secret#part"))
    assert (response.status, response.reason, body) == (200, "OK", b"hello")
    assert response.headers["x-mood"] == "good"
    assert response.where == site.url("/a")
    [request] = site.requests
    assert request.path == "/a?key=secret"
    assert request.headers["host"] == site.place


async def test_environment_proxies_are_not_used(
    site: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.routes["/"] = answer(b"direct")
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert (await fetch(client(site), site.url()))[1] == b"direct"


async def test_a_configured_proxy_is_used_for_names_and_refuses_private_addresses(
    site: FaultyServer,
) -> None:
    site.routes["http://far.test/x"] = answer(b"by proxy")
    through = client(proxy=site.url(""), names=Resolver(far_test=["10.0.0.1"]))
    assert (await fetch(through, "http://far.test/x"))[1] == b"by proxy"
    assert (await failing(through, "http://10.0.0.1/x")).code == "address_refused"


IPV4 = ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "0.0.0.0"]
IPV6 = ["[::1]", "[::ffff:127.0.0.1]", "[::]"]


@cases("host", [*IPV4, *IPV6, "localhost", "LOCALHOST"])
async def test_no_form_of_a_loopback_address_is_called(respx_mock: MockRouter, host: str) -> None:
    failure = await failing(client(), f"http://{host}/")
    assert (failure.code, classify(failure)) == ("address_refused", E.PERMANENT)
    assert "http.allow" in str(failure)
    assert not respx_mock.calls


@cases(
    ("url", "kind"),
    [
        ("http://127.1:9/", "a loopback address"),
        ("http://0.0.0.0:9/", "an unspecified address"),
        ("http://[::1]:9/", "a loopback address"),
        ("http://[::ffff:127.0.0.1]:9/", "an IPv4-mapped address"),
    ],
)
async def test_the_suggested_setting_allows_the_address(url: str, kind: str) -> None:
    message = str(await failing(client(), url))
    assert f" is {kind}, which is blocked" in message
    entry = message.rpartition('["')[2].removesuffix('"]')
    assert (await failing(client(entry), url)).code != "address_refused"


async def test_an_allowed_address_is_called(respx_mock: MockRouter) -> None:
    respx_mock.get(SITE).respond(text="yes")
    for allowed in ("127.0.0.0/8", PLACE, "localhost:1", "localhost"):
        url = "http://localhost:1/" if "localhost" in allowed else SITE
        names = Resolver(localhost=["127.0.0.1"])
        assert (await fetch(client(allowed, names=names), url))[1] == b"yes"
    assert (await failing(client("127.0.0.1:2", "localhost:2"), SITE)).code == "address_refused"


async def test_a_rebound_name_is_not_called() -> None:
    """The connection goes to the checked address, and each hop is checked."""
    async with web() as good, web("127.0.0.2") as inner:
        inner.routes["/"] = answer(b"secret")
        good.routes["/"] = answer(b"", 302, "Found", location=f"http://name.test:{inner.port}/")
        good.routes["/plain"] = answer(b"fine")
        names = Resolver(name_test=["127.0.0.1", "127.0.0.2"])
        asks = client("127.0.0.1/32", names=names)
        assert (await fetch(asks, f"http://name.test:{good.port}/plain"))[1] == b"fine"
        assert names.asked == ["name.test"]
        names.names["name.test"] = ["127.0.0.1", "127.0.0.2"]
        failure = await failing(asks, f"http://name.test:{good.port}/")
        assert (failure.code, inner.requests) == ("address_refused", [])
        assert "127.0.0.2 (of name.test) is a loopback address" in str(failure)


async def test_the_second_address_is_tried_when_the_first_refuses(site: FaultyServer) -> None:
    site.routes["/"] = answer(b"second")

    async def both(host: str, port: int) -> list[IpAddress]:
        return [ip for ip in (parse_ip("127.0.0.3"), parse_ip("127.0.0.1")) if ip is not None]

    wide = HttpSettings(allow=("127.0.0.0/8",))
    assert (await fetch(HttpClient(wide, resolve=both), f"http://two.test:{site.port}/"))[1]
    only = HttpSettings(allow=("127.0.0.1/32",))
    assert (await fetch(HttpClient(only, resolve=both), f"http://two.test:{site.port}/"))[1]


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("http://127.0.0.1:2/", "address_refused"),
        ("http://10.1.2.3/", "address_refused"),
        ("http://169.254.169.254/latest/meta-data", "address_refused"),
        ("http://[fe80::1]/", "address_refused"),
        ("http://[::ffff:10.0.0.1]/", "address_refused"),
        ("file:///etc/passwd", "url"),
        ("gopher://example.org/", "url"),
        ("/", "too_many_redirects"),
    ],
)
async def test_a_redirect_reaches_no_private_address(
    respx_mock: MockRouter, location: str, code: str
) -> None:
    respx_mock.get(SITE).respond(302, headers={"location": location})
    failure = await failing(client(PLACE), SITE, redirects=3)
    assert (failure.code, classify(failure)) == (code, E.PERMANENT)
    assert len(respx_mock.calls) <= 4


async def test_credentials_are_not_sent_to_another_origin_after_a_redirect(
    respx_mock: MockRouter,
) -> None:
    there = respx_mock.get("http://127.0.0.1:2/").respond()
    respx_mock.get(SITE).respond(307, headers={"location": "http://127.0.0.1:2/"})
    respx_mock.get(f"{SITE}same").respond(307, headers={"location": "/end"})
    end = respx_mock.get(f"{SITE}end").respond()
    sent = {"authorization": "Bearer x", "cookie": "a=b", "x-key": "k", "accept": "text/a"}
    asks = client("127.0.0.1")
    await fetch(asks, SITE, headers=sent)
    received = there.calls.last.request.headers
    assert received["accept"] == "text/a"
    assert not {"authorization", "cookie", "x-key"} & received.keys()
    await fetch(asks, f"{SITE}same", headers=sent)
    assert end.calls.last.request.headers["x-key"] == "k"


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [(303, "POST", "GET"), (302, "POST", "GET"), (307, "POST", "POST"), (301, "HEAD", "HEAD")],
)
async def test_a_redirect_keeps_the_method_or_makes_it_get(
    respx_mock: MockRouter, status: int, method: str, becomes: str
) -> None:
    respx_mock.route(url=SITE).respond(status, headers={"location": "/end"})
    end = respx_mock.route(url=f"{SITE}end").respond()
    body = b"data" if method == "POST" else None
    await fetch(client(PLACE), SITE, method=method, body=body)
    last = end.calls.last.request
    assert (last.method, last.content) == (becomes, b"data" if becomes == "POST" else b"")


async def test_tls_is_checked_for_the_name_while_the_address_is_pinned() -> None:
    async with web(tls=True) as site:
        site.routes["/"] = answer(b"safe")
        names = Resolver(service_test=["127.0.0.1"], other_test=["127.0.0.1"])
        asks = client("127.0.0.1/32", names=names, ca_file=CERTIFICATE)
        assert (await fetch(asks, f"https://service.test:{site.port}/"))[1] == b"safe"
        assert site.requests[0].headers["host"] == f"service.test:{site.port}"
        wrong = await failing(asks, f"https://other.test:{site.port}/")
        assert (wrong.code, classify(wrong)) == ("tls_certificate", E.PERMANENT)
        unknown = client("127.0.0.1/32", names=names)
        own = await failing(unknown, f"https://service.test:{site.port}/")
        assert (own.code, classify(own)) == ("tls_certificate", E.PERMANENT)


async def test_tls_to_a_plain_server_is_reported() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"speak up"))
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        failure = await failing(client("127.0.0.1"), f"https://127.0.0.1:{port}/")
    assert (failure.code, classify(failure)) == ("tls", E.PERMANENT)


async def test_a_refused_connection_is_reported() -> None:
    failure = await failing(client("127.0.0.1"), "http://127.0.0.1:1/")
    assert (failure.origin, failure.code) == ("http", "ECONNREFUSED")
    assert classify(failure) is E.TRANSIENT_INFRA


# -- time-outs


async def test_connecting_has_a_timeout() -> None:
    async with unresponsive_port() as port:
        failure = await failing(client("127.0.0.1"), f"http://127.0.0.1:{port}/", Timeouts(9, 0.1))
    assert str(failure) == f"http://127.0.0.1:{port}/: no connection for 0.1 s (connect limit)"
    assert (failure.code, classify(failure)) == ("connect_timeout", E.TRANSIENT_INFRA)


async def test_resolving_and_tls_count_as_connecting(site: FaultyServer) -> None:
    async def never(host: str, port: int) -> list[IpAddress]:
        await site.go.wait()
        return []

    quick = Timeouts(9, 0.1)
    failure = await failing(HttpClient(HttpSettings(), resolve=never), "http://a.test/", quick)
    assert failure.code == "connect_timeout"
    tls = await failing(client(site), f"https://{site.place}/", quick)  # it waits for a request
    assert tls.code == "connect_timeout"


@pytest.mark.parametrize(
    "response",
    [b"", b"HTTP/1.1 200 OK\r\nContent-", head(content_length="9") + b"half"],
    ids=["before the headers", "within the headers", "within the body"],
)
async def test_a_call_has_a_timeout(site: FaultyServer, response: bytes) -> None:
    site.routes["/"] = site.stall(response)
    failure = await failing(client(site), site.url(), Timeouts(0.15, 0.1))
    assert str(failure) == f"{site.url()}: no complete response for 0.15 s (call limit)"
    assert (failure.code, classify(failure)) == ("call_timeout", E.TRANSIENT_APP)


async def test_reading_a_chunk_has_a_timeout(site: FaultyServer) -> None:
    first = head(transfer_encoding="chunked") + chunk(b"one")
    site.routes["/"] = site.stall(first)
    failure = await failing(client(site), site.url(), Timeouts(9, 9, 0.1))
    assert str(failure) == f"{site.url()}: no byte for 0.1 s (idle limit)"
    assert (failure.code, classify(failure)) == ("idle_timeout", E.TRANSIENT_APP)


async def test_a_slow_response_ends_at_the_timeout_of_the_call(respx_mock: MockRouter) -> None:
    respx_mock.get(SITE).respond(content=endless(b".", 0.01))
    failure = await failing(client(PLACE), SITE, Timeouts(0.2, 9, 0.15))
    assert failure.code == "call_timeout"


# -- hostile answers


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (head(transfer_encoding="chunked") + chunk(bytes(CAP)) + chunk(b"1"), "body_too_large"),
        (head(content_length=str(CAP + 1)) + bytes(CAP + 1), "body_too_large"),
        (head(content_length="9") + b"half", "protocol"),
        (b"not http at all\r\n\r\n", "protocol"),
        (b"", "protocol"),
        (head(content_encoding="gzip", content_length="4") + b"nope", "content_encoding"),
        (answer(gzip.compress(b"x" * 99)[:-9], content_encoding="gzip"), "content_encoding"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"a" * 10_000_000, "header_too_large"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 2_000_000, "header_too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_broken_response_has_a_reason(site: FaultyServer, raw: bytes, code: str) -> None:
    site.routes["/"] = raw
    assert (await failing(client(site), site.url())).code == code


async def test_an_endless_response_ends_at_the_size_limit(respx_mock: MockRouter) -> None:
    respx_mock.get(SITE).respond(content=endless(bytes(64 * 1024)))
    failure = await failing(client(PLACE), SITE)
    assert str(failure) == f"the response is larger than {CAP:,} bytes (http.max_body)"
    assert classify(failure) is E.PERMANENT


async def test_a_decompression_bomb_is_not_decompressed(respx_mock: MockRouter) -> None:
    for limit, code in ((CAP, "body_too_large"), (20 * 1024 * 1024, "decompression_bomb")):
        respx_mock.get(SITE).respond(content=pieces(bomb()), headers={"content-encoding": "gzip"})
        failure = await failing(client(PLACE, max_body=limit), SITE)
        assert (failure.code, classify(failure)) == (code, E.PERMANENT)


async def test_memory_is_bounded_for_any_response(site: FaultyServer) -> None:
    site.routes["/endless"] = site.forever(head(transfer_encoding="chunked"), chunk(bytes(2**20)))
    site.routes["/bomb"] = answer(bomb(), content_encoding="gzip")
    site.routes["/header"] = site.forever(b"HTTP/1.1 200 OK\r\nA: ", bytes(1024 * 1024))
    asks = client(site)
    await failing(asks, site.url("/bomb"))  # loads modules before memory is measured
    for path in ("/endless", "/bomb", "/header"):
        tracemalloc.start()
        await failing(asks, site.url(path))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * 1024 * 1024, f"{path}: {peak:,}"


@cases("size", [0, 1, 64 * 1024, 200_000])
@cases("coding", ["gzip", "x-gzip", "deflate", "raw", "identity", "twice"])
async def test_body_is_decompressed(respx_mock: MockRouter, coding: str, size: int) -> None:
    plain = bytes(range(256)) * (size // 256) + b"z" * (size % 256)
    packed = {
        "gzip": gzip.compress(plain),
        "x-gzip": gzip.compress(plain),
        "deflate": zlib.compress(plain),
        "raw": zlib.compress(plain, wbits=-15),
        "identity": plain,
        "twice": gzip.compress(plain[:9]) + gzip.compress(plain[9:]),
    }[coding]
    named = {"raw": "deflate", "twice": "gzip"}.get(coding, coding)
    respx_mock.get(SITE).respond(content=pieces(packed), headers={"content-encoding": named})
    response, body = await fetch(client(PLACE), SITE)
    assert body == plain
    assert not response.packed


async def test_a_body_with_an_unknown_encoding_is_unchanged(respx_mock: MockRouter) -> None:
    respx_mock.get(SITE).respond(content=pieces(b"\x00\x01"), headers={"content-encoding": "br"})
    response, body = await fetch(client(PLACE), SITE)
    assert (response.packed, body) == (True, b"\x00\x01")
