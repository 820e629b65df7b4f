"""Names to addresses, once for each connection."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable

from draftsman.domain.retries.error_classes import errno_name
from draftsman.errors import Failure
from draftsman.outbound.egress_policy import IpAddress

Resolver = Callable[[str, int], Awaitable[list[IpAddress]]]
"""Takes a name and a port; returns at least one address, the best first; raises Failure."""


async def resolve(host: str, port: int) -> list[IpAddress]:
    """Ask the system, in a thread of its own.

    Raises Failure with origin `http` and the code that the system gives, such as EAI_NONAME.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise Failure(f"{host[:200]!r} is no host name", origin="http", code="url") from None
    except OSError as error:
        text = f"{host}: {error.strerror or error}"
        raise Failure(text, origin="http", code=errno_name(error)) from None
    # A scope (`%eth0`) belongs to link-local addresses, which are refused with or without it.
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    if not addresses:
        raise Failure(f"{host} has no address", origin="http", code="EAI_NODATA")
    return list(dict.fromkeys(addresses))
