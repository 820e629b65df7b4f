"""Policies of repositories: which changes an agent may make, and which need an approval."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field

from draftsman.field_errors import matching
from draftsman.settings.section import Section

Effect = Literal["allow", "ask", "deny"]


def _pattern(path: str) -> str:
    """Return the pattern; one that matches no path of a repository raises ValueError."""
    if path.startswith(("/", "./", "../")):
        raise ValueError("must begin at the top folder of the repository, such as src/ or *.sql")
    return path


_Pattern = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_pattern)]
_Patterns = Annotated[tuple[_Pattern, ...], Field(max_length=1000)]
CodeOwner = Annotated[
    str,
    matching(
        r"@[\w.-]+(/[\w.-]+)*|[^@\s]+@[^@\s]+",
        "must be @login, @organization/team or an e-mail address",
    ),
]
_Count = Annotated[int, Field(ge=1, le=100_000_000)]


class PathRule(Section):
    """A rule of changes of some paths."""

    path: _Pattern
    """A folder, a file, or a pattern such as `*.sql`, from the top folder of the repository."""
    effect: Effect


class PolicySettings(Section):
    """A policy: limits, rules of paths, and classes of changes."""

    paths: Annotated[tuple[PathRule, ...], Field(max_length=1000)] = ()
    """Rules of paths; the last rule that matches a file decides, instead of its class."""
    deny_files_over: _Count | None = None
    """Changed files of work that is refused if it changes more; None: unlimited."""
    deny_lines_over: _Count | None = None
    """Added and deleted lines of work that is refused if it has more; None: unlimited."""
    secrets: Effect = "deny"
    """Added lines with a key or a token of a known format."""
    possible_secrets: Effect = "allow"
    """Added lines with a password in a URL, or a JSON Web Token."""
    secrets_allowed_in: _Patterns = ()
    """Paths in which neither is looked for, such as test data."""
    ci: Effect = "ask"
    """Configuration of CI, and of hooks of git."""
    licenses: Effect = "ask"
    """Licenses and notices."""
    migrations: Effect = "allow"
    """Migrations of a database."""
    lock_files: Effect = "allow"
    """Lock files of package managers."""
    large_files: Effect = "ask"
    """Files to which the work adds more than `large_file_kb`."""
    large_file_kb: _Count = 1000
    """Kilobytes that the work may add to a file before it is large."""
    binary_files: Effect = "allow"
    """Added and changed binary files."""
    update_base: Literal["never", "merge"] = "never"
    """Whether a base branch that has moved is merged into the work before it is validated."""
    max_follow_ups: Annotated[int, Field(ge=1, le=1000)] = 5
    """Follow-ups on a pull request before people are asked whether they go on."""
    owners: Literal["approvers", "codeowners"] = "approvers"
    """People who may approve a change: all approvers, or the code owners of its paths."""

    def override(self, other: PolicySettings | None) -> Self:
        """Return the policy with the keys that another sets; its rules of paths come last."""
        if other is None:
            return self
        changed = {name: getattr(other, name) for name in other.model_fields_set}
        return self.model_copy(update=changed | {"paths": (*self.paths, *other.paths)})
