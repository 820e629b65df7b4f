"""The process that serves the web inbox."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from draftsman.database import migrate
from draftsman.errors import ConfigError
from draftsman.people.service.web_sessions import WebSessions
from draftsman.processes.hardening import deny_inspection
from draftsman.processes.lifecycle import StopSignal
from draftsman.processes.shutdown import shutdown_signals
from draftsman.runtime import open_runtime
from draftsman_bots.process.credentials import read_credential
from draftsman_bots.process.http import Server, bind
from draftsman_bots.web.access import Access
from draftsman_bots.web.app import application
from draftsman_bots.web.context import WebContext
from draftsman_bots.web.oidc_pages import CALLBACK

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings
    from draftsman.settings.dashboard import WebSettings
    from draftsman_bots.web.oidc import OidcProvider

_log = logging.getLogger(__name__)


class WebService:
    """The HTTP server of the inbox."""

    def __init__(self, rt: Runtime) -> None:
        settings = rt.settings.web
        if settings.proxy_header is not None and not settings.trusted_proxies:
            raise ConfigError("[web] proxy_header needs trusted_proxies: the address of the proxy")
        if settings.url is None and not settings.is_local:
            raise ConfigError(
                f"[web] listen {settings.listen} needs url: the https URL of the inbox in browsers"
            )
        if settings.proxy_secret is not None and settings.proxy_header is None:
            raise ConfigError("[web] proxy_secret needs proxy_header: the header with the account")
        proxy_secret = _proxy_secret(settings)
        self.stop = StopSignal()
        self._listener = bind(settings.address, "web")
        self.port: int = self._listener.getsockname()[1]
        if settings.url is None:
            host = settings.listen.rpartition(":")[0]
            settings = settings.model_copy(update={"url": f"http://{host}:{self.port}"})
        self.url = settings.origin
        sessions = WebSessions(rt.db, rt.policy)
        access = Access(settings, sessions, proxy_secret)
        provider = _provider(settings)
        self.context = WebContext(rt, settings, sessions, access, provider, stop=self.stop)
        self._server = Server(application(self.context))

    async def run(self) -> None:
        """Serve until `end`."""
        _log.info("serving the web inbox on %s, port %s", self.url, self.port)
        await self._server.serve([self._listener])

    def end(self) -> None:
        """Finish the requests in progress and stop."""
        self.stop.set()
        self._server.end()


def _proxy_secret(settings: WebSettings) -> str | None:
    """Return the secret of the proxy, if it has any; raises ConfigError for a missing one."""
    if settings.proxy_secret is None:
        return None
    return read_credential("web", "proxy_secret", settings.proxy_secret, "")


def _provider(settings: WebSettings) -> OidcProvider | None:
    """Return the configured provider; raises ConfigError for a missing secret."""
    if (oidc := settings.oidc) is None:
        return None
    secret = None
    if oidc.client_secret is not None:
        secret = read_credential("web.oidc", "client_secret", oidc.client_secret, "")
    from draftsman_bots.web.oidc import OidcProvider

    return OidcProvider(oidc, secret, f"{settings.origin}{CALLBACK}")


async def run_web(
    settings: Settings, started: Callable[[str], None], *, parent: int | None = None
) -> int:
    """Serve the inbox until a signal arrives; return the exit code.

    `started` gets the URL. The end of the process `parent` counts as a signal. Raises ConfigError,
    DatabaseUnreachable, SchemaOutdated.
    """
    deny_inspection()
    async with shutdown_signals(parent) as signals, open_runtime(settings) as rt:
        if unknown_migrations := await migrate.check_compatible(rt.db.session_url):
            _log.warning(
                "the database has %s, which this version does not know; continuing",
                unknown_migrations,
            )
        service = WebService(rt)

        def shut_down(reason: str) -> None:
            if service.stop:
                _log.warning("%s again: exiting now", reason)
                os._exit(1)
            _log.info("%s: stopping", reason)
            service.end()

        with signals.handled_by(shut_down):
            started(service.url)
            await service.run()
    _log.info("web inbox stopped")
    return 0
