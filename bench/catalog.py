"""Requests beside a large catalog of repositories, as ratios to those beside a small one."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bench import measure, slack
from bench.measure import Run
from bench.report import Figures
from bench.server import session

REPOS: Final = 1_000
"""Repositories of a large catalog."""
URL: Final = "https://host/acme/app-1"
"""The repository of the requests, which every catalog has."""


async def submit(run: Run, repos: int = 1) -> Figures:
    """Submit requests with a repository individually."""
    await _fill(run, repos)
    return await measure.submit(replace(run, extra={"repo": URL}))


async def events(run: Run) -> Figures:
    """Send mentions to `draftsman bots`, each of which may name any repository."""
    await _fill(run, REPOS)
    return await slack.events(run)


async def _fill(run: Run, repos: int) -> None:
    """Register repositories, once in a database."""
    async with session(run.url) as database:
        await database.conn.execute(
            "INSERT INTO draftsman.repos (host, owner, name, remote_url, added_by)"
            " SELECT 'host', 'acme', 'app-' || g, 'https://host/acme/app-' || g, 'bench'"
            " FROM generate_series(1, %s) g ON CONFLICT DO NOTHING",
            (repos,),
        )
