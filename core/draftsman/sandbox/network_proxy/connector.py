"""Connections to allowed hosts, by name, port and resolved address."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from draftsman.errors import Failure
from draftsman.outbound.dns import Resolver, resolve
from draftsman.outbound.egress_policy import EgressPolicy, parse_ip, refusal_text
from draftsman.outbound.http_client import trusted_certificates
from draftsman.outbound.timeouts import time_limit
from draftsman.settings.http import HttpSettings
from draftsman.settings.network import HostRule, rules_of

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
MAX_HEAD: Final = 16 * 1024
"""Maximum bytes of the head of a proxy's response."""


class HostRefused(Exception):
    """The host, or its address, is not allowed."""


class HostConnector:
    """Connects to the hosts of a network; `setting` is the key that lists them."""

    def __init__(
        self,
        hosts: Iterable[str],
        http: HttpSettings,
        timeout: float,
        setting: str,
        resolve: Resolver = resolve,
    ) -> None:
        self._rules = rules_of(hosts)
        self._setting = setting
        self._policy = EgressPolicy(http.allow)
        self._http = http
        self._timeout = timeout
        self._resolve = resolve

    async def connect(self, target: HostRule) -> Streams:
        """Connect to a host; raises HostRefused, Failure of origin `http`.

        The checked address is used, so that a name that changes has no effect.
        """
        if not any(rule.covers(target) for rule in self._rules):
            text = f'{target} is not allowed; to allow it, add "{target}" to {self._setting}'
            raise HostRefused(text)
        async with time_limit("connect", self._timeout, f"{target}: no connection", origin="http"):
            literal = parse_ip(target.host)
            by_proxy = self._http.proxy is not None and literal is None
            addresses = [literal] if literal else []
            if not by_proxy and literal is None:
                addresses = await self._resolve(target.host, target.port)
            allowed = [
                address
                for address in addresses
                if self._policy.allows(target.host, address, target.port)
            ]
            if addresses and not allowed:
                raise HostRefused(refusal_text(target.host, target.port, addresses[0]))
            if self._http.proxy is not None:
                return await self._connect_by_proxy(target, self._http.proxy)
            return await self._connect_to_first([str(address) for address in allowed], target)

    async def _connect_to_first(self, addresses: list[str], target: HostRule) -> Streams:
        """Connect to the first reachable address; all but the last get a share of the timeout."""
        problem: OSError | None = None
        for address in addresses:
            last = address == addresses[-1]
            try:
                async with asyncio.timeout(None if last else self._timeout / len(addresses)):
                    return await asyncio.open_connection(address, target.port)
            except OSError as error:  # a TimeoutError, too
                problem = error
        reason = "no address" if problem is None else _reason(problem)
        raise Failure(f"{target}: {reason}", origin="http", code="unreachable")

    async def _connect_by_proxy(self, target: HostRule, proxy: str) -> Streams:
        """Connect through the configured proxy, which resolves the name."""
        url = urlsplit(proxy)
        tls = trusted_certificates(self._http.ca_file) if url.scheme == "https" else None
        port = url.port or (443 if tls else 80)
        problem: object = "no connection"
        try:
            reader, writer = await asyncio.open_connection(
                url.hostname, port, ssl=tls, limit=MAX_HEAD
            )
        except OSError as error:
            problem = _reason(error)
        else:
            try:
                writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
                await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
                status = head.split(b" ", 2)[1:2]
                if status and status[0].startswith(b"2"):
                    return reader, writer
                problem = head.partition(b"\r\n")[0].decode("latin-1")[:200]
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
                problem = error
            except BaseException:
                writer.transport.abort()
                raise
            with contextlib.suppress(OSError, ssl.SSLError):
                writer.close()
        raise Failure(f"http.proxy {proxy}: {problem}", origin="http", code="proxy")


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
