"""An agent's access to the gateway: a port inside its sandbox, or of this host."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final, Self

from draftsman.errors import Failure
from draftsman.handlers.gateway.api_formats import PREFIX, Provider
from draftsman.handlers.gateway.listener import BACKLOG, HOST

SANDBOX_PORT: Final = 8787
"""Port of the gateway in a sandbox with a network of its own; the same for every run and host."""
OPEN_TIMEOUT: Final = 60.0
"""Seconds for a sandbox to open its port; a machine under load is slow."""


class GatewayAccess:
    """The port of the gateway for a run. `close` it at the end.

    In a sandbox with a network of its own, the first process in it opens the port and sends it
    through `descriptor`; in other modes the port is open on this host from the beginning, for
    every program of it, so that only the token of the run protects it.
    """

    def __init__(self, provider: Provider, token: str, *, private_network: bool) -> None:
        self._provider, self._token = provider, token
        self.descriptor: int | None = None
        """Descriptor that the sandboxed process inherits; None: the port is open already."""
        self._worker_end: socket.socket | None = None
        self._sandbox_end: socket.socket | None = None
        self._listener: socket.socket | None = None
        if private_network:
            self.port = SANDBOX_PORT
            self._worker_end, self._sandbox_end = socket.socketpair()
            self._worker_end.setblocking(False)
            self.descriptor = self._sandbox_end.fileno()
        else:
            self._listener = socket.create_server((HOST, 0), backlog=BACKLOG)
            self.port = self._listener.getsockname()[1]

    def environment(self) -> dict[str, str]:
        """Return the variables that the provider's clients read."""
        if self._provider == "anthropic":
            return {"ANTHROPIC_BASE_URL": self._url, "ANTHROPIC_API_KEY": self._token}
        return {"OPENAI_BASE_URL": f"{self._url}{PREFIX}", "OPENAI_API_KEY": self._token}

    def replace(self, text: str) -> str:
        """Return the text with `{gateway_url}` and `{gateway_token}` replaced."""
        return text.replace("{gateway_url}", self._url).replace("{gateway_token}", self._token)

    def release_descriptor(self) -> None:
        """Close this process's copy of `descriptor`, once the sandboxed process has its own."""
        if self._sandbox_end is not None:
            self._sandbox_end.close()
            self._sandbox_end = None

    async def listener(self) -> socket.socket:
        """Return the listening socket, which the caller closes; raises Failure `no_gateway`."""
        if self._listener is None:
            self._listener = await self._receive()
        listener, self._listener = self._listener, None
        listener.setblocking(False)
        return listener

    def close(self) -> None:
        """Close the sockets."""
        self.release_descriptor()
        for end in (self._worker_end, self._listener):
            if end is not None:
                end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def _receive(self) -> socket.socket:
        assert self._worker_end is not None  # noqa: S101 - open without a listener
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._worker_end, ready.set)
        try:
            async with asyncio.timeout(OPEN_TIMEOUT):
                await ready.wait()
        except TimeoutError:
            raise _no_gateway(f"the sandbox opened no port for {OPEN_TIMEOUT:g} s") from None
        finally:
            loop.remove_reader(self._worker_end)
        with contextlib.suppress(OSError):
            _, descriptors, _, _ = socket.recv_fds(self._worker_end, 1, 1)
            if descriptors:
                return socket.socket(fileno=descriptors[0])
        raise _no_gateway("the sandbox ended before it opened its port")


def _no_gateway(problem: str) -> Failure:
    text = f"no gateway for the agent: {problem}"
    return Failure(text, origin="handler", code="no_gateway", declared="TRANSIENT_INFRA")
