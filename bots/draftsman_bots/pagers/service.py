"""The process part that receives the webhooks of pagers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from draftsman.processes.lifecycle import StopSignal
from draftsman.settings.attention import webhook_pagers
from draftsman_bots.pagers.webhooks import PagerReceiver
from draftsman_bots.process.credentials import read_credential
from draftsman_bots.process.http import Server, serve, serve_health
from draftsman_bots.process.webhook_health import WebhookHealth

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


class PagerService:
    """Webhook servers of the configured pagers; if a part fails, all stop."""

    def __init__(self, rt: Runtime) -> None:
        self.stop = StopSignal()
        self.health = WebhookHealth(
            "pager",
            "kind",
            "Webhooks about alerts of questions, by pager and kind; repetitions count.",
        )
        self.ports: dict[str, int] = {}
        """Port of the webhook server of each pager, once it listens."""
        self.health_port: int | None = None
        """Port of the server of the health endpoints; None without `health_listen`."""
        self._rt = rt
        self._servers: list[Server] = []
        self._secrets = {
            name: read_credential(f"pagers.{name}", "webhook_secret", pager.webhook_secret, "")
            for name, pager in webhook_pagers(rt.settings.pagers).items()
        }

    async def run(self) -> None:
        """Run until `end`; raises ConfigError if an address cannot be used."""
        parts = [asyncio.create_task(part) for part in self.servers_to_run()]
        for part in parts:
            part.add_done_callback(lambda _: self.end())
        results = await asyncio.gather(*parts, return_exceptions=True)
        if errors := [result for result in results if isinstance(result, BaseException)]:
            raise errors[0]

    def end(self) -> None:
        """Finish the requests in progress and stop."""
        self.stop.set()
        for server in self._servers:
            server.end()

    def servers_to_run(self) -> list[Coroutine[Any, Any, None]]:
        """Return a server for each address, with the pagers that share it."""
        by_address: dict[tuple[str, int], list[str]] = defaultdict(list)
        for name, pager in webhook_pagers(self._rt.settings.pagers).items():
            if pager.address is not None:
                by_address[pager.address].append(name)
        parts = []
        for address, names in by_address.items():
            secrets = {name: self._secrets[name] for name in names}
            app = PagerReceiver(self._rt, self.health, secrets).application()
            server, serving, port = serve(app, address, f"pagers.{names[0]}")
            self._servers.append(server)
            self.ports |= dict.fromkeys(names, port)
            parts.append(serving)
        return [*parts, *self._health_servers()]

    def _health_servers(self) -> list[Coroutine[Any, Any, None]]:
        """Return a server of the health endpoints for each `health_listen`."""
        pagers = webhook_pagers(self._rt.settings.pagers).items()
        addresses = {f"pagers.{name}": pager.health_address for name, pager in pagers}
        parts = []
        for server, serving, port in serve_health(self.health, addresses):
            self.health_port = port
            self._servers.append(server)
            parts.append(serving)
        return parts
