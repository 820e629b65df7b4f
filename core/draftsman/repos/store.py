"""Registered repositories, their labels and profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from draftsman.database.database import (
    Connection,
    execute,
    fetch_all,
    rows,
    scalar,
)
from draftsman.database.named_queries import load
from draftsman.jobs.runs.run import Lease
from draftsman.repos.repo_catalog import LabelMapping, Repo

if TYPE_CHECKING:
    from draftsman.repos.repo_profile import RepoProfile, SavedProfile

_Q = load(__name__)


async def catalog_version(conn: Connection) -> int:
    """Return a number that grows with each change of repositories, mappings and profiles."""
    return int(await scalar(conn, _Q["catalog_version"]))


async def all_repos(conn: Connection, limit: int) -> list[Repo]:
    """Return the repositories, by name."""
    return await fetch_all(conn, _Q["all_repos"], {"limit": limit}, Repo)


async def mappings(conn: Connection, limit: int) -> list[LabelMapping]:
    """Return the label mappings, oldest first."""
    return await fetch_all(conn, _Q["mappings"], {"limit": limit}, LabelMapping)


async def profiled_folders(conn: Connection, limit: int) -> list[tuple[int, str]]:
    """Return the repositories and folders that have a profile."""
    return [
        (repo, path) for repo, path in await rows(conn, _Q["profiled_folders"], {"limit": limit})
    ]


async def add(conn: Connection, repo: Repo, actor: str) -> int | None:
    """Insert a repository; None where its name or URL is taken."""
    params = {**_key_params(repo), "default_branch": repo.default_branch}
    repo_id = await scalar(conn, _Q["add"], params | {"actor": actor})
    return None if repo_id is None else int(repo_id)


async def repos_at(conn: Connection, repos: Sequence[Repo]) -> list[Repo]:
    """Return the repositories with the name or URL of one of these."""
    params = {
        "urls": [repo.remote_url for repo in repos],
        "hosts": [repo.host for repo in repos],
        "owners": [repo.owner for repo in repos],
        "names": [repo.name for repo in repos],
    }
    return await fetch_all(conn, _Q["repos_at"], params, Repo)


async def remove(conn: Connection, id: int) -> bool:
    """Delete a repository with its labels and profiles."""
    return await scalar(conn, _Q["remove"], {"id": id}) is not None


async def clear_default(conn: Connection, but: int | None = None) -> bool:
    """Clear the default repository, unless it is `but`; return whether any was cleared."""
    return await execute(conn, _Q["clear_default"], {"id": but}) > 0


async def set_default(conn: Connection, id: int) -> bool:
    """Set the default repository after `clear_default`; False where it does not exist."""
    return await scalar(conn, _Q["set_default"], {"id": id}) is not None


async def map_id(
    conn: Connection, id: str, name: str | None, repo: int, path: str, actor: str
) -> None:
    """Map a label, by its id, to a repository or folder, replacing its other mapping."""
    params = {"label_id": id, "label_name": name, "repo": repo, "path": path, "actor": actor}
    await execute(conn, _Q["map_id"], params)


async def map_name(conn: Connection, name: str, repo: int, path: str, actor: str) -> None:
    """Map a label, by its name, to a repository or folder, in addition to other mappings."""
    params = {"label_name": name, "repo": repo, "path": path, "actor": actor}
    await execute(conn, _Q["map_name"], params)


async def unmap(conn: Connection, label: str, repo: int | None) -> int:
    """Delete the mappings of a label, by id or name; return their number."""
    return await execute(conn, _Q["unmap"], {"label": label, "repo": repo})


async def save_profile(
    conn: Connection,
    repo: int,
    profile: RepoProfile,
    commit: str | None,
    checks: list[dict[str, Any]],
    actor: str,
) -> None:
    """Store a profile, replacing the profile of the same folder."""
    fields = Jsonb(profile.model_dump(mode="json"))
    params = {"repo": repo, "fields": fields, "commit": commit, "checks": Jsonb(checks)}
    await execute(conn, _Q["save_profile"], params | {"actor": actor})


async def profiles(conn: Connection, repo: int, path: str | None, limit: int) -> list[SavedProfile]:
    """Return the profiles of a repository, or of a folder of it."""
    from draftsman.repos.repo_profile import RepoProfile, SavedProfile  # for runs, not requests

    params = {"repo": repo, "path": path, "limit": limit}
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_Q["profiles"], params)
        records = await cursor.fetchall()
    return [
        SavedProfile(
            RepoProfile.model_validate({key: row[key] for key in RepoProfile.model_fields}),
            *(row[key] for key in SavedProfile.__dataclass_fields__ if key != "profile"),
        )
        for row in records
    ]


async def save_check(
    conn: Connection, repo: int, path: str, commit: str, checks: list[dict[str, Any]]
) -> bool:
    """Store the results of a check."""
    params = {"repo": repo, "path": path, "commit": commit, "checks": Jsonb(checks)}
    return await scalar(conn, _Q["save_check"], params) is not None


async def assign(conn: Connection, lease: Lease, repo: Repo) -> bool:
    """Set the job's repository; False after a lost lease."""
    params = {"job": lease.job, "token": lease.token}
    host = repo.host.casefold() or None
    names = {"host": host, "owner": repo.owner or None, "name": repo.name}
    return await scalar(conn, _Q["assign"], params | names) is not None


def _key_params(repo: Repo) -> dict[str, Any]:
    return {
        "host": repo.host,
        "owner": repo.owner,
        "name": repo.name,
        "remote_url": repo.remote_url,
    }
