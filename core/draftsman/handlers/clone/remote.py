"""How git reaches a repository at a URL: parsed, resolved once, checked, and pinned.

The address that was checked is the one that git connects to, whatever the name resolves to by then:
curl is given it (`http.curloptResolve`), ssh as `HostName`, git:// in the URL. Redirects, proxies
of the environment, credential helpers, and every transport but the URL's own are off.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from draftsman.domain.repos.repo_url import PORTS, parse
from draftsman.errors import Failure, UsageError
from draftsman.handlers.clone.git import git_failure, git_version
from draftsman.outbound import egress_policy as egress
from draftsman.outbound.dns import Resolver
from draftsman.settings import HttpSettings

NUMERIC_HOST: Final = re.compile(r"(?:.*\.)?(?:0x[0-9a-f]*|[0-9]+)\Z", re.IGNORECASE)
"""A host that ends in a number is an address for some programs, and a name for others."""
PINNING_VERSION: Final = (2, 37)
"""The first git that knows `http.curloptResolve`."""
SSH: Final = (
    *("-oBatchMode=yes", "-oProxyCommand=none", "-oProxyJump=none", "-oCanonicalizeHostname=no"),
    *("-oControlMaster=no", "-oControlPath=none", "-oClearAllForwardings=yes"),
    *("-oForwardAgent=no", "-oPermitLocalCommand=no"),
)
"""What comes before the user's configuration, and so cannot be changed by it."""
_SCP: Final = re.compile(r"(?:[^@/]+@)?(\[[^\]]+\]|[^:/]+):")


@dataclass(frozen=True, slots=True)
class Route:
    """A URL for git, and the variables that make git reach it safely."""

    url: str
    env: Mapping[str, str]


async def route(text: str, settings: HttpSettings, resolve: Resolver) -> Route:
    """Return how to reach a repository.

    Raises Failure `url` for what is no URL of a repository, `address_refused` for an address that
    is neither public nor in `http.allow`, `unreachable` for a name without an address.
    """
    try:
        url = parse(text).url
    except UsageError as error:
        raise git_failure(str(error), "url") from None
    scheme, host, port = _parts(url)
    literal = egress.parse_ip(host)
    if literal is None and NUMERIC_HOST.match(host):
        raise git_failure(f"{host} is no host name; write an address as 192.0.2.1", "url")
    web = scheme in {"http", "https"}
    if literal is None and web and settings.proxy is not None:
        return Route(url, _web(scheme, settings, None))
    addresses = await _permitted(host, port, literal, settings, resolve)
    if web:
        pin = None if literal else f"{host}:{port}:{','.join(map(_bracketed, addresses))}"
        if pin is not None and await git_version() < PINNING_VERSION:
            raise git_failure("a URL needs git 2.37 or later; install it", "git_missing")
        return Route(url, _web(scheme, settings, pin))
    if scheme == "git":
        there = url.replace(f"//{urlsplit(url).netloc}", f"//{_bracketed(addresses[0])}:{port}", 1)
        virtual = {"GIT_OVERRIDE_VIRTUAL_HOST": f"{host}:{port}"}
        return Route(there, {"GIT_ALLOW_PROTOCOL": scheme, **virtual})
    return Route(url, _ssh(host, port, addresses[0]))


def _parts(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL that `parse` wrote."""
    if "://" not in url:
        found = _SCP.match(url)
        if found is None:
            raise git_failure("that is a folder, and not the URL of a repository", "url")
        return "ssh", found[1].strip("[]"), PORTS["ssh"]
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme]


async def _permitted(
    host: str,
    port: int,
    literal: egress.IpAddress | None,
    settings: HttpSettings,
    resolve: Resolver,
) -> list[egress.IpAddress]:
    try:
        found = [literal] if literal else await resolve(host, port)
    except Failure as error:
        raise git_failure(f"{error}; check the address and the network", "unreachable") from None
    allowed = _allowed(settings.allow)
    permitted = [address for address in found if allowed.allows(host, address, port)]
    if not permitted:
        raise git_failure(egress.refusal_text(host, port, found[0]), "address_refused")
    return permitted


@lru_cache(maxsize=8)
def _allowed(entries: tuple[str, ...]) -> egress.EgressPolicy:
    return egress.EgressPolicy(entries)


def _web(scheme: str, settings: HttpSettings, pin: str | None) -> dict[str, str]:
    config = {
        "http.followRedirects": "false",
        "http.proxy": settings.proxy or "",
        "credential.helper": "",
        "core.askPass": "",
    }
    if pin is not None:
        config["http.curloptResolve"] = pin
    env = {"GIT_ALLOW_PROTOCOL": scheme, "GIT_CONFIG_COUNT": str(len(config))}
    for number, (key, value) in enumerate(config.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def _ssh(host: str, port: int, address: egress.IpAddress) -> dict[str, str]:
    known_as = host if port == PORTS["ssh"] else f"[{host}]:{port}"
    pinned = (f"-oHostName={address}", f"-oHostKeyAlias={known_as}", f"-oPort={port}")
    return {
        "GIT_ALLOW_PROTOCOL": "ssh",
        "GIT_SSH_VARIANT": "ssh",
        "GIT_SSH_COMMAND": shlex.join(["ssh", *SSH, *pinned]),
    }


def _bracketed(address: egress.IpAddress) -> str:
    return f"[{address}]" if isinstance(address, ipaddress.IPv6Address) else str(address)
