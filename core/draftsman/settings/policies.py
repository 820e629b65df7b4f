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
    """allow, ask or deny."""


class PolicySettings(Section):
    """Policy of repositories (docs/policies.md).

    It decides which changes of an agent are published, wait for an approval or are refused. The
    profile of a repository may override each key by its own `policy`.
    """

    paths: Annotated[tuple[PathRule, ...], Field(max_length=1000)] = Field(
        (),
        examples=[
            [{"path": "infra/", "effect": "deny"}, {"path": "infra/README.md", "effect": "allow"}]
        ],
    )
    """Rules of paths. The last rule that matches a file decides, instead of the class of the
    file."""
    deny_files_over: _Count | None = Field(None, examples=[200])
    """Work with more changed files than this is refused. Unset: unlimited."""
    deny_lines_over: _Count | None = Field(None, examples=[20000])
    """Work with more added and deleted lines than this is refused. Unset: unlimited."""
    secrets: Effect = "deny"
    """Added lines with a key or token of a known format: allow, ask or deny, as all keys below."""
    possible_secrets: Effect = "allow"
    """Added lines with a password in a URL, or with a JSON Web Token."""
    secrets_allowed_in: _Patterns = ()
    """Paths in which neither is looked for, such as test data."""
    ci: Effect = "ask"
    """Configuration of CI."""
    agent_config: Effect = "ask"
    """Configuration and instructions of coding agents."""
    developer_machine: Effect = "ask"
    """What runs on the machines of developers: hooks of git, tasks of editors, containers, scripts
    of installations."""
    licenses: Effect = "ask"
    """Licenses and notices."""
    migrations: Effect = "allow"
    """Migrations of a database."""
    lock_files: Effect = "allow"
    """Lock files of package managers."""
    large_files: Effect = "ask"
    """Files to which the work adds more than large_file_kb."""
    large_file_kb: _Count = 1000
    """Kilobytes that may be added to a file before it is large."""
    binary_files: Effect = "allow"
    """Added and changed binary files."""
    lfs_files: Effect = "ask"
    """Files of Git LFS that the work adds or changes as ordinary files, because the profile of the
    repository does not want LFS."""
    update_base: Literal["never", "merge"] = "never"
    """merge: a base branch that has moved is merged into the work before it is validated. never: it
    is not."""
    max_follow_ups: Annotated[int, Field(ge=1, le=1000)] = 5
    """Follow-ups on a pull request before people are asked whether they go on
    (docs/follow-ups.md)."""
    owners: Literal["approvers", "codeowners"] = "approvers"
    """People who may approve a change of a file: approvers (all of them), or codeowners, the owners
    of the file by CODEOWNERS of the base commit."""

    def override(self, other: PolicySettings | None) -> Self:
        """Return the policy with the keys that another sets; its rules of paths come last."""
        if other is None:
            return self
        return self.model_copy(update=other.given | {"paths": (*self.paths, *other.paths)})
