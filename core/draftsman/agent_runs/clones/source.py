"""Source repositories: local folders or URLs to fetch base commits from and push branches to.

In a local repository only objects and one branch are written. If the worker is root, git runs there
as the owner of the repository: programs of its configuration get no more rights than the owner, and
new files belong to the owner.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from draftsman.agent_runs.clones.git import FLAGS, NO_ENTRY, git, git_failure
from draftsman.agent_runs.clones.remote import Route, route
from draftsman.errors import Failure
from draftsman.forges.pull_request import GitLogin
from draftsman.outbound.dns import Resolver, resolve
from draftsman.settings import HttpSettings

Login = Callable[[], Awaitable[GitLogin]]
"""Gives user and token of a forge, for each command of git."""
REMOTE: Final = re.compile(r"[^/]+:")
SHA: Final = re.compile(r"[0-9a-f]{40}\Z")
REF: Final = re.compile(r"(?!-)(?!.*(\.\.|@\{))[^\x00-\x20\x7f~^:?*\[\\]+\Z")
RUN_AS_OWNER: Final = f"""
import os, sys
uid, gid, *command = sys.argv[1:]
os.setgroups([])
os.setgid(int(gid))
os.setuid(int(uid))
if not os.access(command[-1], os.X_OK):
    sys.exit(" ".join(("{NO_ENTRY}", uid, command[-1])))
os.execv(command[0], command)
"""
"""Imports nothing after it dropped its privileges: the owner may not be able to read our Python."""


@dataclass(frozen=True, slots=True)
class RepoSource:
    """A repository, by the absolute path of its top folder or by its URL."""

    location: str
    http: HttpSettings = field(default_factory=HttpSettings)
    """The egress policy."""
    resolve: Resolver = resolve
    login: Login | None = None
    """Its token, if it is on a forge."""

    @classmethod
    def of(
        cls, text: str, http: HttpSettings | None = None, login: Login | None = None
    ) -> RepoSource:
        """Parse a path or URL.

        Raises Failure `not_a_repository` for a folder that does not exist.
        """
        text = text.removeprefix("file://")
        if REMOTE.match(text) and not text.startswith("-"):
            return cls(text, http or HttpSettings(), login=login)
        path = Path(text).absolute()
        if not path.is_dir():
            raise git_failure(
                f"{path} is not a folder; use the top folder of a repository", "not_a_repository"
            )
        return cls(str(path.resolve()))

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return self.location.startswith("/")

    async def fetch(self, mirror: Path, base: str | None, ref: str) -> str:
        """Fetch `base` (a ref or a full commit id; None: HEAD) into the mirror as `ref`.

        Return the commit's id. Raises Failure `not_a_repository`, `no_such_ref`, `no_commits`, …
        """
        if base is not None and not REF.match(base):
            raise git_failure(f"invalid branch, tag or commit {base!r}", "no_such_ref")
        try:
            await self.fetch_refs(mirror, [f"+{base or 'HEAD'}:{ref}"])
        except Failure as failure:
            empty = base is None and failure.code == "no_such_ref"
            if empty and not await self.tips(mirror, ["HEAD"]):
                text = f"{self.location} has no commits; create a first commit"
                raise git_failure(text, "no_commits") from None
            raise
        fetched = await git("rev-parse", ref, f"{ref}^{{commit}}", cwd=mirror)
        object_id, commit = fetched.decode().split()
        if object_id != commit:  # an annotated tag
            await git("update-ref", ref, commit, cwd=mirror)
        return commit

    async def fetch_refs(self, mirror: Path, specs: Sequence[str]) -> None:
        """Fetch by these refspecs of git."""
        route = await self._route()
        await git(
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--update-shallow",
            self._program_option("upload-pack"),
            route.url,
            *specs,
            cwd=mirror,
            env=route.env,
        )

    async def tips(self, mirror: Path, patterns: Sequence[str]) -> dict[str, str]:
        """Return the commits of the refs that match patterns of git, by full name."""
        route, program = await self._route(), self._program_option("upload-pack")
        output = await git("ls-remote", program, route.url, *patterns, cwd=mirror, env=route.env)
        lines = (line.partition("\t") for line in os.fsdecode(output).splitlines())
        return {name: commit for commit, _, name in lines}

    async def push(self, mirror: Path, commit: str, branch: str, expected: str | None) -> None:
        """Set the branch to `commit` if it is `expected` (None: if it does not exist).

        Raises Failure `branch_moved`, `branch_checked_out`, …
        """
        ref = f"refs/heads/{branch}"
        route = await self._route()
        await git(
            "push",
            "--no-verify",
            "--no-follow-tags",
            f"--force-with-lease={ref}:{expected or ''}",
            self._program_option("receive-pack"),
            route.url,
            f"{commit}:{ref}",
            cwd=mirror,
            env=route.env,
        )

    async def _route(self) -> Route:
        """Return a route; the host is resolved and checked for each connection."""
        if self.is_local:
            return Route(self.location, {})
        login = None if self.login is None else await self.login()
        return await route(self.location, self.http, self.resolve, login)

    def _program_option(self, program: str) -> str:
        """Return the option for the program on the other side, which git runs in a shell."""
        if not self.is_local:
            return f"--{program}=git-{program}"
        command = [*self._run_as_owner(), shutil.which("git") or "git", *FLAGS, program]
        return f"--{program}={shlex.join(command)}"

    def _run_as_owner(self) -> list[str]:
        try:
            status = Path(self.location).stat()
        except OSError as error:
            raise git_failure(
                f"cannot read {self.location}: {error.strerror}", "source_gone"
            ) from None
        uid, gid = status.st_uid, status.st_gid
        if os.geteuid() != 0 or uid == 0:
            return []
        with suppress(KeyError):
            gid = pwd.getpwuid(uid).pw_gid
        return [sys.executable, "-I", "-S", "-c", RUN_AS_OWNER, str(uid), str(gid)]
