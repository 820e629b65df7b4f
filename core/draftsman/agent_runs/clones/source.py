"""Source repositories: local folders or URLs to fetch base commits from and push branches to.

In a local repository only objects and one branch are written. If the worker is root, git runs there
as the owner of the repository: programs of its configuration get no more rights than the owner, and
new files belong to the owner.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import pwd
import re
import shlex
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from draftsman.agent_runs.clones.git import (
    FLAGS,
    NO_ENTRY,
    config_variables,
    explain_error,
    git,
    git_environment,
    git_failure,
    git_version,
    program_result,
)
from draftsman.errors import Failure, UsageError
from draftsman.forges.pull_request import GitLogin
from draftsman.outbound import egress_policy as egress
from draftsman.outbound.dns import Resolver, resolve
from draftsman.repos.repo_url import PORTS, parse
from draftsman.settings.http import HttpSettings

# Egress policy for git: the URL's host is resolved once, checked, and pinned.
#
# git connects to the checked address, even if the name resolves to another address later: curl gets
# it by `http.curloptResolve`, ssh as `HostName`, git:// in the URL. Redirects, proxies of the
# environment, credential helpers, and transports other than the URL's are disabled.
#
# The token of a forge is a header for its origin, in the environment of that one process: it is not
# an argument, not in a URL, and not in a file.


NUMERIC_HOST: Final = re.compile(r"(?:.*\.)?(?:0x[0-9a-f]*|[0-9]+)\Z", re.IGNORECASE)
"""Hosts that some programs read as an address and others as a name."""
PINNING_VERSION: Final = (2, 37)
"""The first version of git with `http.curloptResolve`."""
SSH: Final = (
    "-oBatchMode=yes",
    "-oProxyCommand=none",
    "-oProxyJump=none",
    "-oCanonicalizeHostname=no",
    "-oControlMaster=no",
    "-oControlPath=none",
    "-oClearAllForwardings=yes",
    "-oForwardAgent=no",
    "-oPermitLocalCommand=no",
)
"""Options of ssh, which take precedence over the user's configuration."""
_SCP: Final = re.compile(r"(?:[^@/]+@)?(\[[^\]]+\]|[^:/]+):")


@dataclass(frozen=True, slots=True)
class Route:
    """A URL for git, and the environment variables that pin its address."""

    url: str
    env: Mapping[str, str] = field(repr=False)


async def route(
    text: str, settings: HttpSettings, resolve: Resolver, login: GitLogin | None = None
) -> Route:
    """Return the route to a repository; only over HTTP it has the token of `login`.

    Raises Failure `url` for an invalid URL of a repository, `address_refused` for an address that
    is neither public nor in `http.allow`, `unreachable` for a name without an address.
    """
    try:
        url = parse(text).url
    except UsageError as error:
        raise git_failure(str(error), "url") from None
    scheme, host, port = _split_url(url)
    literal = egress.parse_ip(host)
    if literal is None and NUMERIC_HOST.match(host):
        raise git_failure(f"invalid host name {host}; write an IP address as 192.0.2.1", "url")
    is_http = scheme in {"http", "https"}
    if literal is None and is_http and settings.proxy is not None:
        return Route(url, _http_environment(url, settings, None, login))
    addresses = await _resolve_permitted(host, port, literal, settings, resolve)
    if is_http:
        pin = None if literal else f"{host}:{port}:{','.join(map(_in_brackets, addresses))}"
        if pin is not None and await git_version() < PINNING_VERSION:
            raise git_failure(
                "repositories at a URL need git 2.37 or later; upgrade git", "git_missing"
            )
        return Route(url, _http_environment(url, settings, pin, login))
    if scheme == "git":
        pinned_url = url.replace(
            f"//{urlsplit(url).netloc}", f"//{_in_brackets(addresses[0])}:{port}", 1
        )
        host_variable = {"GIT_OVERRIDE_VIRTUAL_HOST": f"{host}:{port}"}
        return Route(pinned_url, {"GIT_ALLOW_PROTOCOL": scheme, **host_variable})
    return Route(url, _ssh_environment(host, port, addresses[0]))


def _split_url(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL that `parse` wrote."""
    if "://" not in url:
        match = _SCP.match(url)
        if match is None:
            raise git_failure("this is a folder, not the URL of a repository", "url")
        return "ssh", match[1].strip("[]"), PORTS["ssh"]
    address = urlsplit(url)
    return address.scheme, address.hostname or "", address.port or PORTS[address.scheme]


async def _resolve_permitted(
    host: str,
    port: int,
    literal: egress.IpAddress | None,
    settings: HttpSettings,
    resolve: Resolver,
) -> list[egress.IpAddress]:
    try:
        resolved = [literal] if literal else await resolve(host, port)
    except Failure as error:
        raise git_failure(f"{error}; check the URL and the network", "unreachable") from None
    policy = _egress_policy(settings.allow)
    permitted = [address for address in resolved if policy.allows(host, address, port)]
    if not permitted:
        raise git_failure(egress.refusal_text(host, port, resolved[0]), "address_refused")
    return permitted


@lru_cache(maxsize=8)
def _egress_policy(entries: tuple[str, ...]) -> egress.EgressPolicy:
    return egress.EgressPolicy(entries)


def _http_environment(
    url: str, settings: HttpSettings, pin: str | None, login: GitLogin | None
) -> dict[str, str]:
    address = urlsplit(url)
    config = {
        "http.followRedirects": "false",
        "http.proxy": settings.proxy or "",
        "credential.helper": "",
        "core.askPass": "",
    }
    if pin is not None:
        config["http.curloptResolve"] = pin
    if login is not None:
        value = base64.b64encode(f"{login.user}:{login.token}".encode()).decode()
        header = f"Authorization: Basic {value}"
        config[f"http.{address.scheme}://{address.netloc}/.extraHeader"] = header
    return {"GIT_ALLOW_PROTOCOL": address.scheme, **config_variables(config)}


def _ssh_environment(host: str, port: int, address: egress.IpAddress) -> dict[str, str]:
    known_as = host if port == PORTS["ssh"] else f"[{host}]:{port}"
    pinned = (f"-oHostName={address}", f"-oHostKeyAlias={known_as}", f"-oPort={port}")
    return {
        "GIT_ALLOW_PROTOCOL": "ssh",
        "GIT_SSH_VARIANT": "ssh",
        "GIT_SSH_COMMAND": shlex.join(["ssh", *SSH, *pinned]),
    }


def _in_brackets(address: egress.IpAddress) -> str:
    return f"[{address}]" if isinstance(address, ipaddress.IPv6Address) else str(address)


Login = Callable[[], Awaitable[GitLogin]]
"""Gives user and token of a forge, for each command of git."""
Locate = Callable[[], Awaitable[str | None]]
"""Gives the URL at which the forge has a repository now; None if it has not moved."""
ROOT: Final = Path("/")
REMOTE: Final = re.compile(r"[^/]+:")
URL_SCHEMES: Final = frozenset({"http", "https", "git"})
"""Schemes besides `ssh`; an address without one is of SSH, too."""
SHA: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
SHORT_COMMIT: Final = re.compile(r"[0-9a-f]{4,63}\Z")
"""The first characters of a commit's id, as git prints it."""
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


ADD_FILE: Final = """
set -e
cd -- "$2"
[ ! -d .git ] || cd .git
mkdir -p -- "${1%/*}"
cat > "$1.part"
mv -- "$1.part" "$1"
"""


@dataclass(frozen=True, slots=True)
class RepoSource:
    """A repository, by the absolute path of its top folder or by its URL."""

    location: str
    http: HttpSettings = field(default_factory=HttpSettings)
    """The egress policy."""
    resolve: Resolver = resolve
    login: Login | None = None
    """Its token, if it is on a forge."""
    locate: Locate | None = None
    """Where it is after a rename or transfer: git itself follows no redirect."""

    @classmethod
    def of(
        cls,
        text: str,
        http: HttpSettings | None = None,
        login: Login | None = None,
        locate: Locate | None = None,
    ) -> RepoSource:
        """Parse a path or URL.

        Raises Failure `not_a_repository` for a folder that does not exist.
        """
        text = text.removeprefix("file://")
        if REMOTE.match(text) and not text.startswith("-"):
            return cls(text, http or HttpSettings(), login=login, locate=locate)
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

    @property
    def is_ssh(self) -> bool:
        """Whether it is reached over SSH."""
        return not self.is_local and self.location.partition("://")[0] not in URL_SCHEMES

    async def run_ssh(self, program: str, argument: str) -> bytes:
        """Return the output of a program of the host, which gets the path of the repository.

        Raises Failure with origin `git`.
        """
        route = await self._route(self.location)
        if "://" in route.url:
            address = urlsplit(route.url)
            user = f"{address.username}@" if address.username else ""
            host, path = f"{user}{address.hostname}", address.path
        else:
            host, _, path = route.url.partition(":")
        command = shlex.split(route.env["GIT_SSH_COMMAND"])
        command += ["--", host, shlex.join((program, path, argument))]
        env = git_environment()
        code, output, errors = await program_result(command, program, cwd=ROOT, env=env)
        if code != 0:
            raise explain_error(program, errors.decode(errors="replace"))
        return output

    async def fetch(self, mirror: Path, base: str | None, ref: str) -> str:
        """Fetch `base` (a ref or a full commit id; None: HEAD) into the mirror as `ref`.

        Return the commit's id. Raises Failure `not_a_repository`, `no_such_ref`, `no_commits`, …
        """
        if base is not None and not REF.match(base):
            raise git_failure(f"invalid branch, tag or commit {base!r}", "no_such_ref")
        try:
            await self.fetch_refs(mirror, [f"+{base or 'HEAD'}:{ref}"])
        except Failure as failure:
            if base is not None and SHORT_COMMIT.match(base) and failure.code == "no_such_ref":
                return await self._fetch_short(mirror, base, ref, failure)
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

    async def _fetch_short(self, mirror: Path, base: str, ref: str, unknown: Failure) -> str:
        """Fetch all branches, and store the only commit whose id starts with `base` as `ref`.

        Raises Failure `no_such_ref`: `unknown`, or that several commits start so.
        """
        tips = "refs/draftsman/tips"
        await self.fetch_refs(mirror, [f"+refs/heads/*:{tips}/*"])
        try:
            found = await git("rev-parse", f"--disambiguate={base}", cwd=mirror)
            names = found.decode().split()
            kinds = [(await git("cat-file", "-t", name, cwd=mirror)).strip() for name in names]
            commits = [name for name, kind in zip(names, kinds, strict=True) if kind == b"commit"]
            if not commits:
                raise unknown
            if len(commits) > 1:
                text = f"several commits start with {base}; give more characters"
                raise git_failure(text, "no_such_ref")
            await git("update-ref", ref, commits[0], cwd=mirror)
        finally:
            listed = await git("for-each-ref", "--format=delete %(refname)", tips, cwd=mirror)
            await git("update-ref", "--stdin", cwd=mirror, stdin=listed)
        return commits[0]

    async def fetch_refs(self, mirror: Path, specs: Sequence[str]) -> None:
        """Fetch by these refspecs of git."""
        options = (
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--update-shallow",
        )
        await self._git(mirror, "fetch", "upload-pack", options, specs)

    async def tips(self, mirror: Path, patterns: Sequence[str]) -> dict[str, str]:
        """Return the commits of the refs that match patterns of git, by full name."""
        output = await self._git(mirror, "ls-remote", "upload-pack", (), patterns)
        lines = (line.partition("\t") for line in os.fsdecode(output).splitlines())
        return {name: commit for commit, _, name in lines}

    async def push(self, mirror: Path, commit: str, branch: str, expected: str | None) -> None:
        """Set the branch to `commit` if it is `expected` (None: if it does not exist).

        Raises Failure `branch_moved`, `branch_checked_out`, …
        """
        ref = f"refs/heads/{branch}"
        options = ("--no-verify", "--no-follow-tags", f"--force-with-lease={ref}:{expected or ''}")
        await self._git(mirror, "push", "receive-pack", options, (f"{commit}:{ref}",))

    async def add_file(self, path: str, data: bytes) -> None:
        """Write a file below `.git` of a local repository, as its owner.

        Raises Failure with origin `git`.
        """
        command = [*self._run_as_owner(), "/bin/sh", "-c", ADD_FILE, "sh", path, self.location]
        env = {"PATH": os.defpath}
        code, _, errors = await program_result(command, "add", cwd=ROOT, env=env, stdin=data)
        if code != 0:
            raise explain_error("add", errors.decode(errors="replace"))

    async def _git(
        self,
        mirror: Path,
        command: str,
        program: str,
        options: Sequence[str],
        arguments: Sequence[str],
    ) -> bytes:
        """Run git with the URL, or with that to which the forge has moved the repository."""
        words = (command, *options, self._program_option(program))
        try:
            route = await self._route(self.location)
            return await git(*words, route.url, *arguments, cwd=mirror, env=route.env)
        except Failure as error:
            if error.code != "redirected" or self.locate is None:
                raise
            if (moved := await self.locate()) is None:
                raise
        route = await self._route(moved)
        return await git(*words, route.url, *arguments, cwd=mirror, env=route.env)

    async def _route(self, location: str) -> Route:
        """Return a route; the host is resolved and checked for each connection."""
        if self.is_local:
            return Route(location, {})
        login = None if self.login is None else await self.login()
        return await route(location, self.http, self.resolve, login)

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
        uid = status.st_uid
        gid = status.st_gid
        if os.geteuid() != 0 or uid == 0:
            return []
        with suppress(KeyError):
            gid = pwd.getpwuid(uid).pw_gid
        return [sys.executable, "-I", "-S", "-c", RUN_AS_OWNER, str(uid), str(gid)]
