"""Repositories that are known by name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.domain.repos.repo_catalog import Repo
from draftsman_tui.dashboard import cells
from draftsman_tui.dashboard.filter import FilterFields
from draftsman_tui.dashboard.resource import Cell, Column, Query, Resource, Rows

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


class ReposResource(Resource[Repo]):
    """What requests can be about."""

    name = "repos"
    help = "The repositories that are known."
    fields = ("repo", "by", "age")
    empty = "No repository is known; make one known: draftsman repos add PATH|URL"
    columns = (
        Column[Repo]("REPOSITORY", 24, most=40, order=lambda repo: repo.full_name.casefold()),
        Column[Repo]("DEFAULT", 7, order=lambda repo: not repo.is_default),
        Column[Repo](
            "BRANCH", 12, most=24, from_width=90, order=lambda repo: repo.default_branch or ""
        ),
        Column[Repo]("ADDRESS", 0, order=lambda repo: repo.remote_url),
        Column[Repo]("ADDED BY", 16, most=24, from_width=110, order=lambda repo: repo.added_by),
        Column[Repo]("AGE", 6, right=True, order=lambda repo: repo.created_at),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Repo]:
        """Return all of them."""
        return Rows((await rt.repos.catalog()).repos)

    def key(self, row: Repo) -> str:
        """Return its address, which no other has."""
        return row.remote_url

    def address(self, row: Repo) -> str | None:
        """Return its page."""
        return row.remote_url if row.remote_url.startswith("https://") else None

    def cells(self, row: Repo, now: datetime) -> Sequence[Cell]:
        """Return its name and where it is."""
        return (
            cells.text(row.full_name, "key"),
            Cell("default" if row.is_default else "", "good"),
            cells.text(row.default_branch),
            cells.text(row.remote_url),
            cells.text(row.added_by),
            cells.age(row.created_at, now),
        )

    def filter_fields(self, row: Repo) -> FilterFields:
        """Return what a filter looks at."""
        said = f"{row.full_name} {row.remote_url} {row.added_by}"
        return FilterFields(said, repo=row.full_name, by=row.added_by, at=row.created_at)
