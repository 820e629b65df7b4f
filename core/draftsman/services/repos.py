"""request -> repository: what is known by name, and how it is validated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from draftsman.domain.people.actor import Actor
from draftsman.domain.people.policy import Policy, Verb
from draftsman.domain.repos import repo_catalog as domain
from draftsman.domain.repos.repo_catalog import (
    AmbiguousRepo,
    Catalog,
    Label,
    Repo,
    RepoLocation,
    ResolvedRepo,
)
from draftsman.domain.repos.repo_profile import RepoProfile
from draftsman.domain.repos.repo_url import parse
from draftsman.domain.run import Lease
from draftsman.domain.text import clean
from draftsman.errors import CommandHint, Conflict, LeaseLost, NotFound, UsageError
from draftsman.store import repos as store
from draftsman.store.postgres.database import Connection, Database
from draftsman.store.repos import SavedProfile as SavedProfile  # for those who show it

MAX_REPOS: Final = 5000
"""Repositories, labels and folders that are looked at."""
LABEL_LIMIT: Final = 500


class Repos:
    """Knows repositories, and says which one a request is about."""

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy

    async def resolve(
        self,
        *,
        explicit: str | None = None,
        labels: Sequence[Label] = (),
        text: str | None = None,
    ) -> ResolvedRepo | AmbiguousRepo:
        """Return the repository of a request, or what it may be.

        `labels` are (id, name). A Resolved has `request`: what goes into an `invocation(…)`; a job
        without a repository looks again when it begins, and asks. Raises NotFound for an explicit
        name that nobody knows, UsageError for a wrong address.
        """
        found = await self.catalog()
        return domain.resolve(found, explicit=explicit, labels=labels, text=text)

    async def catalog(self) -> Catalog:
        """Return all that is known."""
        async with self._db.connection() as conn:
            return Catalog(
                await store.all_repos(conn, MAX_REPOS),
                await store.mappings(conn, MAX_REPOS),
                await store.profiled_folders(conn, MAX_REPOS),
            )

    async def place(self, name: str) -> RepoLocation:
        """Return the known repository, or the folder of one, that a name or an address means.

        Raises NotFound, and UsageError for a name of several.
        """
        found = await self.resolve(explicit=name)
        if isinstance(found, AmbiguousRepo):
            names = ", ".join(f"{one.repo.host}/{one.name}".lstrip("/") for one in found.choices)
            raise UsageError(f"{name!r} may be several: {names}; say more of it")
        if found.repo.id is None:
            raise NotFound(
                f"{found.repo.remote_url} is not known", hint=CommandHint("repos add", lead="first")
            )
        return RepoLocation(found.repo, found.path)

    async def known(self, address: str) -> Repo | None:
        """Return the known repository with this address, a path or a URL."""
        return (await self.catalog()).of(parse(address))

    async def add(
        self,
        repo: Repo,
        profile: RepoProfile,
        actor: Actor,
        *,
        commit: str | None = None,
        checks: Sequence[dict[str, Any]] = (),
    ) -> Repo:
        """Make a repository known, with a profile that was checked on `commit`.

        Another folder of a known one gets its profile. Raises NotPermitted, and Conflict where
        the name, the address or the profile is there.
        """
        actor = self._allowed(actor)
        parse(repo.remote_url)

        async def work(conn: Connection) -> Repo:
            id = await store.add(conn, repo, actor.name)
            there = await store.find_conflict(conn, repo)
            if there is None or there.id is None:
                raise Conflict(f"{repo.full_name} was removed just now; try again")
            if id is None:
                await _check_free(conn, there, repo, profile)
            await store.save_profile(conn, there.id, profile, commit, list(checks), actor.name)
            return there

        return await self._db.run_transaction(work)

    async def save_profile(
        self,
        repo: Repo,
        profile: RepoProfile,
        actor: Actor,
        *,
        commit: str | None = None,
        checks: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Keep a profile of a known repository, in place of the one of the same folder."""
        actor, id = self._allowed(actor), _id(repo)

        async def work(conn: Connection) -> None:
            await store.save_profile(conn, id, profile, commit, list(checks), actor.name)

        await self._db.run_transaction(work)

    async def checked(
        self, repo: Repo, path: str, commit: str, checks: Sequence[dict[str, Any]], actor: Actor
    ) -> None:
        """Keep what a check of a profile found; raises NotFound where there is none any more."""
        self._allowed(actor)
        id = _id(repo)

        async def work(conn: Connection) -> bool:
            return await store.save_check(conn, id, path, commit, list(checks))

        if not await self._db.run_transaction(work):
            raise NotFound(f"{RepoLocation(repo, path).name} has no profile any more")

    async def profiles(self, repo: Repo) -> list[SavedProfile]:
        """Return the profiles of a known repository, the top's first."""
        async with self._db.connection() as conn:
            return await store.profiles(conn, _id(repo), None, MAX_REPOS)

    async def profile(self, place: RepoLocation) -> SavedProfile | None:
        """Return the profile of a repository or of a folder of it."""
        if place.repo.id is None:
            return None
        async with self._db.connection() as conn:
            found = await store.profiles(conn, place.repo.id, place.path, 1)
        return found[0] if found else None

    async def map(
        self,
        place: RepoLocation,
        actor: Actor,
        *,
        label_id: str | None = None,
        label: str | None = None,
    ) -> None:
        """Let a label, by id or by name, stand for a known repository or a folder of it.

        An id stands for one: the newest word counts. A name that stands for two is asked about.
        """
        actor, id = self._allowed(actor), _id(place.repo)
        label_id, label = _label(label_id), _label(label)
        if label_id is None and label is None:
            raise UsageError("name the label, or give its id")

        async def work(conn: Connection) -> None:
            if label_id is not None:
                await store.map_id(conn, label_id, label, id, place.path, actor.name)
            elif label is not None:
                await store.map_name(conn, label, id, place.path, actor.name)

        await self._db.run_transaction(work)

    async def unmap(self, label: str, actor: Actor, repo: Repo | None = None) -> int:
        """Let a label, by id or name, stand for nothing; return how many mappings went.

        Raises NotFound where it stood for nothing.
        """
        self._allowed(actor)
        wanted = None if repo is None else _id(repo)

        async def work(conn: Connection) -> int:
            return await store.unmap(conn, clean(label.strip()), wanted)

        if not (gone := await self._db.run_transaction(work)):
            raise NotFound(f"no mapping of a label {label[:60]!r}", hint=CommandHint("repos list"))
        return gone

    async def set_default(self, repo: Repo | None, actor: Actor) -> None:
        """Let a known repository be the one of requests that say nothing; None: no such one."""
        self._allowed(actor)
        id = None if repo is None else _id(repo)

        async def work(conn: Connection) -> bool:
            cleared = await store.clear_default(conn, id)
            return cleared if id is None else await store.set_default(conn, id)

        if not await self._db.run_transaction(work):
            raise NotFound("there was no default repository" if repo is None else _gone(repo))

    async def remove(self, repo: Repo, actor: Actor) -> None:
        """Forget a repository, its labels and its profiles; its jobs stay."""
        self._allowed(actor)
        id = _id(repo)

        async def work(conn: Connection) -> bool:
            return await store.remove(conn, id)

        if not await self._db.run_transaction(work):
            raise NotFound(_gone(repo))

    async def assign(self, lease: Lease, repo: Repo) -> None:
        """Let the job of a run be about this repository; raises LeaseLost."""

        async def work(conn: Connection) -> bool:
            return await store.assign(conn, lease, repo)

        if not await self._db.run_transaction(work):
            raise LeaseLost(f"run {lease.run} no longer owns D-{lease.job}")

    def _allowed(self, actor: Actor) -> Actor:
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.REPOS)
        return actor


async def _check_free(conn: Connection, there: Repo, repo: Repo, profile: RepoProfile) -> None:
    """Raise Conflict unless this is another folder of the repository that is there."""
    same = there.key == repo.key and (there.remote_url == repo.remote_url or repo.host)
    if not same:
        raise Conflict(
            f"{there.full_name} is known already, at {there.remote_url}; give another --name"
        )
    if await store.profiles(conn, _id(there), profile.path, 1):
        name = RepoLocation(there, profile.path).name
        raise Conflict(f"{name} is known already", hint=CommandHint("repos show", f"{name}"))


def _id(repo: Repo) -> int:
    if repo.id is None:
        raise NotFound(
            f"{repo.full_name} is not known", hint=CommandHint("repos add", lead="first")
        )
    return repo.id


def _label(text: str | None) -> str | None:
    text = clean(text.strip()) if text else None
    if text and len(text) > LABEL_LIMIT:
        raise UsageError(f"a label has {LABEL_LIMIT} characters at most")
    return text or None


def _gone(repo: Repo) -> str:
    return f"{repo.full_name} is not known any more"
