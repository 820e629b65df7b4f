"""Network of a program: none, that of the host, or named hosts only. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Protocol, Self

from pydantic import AfterValidator, BeforeValidator, Field

from draftsman.settings.section import Section

MAX_HOSTS: Final = 200
"""Maximum entries of a list."""
DEFAULT_PORT: Final = 443
GROUP: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
"""Name of a group; unlike a host without a port it has no dot."""
_NAME: Final = r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62})?)*"
_NAMED: Final = re.compile(rf"(\*\.)?({_NAME})\Z")
_ENTRY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:]+)(?::(\d{1,5}))?\Z")
_ALLOWED: Final = (
    'must be true, false, or a list of groups of [networks] and of hosts, such as ["pypi",'
    ' "git.example:443", "*.example.org"]'
)


@dataclass(frozen=True, slots=True)
class HostRule:
    """A host and port that a program may connect to; with `subdomains`, all names below the host.

    The host is in lower case, an IPv6 address without brackets.
    """

    host: str
    port: int
    subdomains: bool = False

    @classmethod
    def parse(cls, entry: str) -> Self:
        """Parse `host`, `host:port`, `[address]:port` or `*.host:port`; raises ValueError."""
        match = _ENTRY.match(entry.lower())
        port = int(match[2] or DEFAULT_PORT) if match else 0
        if match is None or not 0 < port < 65_536:
            raise ValueError(f"{entry[:300]!r} is not a host or host:port")
        name = match[1].strip("[]")
        try:
            return cls(str(ipaddress.ip_address(name)), port)
        except ValueError:
            named = _NAMED.match(name)
        if named is None or name != match[1] or name.rpartition(".")[2].isdigit():
            raise ValueError(f"{entry[:300]!r} is not a host or host:port")
        return cls(named[2], port, named[1] is not None)

    def covers(self, other: HostRule) -> bool:
        """Return whether the rule allows all that the other allows."""
        if self.port != other.port:
            return False
        if self.subdomains:
            return other.host.endswith(f".{self.host}") or self == other
        return self == other

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'*.' * self.subdomains}{host}:{self.port}"


def _check_host(entry: str) -> str:
    return str(HostRule.parse(entry))


def _check_network(value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):  # of a variable
        return value.lower() == "true"
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError(_ALLOWED)
    if len(value) > MAX_HOSTS:
        raise ValueError(f"must have at most {MAX_HOSTS} entries")
    checked = (item if GROUP.fullmatch(item) else _check_host(item) for item in value)
    return tuple(dict.fromkeys(checked))


Network = Annotated[bool | tuple[str, ...], BeforeValidator(_check_network)]
"""False: none; True: that of the host; else groups and hosts, through the worker."""


HostEntry = Annotated[str, AfterValidator(_check_host)]
"""`host`, `host:port`, `[address]:port` or `*.host:port`, with its port."""


def resolve_groups(
    network: bool | tuple[str, ...], groups: Mapping[str, Iterable[str]]
) -> bool | tuple[str, ...]:
    """Return the network with hosts instead of groups; an empty list is no network.

    Raises ValueError for an unknown group.
    """
    if isinstance(network, bool):
        return network
    return tuple(dict.fromkeys(_hosts(network, groups))) or False


def intersect(a: bool | tuple[str, ...], b: bool | tuple[str, ...]) -> bool | tuple[str, ...]:
    """Return what two networks without groups both allow."""
    if isinstance(a, bool):
        return b if a else False
    if isinstance(b, bool):
        return a if b else False
    left = rules_of(a)
    right = rules_of(b)
    common = [rule for rule in left if any(other.covers(rule) for other in right)]
    common += [rule for rule in right if any(other.covers(rule) for other in left)]
    return tuple(dict.fromkeys(str(rule) for rule in common)) or False


def as_json(network: bool | tuple[str, ...]) -> bool | list[str]:
    """Return the network as a value of JSON."""
    return network if isinstance(network, bool) else list(network)


def rules_of(hosts: Iterable[str]) -> list[HostRule]:
    """Return the rules of checked hosts."""
    return [HostRule.parse(host) for host in hosts]


def _hosts(network: Iterable[str], groups: Mapping[str, Iterable[str]]) -> Iterator[str]:
    for entry in network:
        if not GROUP.fullmatch(entry):
            yield entry
        elif entry in groups:
            yield from groups[entry]
        else:
            known = ", ".join(sorted(groups)) or "none"
            raise ValueError(
                f"no group {entry!r} in [networks]; groups: {known}; a host without a dot needs a"
                f" port: {entry}:{DEFAULT_PORT}"
            )


class NetworkSettings(Section):
    """Groups of hosts for the lists of `network`."""

    hosts: tuple[HostEntry, ...] = Field(
        min_length=1, max_length=MAX_HOSTS, examples=[["packages.example", "*.files.example:443"]]
    )
    """Hosts with an optional port (443); *.host: all names below it."""


def check_names(table: str, names: Iterable[str]) -> None:
    """Raise ValueError for a name that is not allowed in a table."""
    for name in names:
        if GROUP.fullmatch(name) is None:
            raise ValueError(f"{table}.{name}: use lower-case letters, digits, - and _")


class _Program(Protocol):
    @property
    def network(self) -> bool | tuple[str, ...]: ...


def check_networks(
    table: str, programs: Mapping[str, _Program], groups: Mapping[str, NetworkSettings]
) -> None:
    """Raise ValueError for a program whose network has an unknown group."""
    hosts = {name: group.hosts for name, group in groups.items()}
    for name, program in programs.items():
        try:
            resolve_groups(program.network, hosts)
        except ValueError as error:
            raise ValueError(f"{table}.{name}.network: {error}") from None
