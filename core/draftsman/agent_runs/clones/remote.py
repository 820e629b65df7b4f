"""Egress policy for git: the URL's host is resolved once, checked, and pinned.

git connects to the checked address, even if the name resolves to another address later: curl gets
it by `http.curloptResolve`, ssh as `HostName`, git:// in the URL. Redirects, proxies of the
environment, credential helpers, and transports other than the URL's are disabled.

The token of a forge is a header for its origin, in the environment of that one process: it is not
an argument, not in a URL, and not in a file.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from draftsman.agent_runs.clones.git import git_failure, git_version
from draftsman.errors import Failure, UsageError
from draftsman.forges.pull_request import GitLogin
from draftsman.outbound import egress_policy as egress
from draftsman.outbound.dns import Resolver
from draftsman.repos.repo_url import PORTS, parse
from draftsman.settings import HttpSettings

NUMERIC_HOST: Final = re.compile(r"(?:.*\.)?(?:0x[0-9a-f]*|[0-9]+)\Z", re.IGNORECASE)
"""Hosts that some programs read as an address and others as a name."""
PINNING_VERSION: Final = (2, 37)
"""The first version of git with `http.curloptResolve`."""
SSH: Final = (
    *("-oBatchMode=yes", "-oProxyCommand=none", "-oProxyJump=none", "-oCanonicalizeHostname=no"),
    *("-oControlMaster=no", "-oControlPath=none", "-oClearAllForwardings=yes"),
    *("-oForwardAgent=no", "-oPermitLocalCommand=no"),
)
"""Options of ssh, which take precedence over the user's configuration."""
_SCP: Final = re.compile(r"(?:[^@/]+@)?(\[[^\]]+\]|[^:/]+):")


@dataclass(frozen=True, slots=True)
class Route:
    """A URL for git, and the environment variables that pin its address."""

    url: str
    env: Mapping[str, str] = field(repr=False)


async def route(
    text: str, settings: HttpSettings, resolve: Resolver, login: GitLogin | None = None
) -> Route:
    """Return the route to a repository; only over HTTP it has the token of `login`.

    Raises Failure `url` for an invalid URL of a repository, `address_refused` for an address that
    is neither public nor in `http.allow`, `unreachable` for a name without an address.
    """
    try:
        url = parse(text).url
    except UsageError as error:
        raise git_failure(str(error), "url") from None
    scheme, host, port = _split_url(url)
    literal = egress.parse_ip(host)
    if literal is None and NUMERIC_HOST.match(host):
        raise git_failure(f"invalid host name {host}; write an IP address as 192.0.2.1", "url")
    is_http = scheme in {"http", "https"}
    if literal is None and is_http and settings.proxy is not None:
        return Route(url, _http_environment(url, settings, None, login))
    addresses = await _resolve_permitted(host, port, literal, settings, resolve)
    if is_http:
        pin = None if literal else f"{host}:{port}:{','.join(map(_in_brackets, addresses))}"
        if pin is not None and await git_version() < PINNING_VERSION:
            raise git_failure(
                "repositories at a URL need git 2.37 or later; upgrade git", "git_missing"
            )
        return Route(url, _http_environment(url, settings, pin, login))
    if scheme == "git":
        pinned_url = url.replace(
            f"//{urlsplit(url).netloc}", f"//{_in_brackets(addresses[0])}:{port}", 1
        )
        host_variable = {"GIT_OVERRIDE_VIRTUAL_HOST": f"{host}:{port}"}
        return Route(pinned_url, {"GIT_ALLOW_PROTOCOL": scheme, **host_variable})
    return Route(url, _ssh_environment(host, port, addresses[0]))


def _split_url(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL that `parse` wrote."""
    if "://" not in url:
        match = _SCP.match(url)
        if match is None:
            raise git_failure("this is a folder, not the URL of a repository", "url")
        return "ssh", match[1].strip("[]"), PORTS["ssh"]
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme]


async def _resolve_permitted(
    host: str,
    port: int,
    literal: egress.IpAddress | None,
    settings: HttpSettings,
    resolve: Resolver,
) -> list[egress.IpAddress]:
    try:
        resolved = [literal] if literal else await resolve(host, port)
    except Failure as error:
        raise git_failure(f"{error}; check the URL and the network", "unreachable") from None
    policy = _egress_policy(settings.allow)
    permitted = [address for address in resolved if policy.allows(host, address, port)]
    if not permitted:
        raise git_failure(egress.refusal_text(host, port, resolved[0]), "address_refused")
    return permitted


@lru_cache(maxsize=8)
def _egress_policy(entries: tuple[str, ...]) -> egress.EgressPolicy:
    return egress.EgressPolicy(entries)


def _http_environment(
    url: str, settings: HttpSettings, pin: str | None, login: GitLogin | None
) -> dict[str, str]:
    parts = urlsplit(url)
    config = {
        "http.followRedirects": "false",
        "http.proxy": settings.proxy or "",
        "credential.helper": "",
        "core.askPass": "",
    }
    if pin is not None:
        config["http.curloptResolve"] = pin
    if login is not None:
        value = base64.b64encode(f"{login.user}:{login.token}".encode()).decode()
        header = f"Authorization: Basic {value}"
        config[f"http.{parts.scheme}://{parts.netloc}/.extraHeader"] = header
    env = {"GIT_ALLOW_PROTOCOL": parts.scheme, "GIT_CONFIG_COUNT": str(len(config))}
    for number, (key, value) in enumerate(config.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def _ssh_environment(host: str, port: int, address: egress.IpAddress) -> dict[str, str]:
    known_as = host if port == PORTS["ssh"] else f"[{host}]:{port}"
    pinned = (f"-oHostName={address}", f"-oHostKeyAlias={known_as}", f"-oPort={port}")
    return {
        "GIT_ALLOW_PROTOCOL": "ssh",
        "GIT_SSH_VARIANT": "ssh",
        "GIT_SSH_COMMAND": shlex.join(["ssh", *SSH, *pinned]),
    }


def _in_brackets(address: egress.IpAddress) -> str:
    return f"[{address}]" if isinstance(address, ipaddress.IPv6Address) else str(address)
