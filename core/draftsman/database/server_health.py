"""Settings of the database server, and the rights of a session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """The server's settings; `clock` is its Unix time in seconds."""

    version: str
    clock: float
    fsync: str
    synchronous_commit: str
    autovacuum: bool
    """Whether it runs: it needs the statistics of `track_counts`, too."""
    naptime: float
    """Seconds between two starts of autovacuum in a database."""
    local: bool
    role: str
    kind: str
    """Rights of the session: owner, worker, bot, person, reader or none."""


@dataclass(frozen=True, slots=True)
class OldestSnapshot:
    """The oldest transaction of another session, as far as this session may see it."""

    holder: str
    """The application or the user of its session, or the name of a prepared transaction."""
    end: str
    """The SQL that ends it."""
    seconds: float
