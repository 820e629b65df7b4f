"""Processes that stop at points: forked by the zygote, then continued or killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kill.probe import GO_ON, LOSE_REPLY


@dataclass(frozen=True, slots=True)
class Reached:
    """Points that a process came to at once; it `stop`s there, or went on. Its own backends."""

    points: list[str]
    stop: bool
    backends: list[int]


class Process:
    """A forked process."""

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self._channel = channel
        self._rest = b""

    async def reached(self) -> Reached | None:
        """Return the next point that it reaches; None when it has ended."""
        loop = asyncio.get_running_loop()
        while b"\n" not in self._rest:
            with suppress(ConnectionResetError):
                if piece := await loop.sock_recv(self._channel, 1 << 16):
                    self._rest += piece
                    continue
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return Reached(**json.loads(line))

    def go_on(self, *, lose_reply: bool = False) -> None:
        """Continue it."""
        self._channel.sendall(LOSE_REPLY if lose_reply else GO_ON)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it still runs."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    async def kill(self) -> None:
        """SIGKILL it; return once it has ended."""
        self.signal(signal.SIGKILL)
        while await self.reached() is not None:
            pass
        self.close()

    def close(self) -> None:
        self._channel.close()


class Zygote:
    """The process that forks the others."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "processes.log"
        self._orders, child_end = socket.socketpair()
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", "tests.kill.zygote", str(child_end.fileno())]
        with self.log.open("wb") as file:
            self._popen = subprocess.Popen(
                command, env=env, pass_fds=[child_end.fileno()], stdout=file, stderr=file
            )
        child_end.close()

    async def fork(
        self, role: str, settings: dict[str, Any], pending: Iterable[str], **jobs: int
    ) -> Process:
        """Start a worker, or a client's script; it stops at the pending points."""
        parent_end, child_end = socket.socketpair()
        order = {"role": role, "settings": settings, "pending": sorted(pending), "jobs": jobs}
        order["log"] = str(self.log)
        socket.send_fds(self._orders, [json.dumps(order).encode()], [child_end.fileno()])
        child_end.close()
        parent_end.setblocking(False)
        pid = int.from_bytes(await asyncio.to_thread(self._orders.recv, 4), "big")
        assert pid, f"the zygote is gone: {self.log.read_text()[-2000:]}"
        return Process(pid, parent_end)

    def end(self) -> None:
        self._orders.close()
        self._popen.wait(10)


@asynccontextmanager
async def zygote(folder: Path) -> AsyncIterator[Zygote]:
    """Start a zygote for the length of the block."""
    started = Zygote(folder)
    try:
        yield started
    finally:
        started.end()
