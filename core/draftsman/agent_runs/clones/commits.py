"""Commits of published work: author, committer, signature and sign-off; and names of branches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from draftsman.agent_runs.clones.git import (
    TIMEOUT,
    config_variables,
    explain_error,
    git,
    git_failure,
    git_result,
)
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.errors import Failure
from draftsman.ids import job_name
from draftsman.settings.git import BRANCH, DRAFTSMAN, REQUESTER, UNIQUE, GitSettings

HEADS: Final = "refs/heads/"
SIGNING_TIMEOUT: Final = 60.0
"""Seconds for a signature: a key with a passphrase would wait for a person."""
_NOISE: Final = re.compile(
    r"(error: )?(@|gpg failed|It is required|This private key will)|fatal: failed to write"
)
"""Lines of git and ssh-keygen that say nothing about the reason."""


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """Author and committer of commits, as `Name <address>`, and the key of the committer."""

    author: str = DRAFTSMAN
    committer: str = DRAFTSMAN
    signing_key: Path | None = None
    """The file of an SSH key, or the home folder of GnuPG; None: no signatures."""

    @classmethod
    def of(cls, settings: GitSettings, requester: str) -> Self:
        """Return the identity for a job that this person requested."""
        author = settings.author
        if author == REQUESTER:
            author = settings.people.get(requester, settings.committed_by)
        return cls(author, settings.committed_by, settings.signing_key)

    async def commit(
        self,
        mirror: Path,
        tree: str,
        parents: Sequence[str],
        message: str,
        date: str,
        *,
        signed: bool = False,
    ) -> str:
        """Write a commit; return its id.

        Raises Failure with origin `git`, and `signing` if the worker cannot sign it.
        """
        signs = signed and self.signing_key is not None
        env = {**self._names(), "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        words = [word for parent in parents for word in ("-p", parent)]
        code, output, errors = await git_result(
            *("commit-tree", tree, *words, "-F", "-", *(("-S",) if signs else ())),
            cwd=mirror,
            env=env | (self.key_variables() if signs else {}),
            stdin=message.replace("\0", " ").encode(errors="replace"),
            timeout=SIGNING_TIMEOUT if signs else TIMEOUT,
        )
        if code != 0:
            text = errors.decode(errors="replace")
            raise self._signing_failure(text) if signs else explain_error("commit-tree", text)
        return output.decode().strip()

    def _names(self) -> dict[str, str]:
        names = dict[str, str]()
        for role, person in (("AUTHOR", self.author), ("COMMITTER", self.committer)):
            name, _, address = person.removesuffix(">").rpartition(" <")
            names |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": address}
        return names

    def key_variables(self) -> dict[str, str]:
        """Return the variables that tell git which key signs."""
        key = str(self.signing_key)
        if Path(key).is_dir():
            return {"GNUPGHOME": key}
        return config_variables({"gpg.format": "ssh", "user.signingKey": key})

    def _signing_failure(self, errors: str) -> Failure:
        lines = (line.strip(" ?.") for line in errors.splitlines())
        reasons = [
            line.removeprefix("error: ") for line in lines if line and not _NOISE.match(line)
        ]
        return git_failure(
            f"{self.signing_key} of [git] signs no commits of {self.committer}:"
            f" {'; '.join(reasons)[:300]}; correct it on this worker",
            "signing",
        )


@dataclass(frozen=True, slots=True)
class ChangesCommit:
    """The commit with the changes of the requester, on the commit that they were made on."""

    id: str
    content: str
    """The commit as git stores it, which another worker writes again."""
    files: int


async def with_sign_off(message: str, person: str, cwd: Path) -> str:
    """Return the message with the trailer Signed-off-by of a person, once."""
    trailer = f"Signed-off-by: {person}"
    output = await git(
        "interpret-trailers",
        "--if-exists=addIfDifferent",
        f"--trailer={trailer}",
        cwd=cwd,
        stdin=f"{message}\n".encode(errors="replace"),
    )
    return output.decode(errors="replace").strip()


async def checked_branch(name: str, cwd: Path) -> str:
    """Return the name of a branch; raises Failure `branch_name` if git refuses it."""
    try:
        await git("check-ref-format", "--branch", name, cwd=cwd)
    except Failure:
        text = f"{name!r} is no name of a branch; correct branch of [git] or of the profile"
        raise git_failure(text, "branch_name") from None
    return name


async def free_branch(source: RepoSource, mirror: Path, name: str) -> str:
    """Return the name of a branch that the source can have: `draftsman-D-7` for `draftsman/D-7`.

    A branch of git cannot have the name of a folder of others, such as a branch `draftsman`.
    """
    parts = name.split("/")
    above = {f"{HEADS}{'/'.join(parts[:count])}" for count in range(1, len(parts))}
    tips = await source.tips(mirror, [*above, f"{HEADS}{name}/*"])
    if not any(ref in above or ref.startswith(f"{HEADS}{name}/") for ref in tips):
        return name
    flat = "-".join(parts)
    return flat if flat != name else f"{name}-work"


@dataclass(frozen=True, slots=True)
class JobBranches:
    """The names of the branches of jobs, by the template of `[git]`."""

    template: str = BRANCH

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns of git for refs, of which some are such branches."""
        first = self._parts[0]
        return tuple({f"{HEADS}{first}*", f"{HEADS}{first.replace('/', '-')}*"})

    def number(self, branch: str) -> int | None:
        """Return the number of the job whose branch this may be; None for another branch."""
        match = re.fullmatch("".join(map(_expression, self._parts)), branch)
        return None if match is None else int(match["number"])

    def job_of(self, branch: str) -> str | None:
        """Return the job of a branch; None if its name does not tell."""
        number = self.number(branch) if "{job}" in self.template else None
        return None if number is None else job_name(number)

    @property
    def _parts(self) -> list[str]:
        """The texts and fields of the template; texts may be empty."""
        parts = re.split(r"(\{\w+\})", self.template)
        unique = next(field for field in UNIQUE if field in parts)
        return ["{}" if _is_other(part, unique) else part for part in parts]


def _is_other(part: str, unique: str) -> bool:
    return part.startswith("{") and part != unique


def _expression(part: str) -> str:
    """Return the pattern of a part of a template; empty fields leave no separators."""
    if part in _PARTS:
        return _PARTS[part]
    return "".join("[-_./]*" if char in "-_./" else re.escape(char) for char in part)


_NUMBER: Final = r"(?P<number>[1-9]\d{0,17})"
_PARTS: Final = {
    "{job}": rf"(?<![A-Za-z0-9])D-{_NUMBER}",
    "{number}": rf"(?<!\d){_NUMBER}",
    "{}": ".*",
}
"""Patterns of the fields of a template: those that name the job, and others."""
