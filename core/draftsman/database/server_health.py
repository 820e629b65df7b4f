"""Settings of the database server, and the rights of a session."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql


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

    session: str | None
    """The application or the user of its session, if this session may see it."""
    pid: int | None
    """The process of its session."""
    prepared: str | None
    """The name of a prepared transaction, which has no session."""
    seconds: float

    @property
    def holder(self) -> str:
        """The session or the prepared transaction that keeps it open."""
        if self.prepared is not None:
            return f"the prepared transaction {self.prepared}"
        return self.session or "another session"

    @property
    def end(self) -> str:
        """The SQL that ends it."""
        if self.prepared is not None:
            return sql.SQL("ROLLBACK PREPARED {}").format(self.prepared).as_string(None)
        return f"SELECT pg_terminate_backend({self.pid})"
