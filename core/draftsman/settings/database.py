"""Connections to the database, and the embedded server."""

from __future__ import annotations

from pydantic import Field

from draftsman.settings.section import Section


class DatabaseSettings(Section):
    """Connections to the database."""

    pool_size: int = Field(5, ge=1, le=100)
    """Maximum connections of a process, without the connection for LISTEN."""
    connect_timeout: float = Field(10, gt=0, le=300)
    """Seconds to wait for a connection before a command gives up."""
    statement_timeout: float = Field(60, gt=0, le=3600)
    """Seconds after which the server ends a statement. A connection without a reply by then is
    replaced."""


class EmbeddedSettings(Section):
    """The embedded server."""

    idle_timeout: float = Field(600, ge=0, le=86_400 * 7)
    """Seconds after its last connection until the embedded server stops; 0 keeps it up."""
