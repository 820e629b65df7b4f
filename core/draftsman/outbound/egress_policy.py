"""Egress policy: outbound calls may reach public and explicitly allowed addresses. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from draftsman.settings.http import HOST

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_REFUSED: Final[tuple[tuple[IpNetwork, str], ...]] = tuple(
    (ipaddress.ip_network(network), word)
    for network, word in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared (CGNAT)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
"""IANA's special-purpose registries, and networks that embed IPv4 addresses."""
_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""Allocated IPv6 addresses; all others are reserved."""


def blocked_range(address: IpAddress) -> str | None:
    """Return the kind of an address that is not public: `private`, `loopback`, …; else None."""
    for network, word in _REFUSED:
        if address in network:
            return word
    return "reserved" if address.version == 6 and address not in _UNICAST else None


def parse_ip(text: str) -> IpAddress | None:
    """Parse an address without its scope (`%eth0`); None for a name."""
    try:
        return ipaddress.ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return None


def refusal_text(host: str, port: int, address: IpAddress) -> str:
    """Return why an address is refused and how to allow it."""
    named = "" if parse_ip(host) else f" (of {host})"
    kind = blocked_range(address) or ""
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return (
        f"{address}{named} is a{'n' * kind.startswith(('IP', 'un'))} {kind} address,"
        " which is blocked; to allow it, set in the configuration of the workers:"
        f' http.allow = ["{authority}"]'
    )


class EgressPolicy:
    """The allowed addresses besides public addresses.

    `entries` are networks, addresses and hosts, with an optional port. `urls` are from the
    configuration: their addresses, and localhost, are allowed.
    """

    def __init__(self, entries: Iterable[str], urls: Iterable[str] = ()) -> None:
        self._networks: list[tuple[IpNetwork, int | None]] = []
        self._hosts: set[tuple[str, int | None]] = set()
        for entry in entries:
            self._add(entry)
        for url in urls:
            split = urlsplit(url)
            host = split.hostname or ""
            if parse_ip(host) is not None or host == "localhost":
                authority = f"[{host}]" if ":" in host else host
                self._add(f"{authority}:{split.port or (443 if split.scheme == 'https' else 80)}")

    def allows(self, host: str, address: IpAddress, port: int) -> bool:
        """Return whether a URL with this host may connect to the address."""
        if blocked_range(address) is None:
            return True
        ports = (None, port)
        return any((host.lower(), allowed) in self._hosts for allowed in ports) or any(
            address in network and allowed in ports for network, allowed in self._networks
        )

    def _add(self, entry: str) -> None:
        try:
            self._networks.append((ipaddress.ip_network(entry, strict=False), None))
            return
        except ValueError:
            match = HOST.match(entry)
        if match is None:
            return
        port = int(match[2]) if match[2] else None
        if (address := parse_ip(match[1])) is None:
            self._hosts.add((match[1].lower(), port))
        else:
            self._networks.append((ipaddress.ip_network(address), port))
