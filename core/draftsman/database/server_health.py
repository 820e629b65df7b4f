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
    local: bool
    role: str
    kind: str
    """Rights of the session: owner, worker, bot, person, reader or none."""
