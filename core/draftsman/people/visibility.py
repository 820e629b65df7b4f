"""Who may see what belongs to a repository. Pure.

Lists, their counts, pages and the recipients of messages ask here and nowhere else.
"""

from __future__ import annotations

from draftsman.people.actor import Actor
from draftsman.people.policy import Person


def may_see(viewer: Actor | Person | None, repo: str | None) -> bool:
    """Return whether a viewer may see what belongs to a repository, `owner/name` or `name`.

    `viewer` None: a session of the database, whose role decides what it reads; `repo` None: it
    belongs to no repository. Everybody who can sign in sees all repositories.
    """
    del viewer, repo
    return True
