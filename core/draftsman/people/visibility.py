"""Who may see what belongs to a repository. Pure.

Nothing else decides it: `Runtime.seen_by` gives the services of a viewer, whose queries read only
the rows of these repositories, and the recipients of messages are asked about one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class Viewer(Protocol):
    """A person, or the actor or account that reads."""

    @property
    def voter(self) -> str:
        """The name of the person, or the account of an unknown one."""
        ...

    @property
    def roles(self) -> frozenset[str]:
        """The roles of the person."""
        ...


def visible_repos(viewer: Viewer | None) -> Sequence[str] | None:
    """Return the repositories that a viewer may see, `owner/name` or `name` in lower case.

    None: all. `viewer` None: draftsman itself, such as a worker. Everybody who can sign in sees all
    repositories.
    """
    del viewer
    return None


def may_see(viewer: Viewer | None, repo: str | None) -> bool:
    """Return whether a viewer may see what belongs to a repository.

    `repo` is its name, with or without the host; None: it belongs to no repository.
    """
    repos = visible_repos(viewer)
    if repos is None or not repo:
        return True
    name = f"/{repo.lower()}"
    return any(name.endswith(f"/{visible}") for visible in repos)


def restricted(people: Iterable[Viewer]) -> dict[str, list[str]]:
    """Return the visible repositories, by name, of the people who may not see all."""
    repos = {person.voter: visible_repos(person) for person in people}
    return {name: list(visible) for name, visible in repos.items() if visible is not None}
