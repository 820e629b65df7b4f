"""Lookups of names in threads of their own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from draftsman.errors import Failure
from draftsman.outbound import dns
from draftsman.outbound.dns import LookupThreads
from draftsman_testing.waits import until

ENTRY = (0, 0, 0, "", ("192.0.2.1", 443))


class NameServer:
    """Holds lookups of names that begin with `slow` until `released` is set."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.asked = list[str]()

    def getaddrinfo(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked.append(host)
        if host.startswith("slow"):
            self.released.wait(30)
        if host == "bad":
            raise UnicodeError
        return [ENTRY]

    async def is_asked(self, count: int) -> bool:
        return len(self.asked) == count


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server.getaddrinfo)
    yield server
    server.released.set()


async def test_slow_lookups_take_bounded_threads_and_none_of_other_work(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = LookupThreads(most=2, idle=0.05)
    before = {thread for thread in threading.enumerate() if thread.name == "lookup"}
    slow = [asyncio.create_task(threads.lookup(f"slow{n}", 443)) for n in range(2)]
    await until(lambda: server.is_asked(2), "two lookups")
    late = [asyncio.create_task(threads.lookup(name, 443)) for name in ("dropped", "late")]
    await asyncio.to_thread(int)
    assert len(server.asked) == 2
    late[0].cancel()
    server.released.set()
    assert await asyncio.gather(*slow, late[1]) == [[ENTRY]] * 3
    assert "dropped" not in server.asked
    with pytest.raises(UnicodeError):
        await threads.lookup("bad", 443)

    async def ended() -> bool:
        own = {thread for thread in threading.enumerate() if thread.name == "lookup"} - before
        return not own

    await until(ended, "the end of idle threads")
    assert await threads.lookup("again", 443) == [ENTRY]


async def test_a_lookup_does_not_wait_for_a_thread_that_has_just_taken_another(
    server: NameServer,
) -> None:
    threads = LookupThreads(most=2, idle=5)
    taken = threading.Event()
    resumed = threading.Event()
    waiting = threads._waiting

    class Slow:
        """Holds a thread between the taking of a lookup and what follows."""

        def __getattr__(self, name: str) -> Any:
            return getattr(waiting, name)

        def get(self, timeout: float) -> Any:
            lookup = waiting.get(timeout=timeout)
            if lookup._host == "slow":
                taken.set()
                resumed.wait(30)
            return lookup

    threads._waiting = Slow()  # type: ignore[assignment]
    assert await threads.lookup("first", 443) == [ENTRY]
    slow = asyncio.create_task(threads.lookup("slow", 443))
    await asyncio.to_thread(taken.wait, 30)
    assert await asyncio.wait_for(threads.lookup("second", 443), 10) == [ENTRY]
    resumed.set()
    server.released.set()
    assert await slow == [ENTRY]


async def test_a_name_server_without_a_reply_is_a_failure_that_is_retried(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dns, "_THREADS", LookupThreads(most=1, idle=0.05))
    monkeypatch.setattr(dns, "LOOKUP_TIMEOUT", 0.05)
    with pytest.raises(Failure, match=r"slow: no reply of the name servers for 0\.05 s") as raised:
        await dns.resolve("slow", 443)
    assert raised.value.code == "EAI_AGAIN"
