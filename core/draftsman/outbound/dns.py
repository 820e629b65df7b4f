"""Name resolution, once for each connection."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.errors import Failure
from draftsman.jobs.error_classes import errno_name
from draftsman.outbound.egress_policy import IpAddress
from draftsman.outbound.lookup_threads import LookupThreads

LOOKUP_TIMEOUT: Final = 30.0
"""Seconds for a lookup, the wait for a thread included."""
_THREADS: Final = LookupThreads()
Resolver = Callable[[str, int], Awaitable[list[IpAddress]]]
"""Resolves a name and port to at least one address, the best first; raises Failure."""


async def resolve(host: str, port: int) -> list[IpAddress]:
    """Resolve with the system's resolver, in a thread of `lookup_threads`.

    Raises Failure with origin `http` and the system's code, such as EAI_NONAME.
    """
    try:
        async with asyncio.timeout(LOOKUP_TIMEOUT):
            entries = await _THREADS.lookup(host, port)
    except TimeoutError:
        text = f"{host}: no reply of the name servers for {LOOKUP_TIMEOUT:g} s"
        raise Failure(text, origin="http", code="EAI_AGAIN") from None
    except UnicodeError:
        raise Failure(f"{host[:200]!r} is not a host name", origin="http", code="url") from None
    except OSError as error:
        text = f"{host}: {error.strerror or error}"
        raise Failure(text, origin="http", code=errno_name(error)) from None
    # drop the scope (`%eth0`) of link-local addresses, which are refused anyway
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in entries]
    if not addresses:
        raise Failure(f"{host} has no address", origin="http", code="EAI_NODATA")
    return list(dict.fromkeys(addresses))
