"""The people of a soak."""

from __future__ import annotations

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor


def actor_for(name: str) -> Actor:
    """Return somebody as the command line knows them; the configuration has their roles."""
    return Actor(Source.CLI, name, name)
