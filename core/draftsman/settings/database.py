"""Connections to the database, and the embedded server."""

from __future__ import annotations

from pydantic import Field

from draftsman.settings.section import Section


class DatabaseSettings(Section):
    """Database connections."""

    pool_size: int = Field(5, ge=1, le=100)
    """Maximum connections of a process, besides its dedicated sessions."""
    connect_timeout: float = Field(10, gt=0, le=300)
    """Seconds to wait for a connection."""
    statement_timeout: float = Field(60, gt=0, le=3600)
    """Seconds after which the server cancels a statement."""


class EmbeddedSettings(Section):
    """The embedded server."""

    idle_timeout: float = Field(600, ge=0, le=86_400 * 7)
    """Seconds from its last connection to its stop; 0: it does not stop."""
