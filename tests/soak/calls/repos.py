"""Known repositories, their labels and their profiles."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman.repos import store as repos
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import parse
from tests.soak.calls.call import RUNNING, Call

PAY: Final = Repo.at(parse("https://github.com/acme/pay"))
OWN: Final = Repo(None, "", "acme", f"repo{RUNNING[0].job % 50}", "/srv/repo")
"""The repository of the running job, which can have no other."""
SEEDED: Final = 1
"""The seeded repository, which the explained query must find again."""


async def _known(conn: Connection) -> None:
    await repos.add(conn, PAY, "soak")
    assert await repos.repos_at(conn, [PAY])


async def _profile(conn: Connection) -> None:
    await repos.save_profile(conn, SEEDED, RepoProfile(), None, [], "soak")
    await repos.save_check(conn, SEEDED, "", "commit", [])
    assert await repos.profiles(conn, SEEDED, "", 1)


async def _labels(conn: Connection) -> None:
    await repos.map_id(conn, "L1", "pay", SEEDED, "", "soak")
    await repos.map_name(conn, "pay", SEEDED, "", "soak")
    assert await repos.unmap(conn, "pay", SEEDED) == 2


async def _default(conn: Connection) -> None:
    await repos.set_default(conn, SEEDED)
    assert await repos.clear_default(conn)


async def _remove(conn: Connection) -> None:
    assert await repos.remove(conn, SEEDED)


CALLS: Final[dict[str, Call]] = {
    "repos.catalog_version": Call(repos.catalog_version),
    "repos.all_repos": Call(lambda conn: repos.all_repos(conn, 5000)),
    "repos.mappings": Call(lambda conn: repos.mappings(conn, 5000)),
    "repos.profiled_folders": Call(lambda conn: repos.profiled_folders(conn, 5000)),
    "repos.add": Call(_known),
    "repos.repos_at": Call(_known),
    "repos.save_profile": Call(_profile),
    "repos.save_check": Call(_profile),
    "repos.profiles": Call(_profile),
    "repos.map_id": Call(_labels),
    "repos.map_name": Call(_labels),
    "repos.unmap": Call(_labels),
    "repos.set_default": Call(_default),
    "repos.clear_default": Call(_default),
    "repos.remove": Call(_remove),
    "repos.assign": Call(lambda conn: repos.assign(conn, RUNNING[0], OWN)),
}
