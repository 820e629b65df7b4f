"""Python client: submits jobs, follows them and answers their questions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from draftsman import settings as configuration
from draftsman.client.asynchronous import Client
from draftsman.client.blocking import BlockingClient
from draftsman.errors import UsageError
from draftsman.jobs.job import Source
from draftsman.runtime import open_runtime


class Draftsman:
    """A connection to a draftsman database, for `async with` or a blocking `with`.

    `url` is the URL of the database; by default the configured or else the embedded database.
    `config` is the path of a configuration file. An object can be reused after it was closed.
    """

    def __init__(self, url: str | None = None, *, config: Path | str | None = None) -> None:
        self._url = url
        self._config = Path(config) if config is not None else None
        self._open: AbstractAsyncContextManager[Client] | BlockingClient | None = None

    async def __aenter__(self) -> Client:
        self._refuse_second_entry()
        connection = self._connect()
        client = await connection.__aenter__()
        self._open = connection
        return client

    async def __aexit__(self, *error: object) -> None:
        connection = self._open
        self._open = None
        if isinstance(connection, AbstractAsyncContextManager):
            await connection.__aexit__(None, None, None)

    def __enter__(self) -> BlockingClient:
        self._refuse_second_entry()
        client = BlockingClient(self._connect())
        self._open = client
        return client

    def __exit__(self, *error: object) -> None:
        client = self._open
        self._open = None
        if isinstance(client, BlockingClient):
            client.close()

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Client]:
        settings = configuration.load(self._config, database_url=self._url)
        async with open_runtime(settings) as runtime:
            yield Client(runtime.seen_by(await runtime.actor(Source.API)))

    def _refuse_second_entry(self) -> None:
        if self._open is not None:
            raise UsageError("this Draftsman is already open; create another instance")
