"""A port inside the sandbox of a run whose connections the worker accepts."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

from draftsman.errors import Failure
from draftsman.sandbox.port_opener import BACKLOG, HOST

OPEN_TIMEOUT: Final = 60.0
"""Seconds for a sandbox to open its port; a machine under load is slow."""


class SandboxPort:
    """A port for the programs of a run. `close` it at the end.

    In a sandbox with a network of its own, the first process in it opens `port` and sends it
    through `descriptor`. Without `private_port` another port is open on this host from the
    beginning, for every program of it.
    """

    def __init__(self, name: str, private_port: int | None) -> None:
        self._name = name
        self.descriptor: int | None = None
        """Descriptor that the sandboxed process inherits; None: the port is open already."""
        self._worker_end: socket.socket | None = None
        self._sandbox_end: socket.socket | None = None
        self._listener: socket.socket | None = None
        if private_port is not None:
            self.port = private_port
            self._worker_end, self._sandbox_end = socket.socketpair()
            self._worker_end.setblocking(False)
            self.descriptor = self._sandbox_end.fileno()
        else:
            self._listener = socket.create_server((HOST, 0), backlog=BACKLOG)
            self.port = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        """The URL of the port inside the sandbox."""
        return f"http://{HOST}:{self.port}"

    def release_descriptor(self) -> None:
        """Close this process's copy of `descriptor`, once the sandboxed process has its own."""
        if self._sandbox_end is not None:
            self._sandbox_end.close()
            self._sandbox_end = None

    async def listener(self) -> socket.socket:
        """Return the listening socket, which the caller closes.

        Raises Failure `no_gateway` or `no_network_proxy`.
        """
        if self._listener is None:
            self._listener = await self._receive()
        listener = self._listener
        self._listener = None
        listener.setblocking(False)
        return listener

    def close(self) -> None:
        """Close the sockets."""
        self.release_descriptor()
        for end in (self._worker_end, self._listener):
            if end is not None:
                end.close()

    async def _receive(self) -> socket.socket:
        assert self._worker_end is not None  # noqa: S101 - open without a listener
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._worker_end, ready.set)
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                await ready.wait()
        except TimeoutError:
            raise self._failure(f"the sandbox opened no port for {OPEN_TIMEOUT:g} s") from None
        finally:
            loop.remove_reader(self._worker_end)
        with contextlib.suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(self._worker_end, 1, 1)
            if descriptors:
                return socket.socket(fileno=descriptors[0])
        raise self._failure("the sandbox ended before it opened its port")

    def _failure(self, problem: str) -> Failure:
        return Failure(
            f"no {self._name} for the program: {problem}",
            origin="handler",
            code=f"no_{self._name.replace(' ', '_')}",
            declared="TRANSIENT_INFRA",
        )
