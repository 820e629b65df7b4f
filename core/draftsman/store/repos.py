"""Rows of repositories, of the labels that stand for them, and of their profiles."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from draftsman.domain.repos.repo_catalog import LabelMapping, Repo
from draftsman.domain.repos.repo_profile import RepoProfile
from draftsman.domain.run import Lease
from draftsman.store.postgres.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    rows,
    scalar,
)
from draftsman.store.queries import load

_Q = load("repos")


@dataclass(frozen=True, slots=True)
class SavedProfile:
    """A profile as it is kept, and what its last check found on which commit."""

    profile: RepoProfile
    checked_at: datetime | None
    checked_commit: str | None
    checks: list[dict[str, Any]]
    updated_by: str
    updated_at: datetime


async def all_repos(conn: Connection, limit: int) -> list[Repo]:
    """Return the repositories, by name."""
    return await fetch_all(conn, _Q["all_repos"], {"limit": limit}, Repo)


async def mappings(conn: Connection, limit: int) -> list[LabelMapping]:
    """Return what labels stand for, oldest first."""
    return await fetch_all(conn, _Q["mappings"], {"limit": limit}, LabelMapping)


async def profiled_folders(conn: Connection, limit: int) -> list[tuple[int, str]]:
    """Return the repositories and folders that have a profile."""
    return [
        (repo, path) for repo, path in await rows(conn, _Q["profiled_folders"], {"limit": limit})
    ]


async def add(conn: Connection, repo: Repo, actor: str) -> int | None:
    """Make a repository known; None where its name or its address is taken."""
    params = {**_place(repo), "default_branch": repo.default_branch}
    found = await scalar(conn, _Q["add"], params | {"actor": actor})
    return None if found is None else int(found)


async def find_conflict(conn: Connection, repo: Repo) -> Repo | None:
    """Return the repository that has this name or this address."""
    return await fetch_one(conn, _Q["find_conflict"], _place(repo), Repo)


async def remove(conn: Connection, id: int) -> bool:
    """Forget a repository with its labels and profiles."""
    return await scalar(conn, _Q["remove"], {"id": id}) is not None


async def clear_default(conn: Connection, but: int | None = None) -> bool:
    """Let none be the default, or none but this; return whether one was."""
    return await execute(conn, _Q["clear_default"], {"id": but}) > 0


async def set_default(conn: Connection, id: int) -> bool:
    """Let this be the default, once no other is; False where it is not there."""
    return await scalar(conn, _Q["set_default"], {"id": id}) is not None


async def map_id(
    conn: Connection, id: str, name: str | None, repo: int, path: str, actor: str
) -> None:
    """Let a label, by its id, stand for a repository or for a folder of it, and nothing else."""
    params = {"label_id": id, "label_name": name, "repo": repo, "path": path, "actor": actor}
    await execute(conn, _Q["map_id"], params)


async def map_name(conn: Connection, name: str, repo: int, path: str, actor: str) -> None:
    """Let a label, by its name, stand for a repository or for a folder of it, among others."""
    params = {"label_name": name, "repo": repo, "path": path, "actor": actor}
    await execute(conn, _Q["map_name"], params)


async def unmap(conn: Connection, label: str, repo: int | None) -> int:
    """Let a label, by id or name, stand for nothing; return how many mappings it had."""
    return await execute(conn, _Q["unmap"], {"label": label, "repo": repo})


async def save_profile(
    conn: Connection,
    repo: int,
    profile: RepoProfile,
    commit: str | None,
    checks: list[dict[str, Any]],
    actor: str,
) -> None:
    """Keep a profile, in place of the one of the same folder."""
    fields = Jsonb(profile.model_dump(mode="json"))
    params = {"repo": repo, "fields": fields, "commit": commit, "checks": Jsonb(checks)}
    await execute(conn, _Q["save_profile"], params | {"actor": actor})


async def profiles(conn: Connection, repo: int, path: str | None, limit: int) -> list[SavedProfile]:
    """Return the profiles of a repository, of one folder where it is given."""
    params = {"repo": repo, "path": path, "limit": limit}
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_Q["profiles"], params)
        found = await cursor.fetchall()
    return [
        SavedProfile(
            RepoProfile.model_validate({key: row[key] for key in RepoProfile.model_fields}),
            *(row[key] for key in SavedProfile.__dataclass_fields__ if key != "profile"),
        )
        for row in found
    ]


async def save_check(
    conn: Connection, repo: int, path: str, commit: str, checks: list[dict[str, Any]]
) -> bool:
    """Keep what a check found."""
    params = {"repo": repo, "path": path, "commit": commit, "checks": Jsonb(checks)}
    return await scalar(conn, _Q["save_check"], params) is not None


async def assign(conn: Connection, lease: Lease, repo: Repo) -> bool:
    """Let the job be about this repository; False when the run had lost its job."""
    params = {"job": lease.job, "token": lease.token}
    names = {"owner": repo.owner or None, "name": repo.name}
    return await scalar(conn, _Q["assign"], params | names) is not None


def _place(repo: Repo) -> dict[str, Any]:
    return {
        "host": repo.host,
        "owner": repo.owner,
        "name": repo.name,
        "remote_url": repo.remote_url,
    }
