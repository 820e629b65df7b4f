"""The URL of the configured or embedded database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.database import migrate

if TYPE_CHECKING:
    from draftsman.database.embedded import EmbeddedServer
    from draftsman.settings import Settings


async def database_url(settings: Settings, *, migrations: bool = True) -> tuple[str, bool]:
    """Return the database's URL and whether it is embedded; start the embedded server.

    The embedded database is migrated automatically, a server never.
    """
    if settings.database_url is not None:
        return settings.database_url.get_secret_value(), False
    url = await embedded_server(settings).start()
    if migrations:
        await migrate.migrate(url)
    return url, True


def session_url(settings: Settings, url: str) -> str:
    """Return the URL of the server itself, if `url` is that of a transaction pooler."""
    if settings.database_url is None or settings.listen_url is None:
        return url
    return settings.listen_url.get_secret_value()


def embedded_server(settings: Settings) -> EmbeddedServer:
    """Return the embedded server of the configuration."""
    from draftsman.database.embedded import EmbeddedServer  # no command on a server needs it

    return EmbeddedServer(settings.data_dir, settings.embedded.idle_timeout)
