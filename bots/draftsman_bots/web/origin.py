"""Checks of a request's address: its host, its origin, and the address of its client."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from draftsman.settings.dashboard import WebSettings
from draftsman_bots.web.problems import PageProblem

UNKNOWN_CLIENT: Final = "unknown"


def check_host(request: HTTPConnection, settings: WebSettings) -> None:
    """Raise PageProblem for another host than that of `url`, as a rebound DNS name has it."""
    hosts = request.headers.getlist("host")
    expected = urlsplit(settings.origin).netloc
    if [host.casefold() for host in hosts] != [expected]:
        raise PageProblem(421, "This address is not that of the inbox.", f"Open {settings.origin}")


def check_origin(request: HTTPConnection, settings: WebSettings) -> None:
    """Raise PageProblem for a form of another site; browsers send the origin with each form."""
    origins = request.headers.getlist("origin")
    if [origin.casefold() for origin in origins] != [settings.origin]:
        raise PageProblem(403, "This form came from another site.", "Open the page again.")


def is_trusted_proxy(request: HTTPConnection, settings: WebSettings) -> bool:
    """Return whether the peer of the connection is a trusted proxy."""
    return _is_in(_peer(request), settings.trusted_proxies)


def client_address(request: HTTPConnection, settings: WebSettings) -> str:
    """Return the address of the client, of IPv6 its /64 network, as clients have whole networks.

    Behind trusted proxies it is the last address of X-Forwarded-For that is not theirs.
    """
    return _network(_forwarded_address(request, settings))


def _forwarded_address(request: HTTPConnection, settings: WebSettings) -> str:
    peer = _peer(request)
    if not _is_in(peer, settings.trusted_proxies):
        return peer
    forwarded = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    for part in reversed(forwarded):
        address = part.strip()
        if not address:
            continue
        if not _is_in(address, settings.trusted_proxies):
            return _canonical(address)
    return peer


def local_path(text: str) -> str:
    """Return a path of this site to continue at; `/` for any other text."""
    if not text.startswith("/") or text.startswith("//") or "\\" in text:
        return "/"
    if not (text.isascii() and text.isprintable()):
        return "/"
    return text.partition("#")[0]


def _peer(request: HTTPConnection) -> str:
    return _canonical(request.client.host) if request.client else UNKNOWN_CLIENT


def _canonical(address: str) -> str:
    """Return an address in its usual form."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return UNKNOWN_CLIENT
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)


def _network(address: str) -> str:
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address, 64), strict=False))


def _is_in(address: str, networks: tuple[str, ...]) -> bool:
    try:
        parsed = ipaddress.ip_address(_canonical(address))
    except ValueError:
        return False
    return any(parsed in ipaddress.ip_network(network) for network in networks)
