"""The catalog of repositories, kept by a process for all of its requests."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from draftsman.database.database import Connection, Database
from draftsman.repos import store
from draftsman.repos.repo_catalog import Catalog

CATALOG_AGE: Final = 1.0
"""Seconds after which a process asks whether the catalog has changed."""
MAX_REPOS: Final = 5000
"""Maximum number of repositories, labels and folders read."""


class CurrentCatalog:
    """The catalog as this process last read it.

    The database counts its changes, so that a catalog of any size costs one small read a second.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._catalog: Catalog | None = None
        self._version: int | None = None
        self._checked_at = 0.0
        self._changed_at = 0.0
        self._reading = asyncio.Lock()

    async def get(self, *, age: float = CATALOG_AGE) -> Catalog:
        """Return the catalog as it was at most `age` seconds ago, with each change that ended here.

        With 0 it is read again if it has changed: before a request is refused for what it lacks.
        """
        oldest = time.monotonic() - age
        if (catalog := self._known_since(oldest)) is not None:
            return catalog
        async with self._reading:
            if (catalog := self._known_since(oldest)) is not None:
                return catalog
            started = time.monotonic()
            async with self._db.connection() as conn:
                catalog = await self._read(conn)
            self._checked_at = started
            return catalog

    def changed(self) -> None:
        """Note that this process has changed the catalog."""
        self._changed_at = time.monotonic()

    def _known_since(self, oldest: float) -> Catalog | None:
        return self._catalog if self._checked_at > max(oldest, self._changed_at) else None

    async def _read(self, conn: Connection) -> Catalog:
        """Read the catalog unless it is that of the last version.

        The version is read first: a change in between is read again, not missed.
        """
        version = await store.catalog_version(conn)
        if self._catalog is None or version != self._version:
            self._catalog = Catalog(
                await store.all_repos(conn, MAX_REPOS),
                await store.mappings(conn, MAX_REPOS),
                await store.profiled_folders(conn, MAX_REPOS),
            )
            self._version = version
        return self._catalog
