"""Addresses that are not public, and exceptions in the configuration."""

from __future__ import annotations

from draftsman.outbound.egress_policy import EgressPolicy, blocked_range, parse_ip
from tests.support.cases import cases

REFUSED = {
    "unspecified": "0.0.0.0 0.1.2.3 ::",
    "private": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd12::1 fec0::1",
    "shared (CGNAT)": "100.64.0.1 100.127.255.255",
    "loopback": "127.0.0.1 127.255.255.254 ::1",
    "link-local": "169.254.169.254 fe80::1 fe80::1%eth0",
    "multicast": "224.0.0.1 239.255.255.255 ff02::1",
    "reserved": "240.0.0.1 255.255.255.255 192.0.0.8 2001::1 ::7f00:1 4000::1 100::1",
    "IPv4-mapped": "::ffff:127.0.0.1 ::ffff:8.8.8.8",
    "NAT64": "64:ff9b::a00:1 64:ff9b:1::1",
    "6to4": "2002:a00:1::",
    "documentation": "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1",
    "benchmarking": "198.18.0.1",
}


@cases(("word", "texts"), REFUSED.items())
def test_private_addresses_are_recognized(word: str, texts: str) -> None:
    for text in texts.split():
        address = parse_ip(text)
        assert address is not None
        assert blocked_range(address) == word, text
        assert not EgressPolicy(()).allows(text, address, 80)


@cases("text", ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111"])
def test_public_addresses_are_recognized(text: str) -> None:
    address = parse_ip(text)
    assert address is not None
    assert EgressPolicy(()).allows("any.test", address, 80)


@cases(
    ("entry", "host", "address", "port", "fine"),
    [
        ("10.0.0.0/8", "a.test", "10.9.9.9", 1, True),
        ("10.0.0.0/8", "a.test", "11.0.0.1", 1, True),
        ("10.0.0.0/8", "a.test", "172.16.0.1", 1, False),
        ("10.0.0.0/8", "a.test", "::ffff:10.0.0.1", 1, False),
        ("10.1.2.3:80", "a.test", "10.1.2.3", 80, True),
        ("10.1.2.3:80", "a.test", "10.1.2.3", 81, False),
        ("[::1]:80", "::1", "::1", 80, True),
        ("[::1]:80", "::1", "::1", 81, False),
        ("::1", "x", "::1", 81, True),
        ("db.internal", "DB.internal", "10.0.0.1", 5, True),
        ("db.internal:5", "db.internal", "10.0.0.1", 6, False),
        ("db.internal:5", "evil.test", "10.0.0.1", 5, False),
    ],
)
def test_allowed_addresses_are_recognized(
    entry: str, host: str, address: str, port: int, fine: bool
) -> None:
    parsed = parse_ip(address)
    assert parsed is not None
    assert EgressPolicy([entry]).allows(host, parsed, port) is fine


def test_an_address_in_the_configuration_is_allowed() -> None:
    urls = ["http://127.0.0.1:8080/v1", "http://localhost/x", "https://llm.internal/"]
    local = parse_ip("127.0.0.1")
    private = parse_ip("10.0.0.1")
    assert local is not None
    assert private is not None
    allowed = EgressPolicy((), urls)
    assert allowed.allows("127.0.0.1", local, 8080)
    assert not allowed.allows("127.0.0.1", local, 8081)
    assert allowed.allows("localhost", local, 80)
    assert not allowed.allows("llm.internal", private, 443)
