"""The people of a soak."""

from __future__ import annotations

from draftsman.domain.actor import Actor
from draftsman.domain.job import Source


def person(name: str) -> Actor:
    """Return somebody as the command line knows them; the configuration has their roles."""
    return Actor(Source.CLI, name, name)
