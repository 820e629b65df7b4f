"""Actors of the simulated users."""

from __future__ import annotations

from draftsman.jobs.job import Source
from draftsman.people.actor import Actor


def actor_for(name: str) -> Actor:
    """Return the actor of a person on the command line; the configuration has the roles."""
    return Actor(Source.CLI, name, name)
