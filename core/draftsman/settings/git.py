"""Commits and branches of published work."""

from __future__ import annotations

import re
from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field

from draftsman import text_template
from draftsman.field_errors import matching
from draftsman.settings.section import Section, UserPath

REQUESTER: Final = "requester"
"""The author that is the person who requested the job."""
DRAFTSMAN: Final = "draftsman <draftsman@localhost>"
BRANCH: Final = "draftsman/{job}"
MESSAGE: Final = "{title}\n\n{summary}\n\nMade by draftsman, {job}."
BRANCH_FIELDS: Final = ("job", "number", "ticket", "slug", "requester", "agent")
MESSAGE_FIELDS: Final = (*BRANCH_FIELDS, "title", "summary")
UNIQUE: Final = ("{job}", "{number}")
"""Fields of which a branch has one, so that no two jobs have the same branch."""
_IDENTITY: Final = r"[^<>\s][^<>\n\0]{0,199} <[^<>\s@]+@[^<>\s@]+>"
_NAMES: Final = "must be written as Name <name@example.org>"
_REFUSED: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)")
"""What no branch may have, as in git check-ref-format; `@` alone and a first `-` besides."""


def is_branch_name(name: str) -> bool:
    """Return whether git accepts the name of a branch."""
    ends = name.startswith(("-", "/", ".")) or name.endswith(("/", "."))
    return bool(name) and name != "@" and not ends and _REFUSED.search(name) is None


def _branch(template: str) -> str:
    text_template.check(template, BRANCH_FIELDS, name="branch", default=BRANCH)
    if not any(field in template for field in UNIQUE):
        raise ValueError(
            f"must have {' or '.join(UNIQUE)}, so that each job has a branch of its own"
        )
    if not is_branch_name(text_template.fill(template, dict.fromkeys(BRANCH_FIELDS, "x"))):
        raise ValueError(f"is not a name that git accepts for a branch; an example: {BRANCH}")
    return template


def _message(template: str) -> str:
    return text_template.check(template, MESSAGE_FIELDS, name="message", default="the default text")


Identity = Annotated[str, matching(_IDENTITY, _NAMES)]
"""Name and address of a person or program, as git writes them."""
Author = Annotated[str, matching(rf"{REQUESTER}|{_IDENTITY}", f'{_NAMES}, or be "{REQUESTER}"')]


class CommitSettings(Section):
    """What a repository's profile may override of `[git]`."""

    author: Author = DRAFTSMAN
    """Author of the commits. "requester": the person who requested the job, by the table people;
    the committer where that has no such person."""
    committer: Identity | None = Field(None, examples=["draftsman <draftsman@acme.example>"])
    """Committer of the commits. Unset: the author, or draftsman if that is the requester."""
    sign_off: bool = False
    """Whether each commit has the line Signed-off-by of its author (DCO)."""
    branch: Annotated[str, AfterValidator(_branch)] = BRANCH
    """Name of the branch of a job's work. Fields: {job}, {number}, {ticket}, {slug}, {requester}
    and {agent}; {job} or {number} must be there."""
    message: Annotated[str, AfterValidator(_message)] = MESSAGE
    """Message of the commits. Fields: those of branch, {title} and {summary}. A line whose fields
    are all empty is left out."""

    @property
    def committed_by(self) -> str:
        """The committer."""
        return self.committer or (DRAFTSMAN if self.author == REQUESTER else self.author)


class GitSettings(CommitSettings):
    """Commits and branches of published work (docs/commits.md).

    The profile of a repository may override author, committer, sign_off, branch and message.
    """

    signing_key: UserPath | None = Field(None, examples=["/etc/draftsman/signing_key"])
    """Key of the worker that signs the commits: the file of a private SSH key, or of the public key
    of one in its SSH agent; or the home folder of GnuPG with a key for the committer's address.
    Unset: they are not signed."""
    people: dict[str, Identity] = Field({}, examples=[{"anna": "Anna Lind <anna@acme.example>"}])
    """Name and address of people, by their names in [people], for the author "requester"."""

    def override(self, other: CommitSettings | None) -> Self:
        """Return the settings with the keys that a profile sets."""
        return self if other is None else self.model_copy(update=other.given)
