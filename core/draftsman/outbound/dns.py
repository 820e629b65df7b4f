"""Name resolution, once for each connection."""

from __future__ import annotations

import asyncio
import ipaddress
import queue
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final

from draftsman.errors import Failure
from draftsman.jobs.retries import errno_name
from draftsman.outbound.egress_policy import IpAddress

# Threads of name resolution: bounded, and apart from those of all other work.
#
# The system's resolver blocks its thread for as long as its name servers do not reply. In the
# default pool of an event loop such lookups would take the threads of files and processes.


MAX_THREADS: Final = 8
"""Lookups at a time; further lookups wait, and end at their caller's timeout."""
IDLE: Final = 30.0
"""Seconds after which a thread without a lookup ends."""

Entries = list[tuple[Any, ...]]


class LookupThreads:
    """Resolves names in threads of its own, which do not delay the end of the process."""

    def __init__(self, most: int = MAX_THREADS, idle: float = IDLE) -> None:
        self._most = most
        self._idle = idle
        self._waiting: queue.SimpleQueue[_Lookup] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._unfinished = 0

    async def lookup(self, host: str, port: int) -> Entries:
        """Return the entries of `socket.getaddrinfo`; raises OSError, UnicodeError.

        A canceled lookup that waits for a thread is dropped.
        """
        lookup = _Lookup(asyncio.get_running_loop(), host, port)
        with self._lock:
            self._waiting.put(lookup)
            self._unfinished += 1
            start = self._threads < min(self._unfinished, self._most)
            self._threads += start
        if start:
            threading.Thread(target=self._run, name="lookup", daemon=True).start()
        return await lookup.result

    def _run(self) -> None:
        while True:
            try:
                lookup = self._waiting.get(timeout=self._idle)
            except queue.Empty:
                with self._lock:
                    if not self._waiting.empty():
                        continue
                    self._threads -= 1
                    return
            try:
                lookup.run()
            finally:
                with self._lock:
                    self._unfinished -= 1


class _Lookup:
    """A name to resolve for an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, host: str, port: int) -> None:
        self._loop = loop
        self._host = host
        self._port = port
        self.result: asyncio.Future[Entries] = loop.create_future()

    def run(self) -> None:
        """Resolve the name, unless nothing waits for it any more."""
        if self.result.cancelled() or self._loop.is_closed():
            return
        try:
            entries: Entries = list(
                socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError) as error:
            self._settle(None, error)
        else:
            self._settle(entries, None)

    def _settle(self, entries: Entries | None, error: Exception | None) -> None:
        def settle() -> None:
            if self.result.done():
                return
            if error is not None:
                self.result.set_exception(error)
            else:
                self.result.set_result(entries or [])

        try:
            self._loop.call_soon_threadsafe(settle)
        except RuntimeError:
            return  # the loop has ended


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
