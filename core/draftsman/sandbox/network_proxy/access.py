"""A program's access to named hosts: the proxy's port in its sandbox, and its variables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from draftsman.errors import Failure
from draftsman.jobs.retries import RetryPolicy
from draftsman.sandbox.network_proxy.connector import HostConnector
from draftsman.sandbox.network_proxy.proxy_server import NetworkProxy
from draftsman.sandbox.sandbox_plan import RunSandbox
from draftsman.sandbox.sandbox_port import SandboxPort
from draftsman.settings.http import HttpSettings

PROXY_PORT: Final = 8788
"""Port of the proxy in a sandbox; the same for every run and host."""
_VARIABLES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass(frozen=True, slots=True)
class ProxyAccess:
    """The proxy of a program."""

    port: SandboxPort

    def environment(self) -> dict[str, str]:
        """Return the variables that programs read, in both spellings."""
        url = self.port.url
        local = "localhost,127.0.0.1,::1"
        variables = dict.fromkeys(_VARIABLES, url) | {"NO_PROXY": local}
        lower = {name.lower(): value for name, value in variables.items()}
        return variables | lower | {"NODE_USE_ENV_PROXY": "1"}


@asynccontextmanager
async def open_network_proxy(
    *,
    http: HttpSettings,
    network: bool | tuple[str, ...],
    sandbox: RunSandbox | None,
    limits: RetryPolicy,
    setting: str,
    log: Callable[[str], None],
) -> AsyncIterator[ProxyAccess | None]:
    """Serve the proxy of a program for the block; yield None without named hosts.

    `setting` is the key that lists the hosts; `log` gets lines about refused and used hosts.
    Raises Failure `no_sandbox` in a mode that cannot limit the network.
    """
    if isinstance(network, bool) or sandbox is None:
        yield None
        return
    sandbox.sandbox.check_network(network)

    def report(line: str) -> None:
        log(f"[network] {line}")

    connector = HostConnector(network, http, limits.connect_timeout, setting)
    idle = limits.call_timeout if limits.idle_timeout is None else limits.idle_timeout
    proxy = NetworkProxy(connector, idle, report)
    access = ProxyAccess(SandboxPort("network proxy", PROXY_PORT))
    server = asyncio.create_task(_serve(access.port, proxy, report))
    try:
        yield access
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)
        access.port.close()
        proxy.report_use()


async def _serve(port: SandboxPort, proxy: NetworkProxy, report: Callable[[str], None]) -> None:
    try:
        listener = await port.listener()
    except Failure as error:
        report(str(error))
        return
    async with proxy.serve(listener):
        await asyncio.Event().wait()
