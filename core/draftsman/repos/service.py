"""Registered repositories, their labels and profiles, and the repository of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from draftsman.database.database import Connection, Database
from draftsman.errors import (
    CommandHint,
    Conflict,
    NotFound,
    OptionHint,
    UnknownRepo,
    UsageError,
)
from draftsman.jobs.runs.run import Lease, lease_lost
from draftsman.people import visibility
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.repos import repo_catalog as domain
from draftsman.repos import store
from draftsman.repos.repo_catalog import (
    AmbiguousRepo,
    Catalog,
    Label,
    Repo,
    RepoLocation,
    ResolvedRepo,
)
from draftsman.repos.repo_url import parse
from draftsman.sizes import REPO_NAME, check_length
from draftsman.text import clean

if TYPE_CHECKING:
    from draftsman.repos.repo_profile import RepoProfile, SavedProfile

CATALOG_AGE: Final = 1.0
"""Seconds after which a process asks whether the catalog has changed."""
MAX_REPOS: Final = 5000
"""Maximum number of repositories, labels and folders read."""
LABEL_LIMIT: Final = 500
T = TypeVar("T")


class Repos:
    """Registration and resolution of repositories."""

    def __init__(
        self, db: Database, policy: Policy, current: CurrentCatalog, viewer: Actor | None
    ) -> None:
        self._db = db
        self._policy = policy
        self._current = current
        self._viewer = viewer

    async def resolve(
        self,
        *,
        explicit: str | None = None,
        labels: Sequence[Label] = (),
        text: str | None = None,
    ) -> ResolvedRepo | AmbiguousRepo:
        """Return the repository of a request, or the candidates.

        `labels` are (id, name). `ResolvedRepo.request` is the value for `invocation(…)`; a job
        without a repository is resolved again when it starts, and asks. Raises NotFound for an
        unknown explicit name, UsageError for an invalid URL.
        """
        catalog = await self.catalog()
        try:
            return domain.resolve(catalog, explicit=explicit, labels=labels, text=text)
        except UnknownRepo:
            catalog = await self.catalog(age=0)
            return domain.resolve(catalog, explicit=explicit, labels=labels, text=text)

    async def catalog(self, *, age: float = CATALOG_AGE) -> Catalog:
        """Return repositories, labels and profiled folders, as they were `age` seconds ago.

        All that the viewer may see, with each change by this process. Before something is refused
        because it is not in it, use `age=0`.
        """
        return _seen_by(self._viewer, await self._current.get(age=age))

    async def place(self, name: str) -> RepoLocation:
        """Return the registered repository, or the folder of it, with this name or URL.

        Raises NotFound, and UsageError for an ambiguous name.
        """
        resolved = await self.resolve(explicit=name)
        if isinstance(resolved, AmbiguousRepo):
            names = ", ".join(
                f"{choice.repo.host}/{choice.name}".lstrip("/") for choice in resolved.choices
            )
            raise UsageError(f"{name!r} is ambiguous: {names}; use a full name")
        if resolved.repo.id is None:
            raise NotFound(
                f"{resolved.repo.remote_url} is not registered",
                hint=CommandHint("repos add", lead="run"),
            )
        return RepoLocation(resolved.repo, resolved.path)

    async def known(self, address: str) -> Repo | None:
        """Return the registered repository with this path or URL."""
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
        """Register a repository with a profile that was checked on `commit`.

        For another folder of a registered repository, only the profile is added. Raises
        NotPermitted, and Conflict where the name, the URL or the profile exists.
        """
        actor = self._authorize(actor)
        parse(repo.remote_url)
        for what, text in (("owner", repo.owner), ("name", repo.name)):
            check_length(text, REPO_NAME, f"the {what} of the repository")
        check_length(repo.default_branch or "", REPO_NAME, "the branch")

        async def work(conn: Connection) -> Repo:
            id = await store.add(conn, repo, actor.name)
            if not (found := await store.repos_at(conn, [repo])):
                raise Conflict(f"{repo.full_name} was removed at the same time; try again")
            existing = found[0]
            if id is None:
                await _check_free(conn, existing, repo, profile)
            await store.save_profile(
                conn,
                repo=_id(existing),
                profile=profile,
                commit=commit,
                checks=list(checks),
                actor=actor.name,
            )
            return existing

        return await self._change(work)

    async def save_profile(
        self,
        repo: Repo,
        profile: RepoProfile,
        actor: Actor,
        *,
        commit: str | None = None,
        checks: Sequence[dict[str, Any]] = (),
    ) -> None:
        """Store a profile of a registered repository, replacing the profile of the same folder."""
        actor = self._authorize(actor)
        id = _id(repo)

        async def work(conn: Connection) -> None:
            await store.save_profile(
                conn, repo=id, profile=profile, commit=commit, checks=list(checks), actor=actor.name
            )

        await self._change(work)

    async def checked(
        self, repo: Repo, path: str, commit: str, checks: Sequence[dict[str, Any]], actor: Actor
    ) -> None:
        """Store the results of a profile check; raises NotFound where the profile was removed."""
        self._authorize(actor)
        id = _id(repo)

        async def work(conn: Connection) -> bool:
            return await store.save_check(conn, id, path, commit, list(checks))

        if not await self._change(work):
            raise NotFound(f"{RepoLocation(repo, path).name} no longer has a profile")

    async def profiles(self, repo: Repo) -> list[SavedProfile]:
        """Return the profiles of a registered repository, the root folder's first."""
        async with self._db.connection() as conn:
            return await store.profiles(conn, _id(repo), None, MAX_REPOS)

    async def profile(self, location: RepoLocation) -> SavedProfile | None:
        """Return the profile of a repository or of a folder of it."""
        if location.repo.id is None:
            return None
        async with self._db.connection() as conn:
            profiles = await store.profiles(conn, location.repo.id, location.path, 1)
        return profiles[0] if profiles else None

    async def map(
        self,
        location: RepoLocation,
        actor: Actor,
        *,
        label_id: str | None = None,
        label: str | None = None,
    ) -> None:
        """Map a label, by id or by name, to a registered repository or a folder of it.

        The newest mapping of an id replaces the others. A name with several mappings is ambiguous.
        """
        actor = self._authorize(actor)
        id = _id(location.repo)
        label_id = _label(label_id)
        label = _label(label)
        if label_id is None and label is None:
            raise UsageError("give a label name or a label id")

        async def work(conn: Connection) -> None:
            if label_id is not None:
                await store.map_id(
                    conn, id=label_id, name=label, repo=id, path=location.path, actor=actor.name
                )
            elif label is not None:
                await store.map_name(conn, label, id, location.path, actor.name)

        await self._change(work)

    async def unmap(self, label: str, actor: Actor, repo: Repo | None = None) -> int:
        """Delete the mappings of a label, by id or name; return their number.

        Raises NotFound where there are none.
        """
        self._authorize(actor)
        repo_id = None if repo is None else _id(repo)

        async def work(conn: Connection) -> int:
            return await store.unmap(conn, clean(label.strip()), repo_id)

        if not (count := await self._change(work)):
            raise NotFound(f"no mapping of label {label[:60]!r}", hint=CommandHint("repos list"))
        return count

    async def set_default(self, repo: Repo | None, actor: Actor) -> None:
        """Set the default repository; None clears it. Raises NotFound."""
        self._authorize(actor)
        id = None if repo is None else _id(repo)

        async def work(conn: Connection) -> bool:
            cleared = await store.clear_default(conn, id)
            return cleared if id is None else await store.set_default(conn, id)

        if not await self._change(work):
            raise NotFound(
                "there is no default repository" if repo is None else _removed_message(repo)
            )

    async def remove(self, repo: Repo, actor: Actor) -> None:
        """Delete a repository with its labels and profiles; its jobs are kept."""
        self._authorize(actor)
        id = _id(repo)

        async def work(conn: Connection) -> bool:
            return await store.remove(conn, id)

        if not await self._change(work):
            raise NotFound(_removed_message(repo))

    async def assign(self, lease: Lease, repo: Repo) -> None:
        """Set the repository of a run's job; raises LeaseLost."""

        async def work(conn: Connection) -> bool:
            return await store.assign(conn, lease, repo)

        if not await self._db.run_transaction(work):
            raise lease_lost(lease)

    async def _change(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Change the catalog in a transaction."""
        try:
            return await self._db.run_transaction(work)
        finally:
            self._current.changed()

    def _authorize(self, actor: Actor) -> Actor:
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.REPOS)
        return actor


def _seen_by(viewer: Actor | None, catalog: Catalog) -> Catalog:
    """Return the catalog without the repositories that a viewer may not see."""
    if visibility.visible_repos(viewer) is None:
        return catalog
    repos = [
        repo
        for repo in catalog.repos
        if visibility.may_see(viewer, f"{repo.host}/{repo.full_name}")
    ]
    return replace(catalog, repos=repos)


class CurrentCatalog:
    """The catalog as this process last read it, for all viewers.

    The database counts its changes, so that a catalog of any size costs one small read a second.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._catalog: Catalog | None = None
        self._version: int | None = None
        self._checked_at = 0.0
        self._changed_at = 0.0
        self._reading = asyncio.Lock()

    async def get(self, *, age: float = CATALOG_AGE) -> Catalog:
        """Return the catalog as it was at most `age` seconds ago, with each change that ended here.

        With 0 it is read again if it has changed: before a request is refused for what it lacks.
        """
        oldest = time.monotonic() - age
        if (catalog := self._known_since(oldest)) is not None:
            return catalog
        async with self._reading:
            if (catalog := self._known_since(oldest)) is not None:
                return catalog
            started = time.monotonic()
            async with self._db.connection() as conn:
                catalog = await self._read(conn)
            self._checked_at = started
            return catalog

    def changed(self) -> None:
        """Note that this process has changed the catalog."""
        self._changed_at = time.monotonic()

    def _known_since(self, oldest: float) -> Catalog | None:
        return self._catalog if self._checked_at > max(oldest, self._changed_at) else None

    async def _read(self, conn: Connection) -> Catalog:
        """Read the catalog unless it is that of the last version.

        The version is read first: a change in between is read again, not missed.
        """
        version = await store.catalog_version(conn)
        if self._catalog is None or version != self._version:
            self._catalog = Catalog(
                await store.all_repos(conn, MAX_REPOS),
                await store.mappings(conn, MAX_REPOS),
                await store.profiled_folders(conn, MAX_REPOS),
            )
            self._version = version
        return self._catalog


async def _check_free(conn: Connection, existing: Repo, repo: Repo, profile: RepoProfile) -> None:
    """Raise Conflict unless this is an unregistered folder of the existing repository."""
    same = existing.key == repo.key and (existing.remote_url == repo.remote_url or repo.host)
    if not same:
        raise Conflict(
            f"{existing.full_name} is already registered for {existing.remote_url}",
            hint=OptionHint("name", lead="use another"),
        )
    if await store.profiles(conn, _id(existing), profile.path, 1):
        name = RepoLocation(existing, profile.path).name
        raise Conflict(f"{name} is already registered", hint=CommandHint("repos show", f"{name}"))


def _id(repo: Repo) -> int:
    if repo.id is None:
        raise NotFound(
            f"{repo.full_name} is not registered", hint=CommandHint("repos add", lead="run")
        )
    return repo.id


def _label(text: str | None) -> str | None:
    text = clean(text.strip()) if text else None
    if text and len(text) > LABEL_LIMIT:
        raise UsageError(f"a label can have at most {LABEL_LIMIT} characters")
    return text or None


def _removed_message(repo: Repo) -> str:
    return f"{repo.full_name} is no longer registered"
