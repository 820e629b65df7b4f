"""Registered repositories."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.repos.repo_catalog import Repo
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@table_view
class ReposResource(Resource[Repo]):
    """Repository catalog."""

    name = "repos"
    number_key = "8"
    help = "Registered repositories."
    fields = ("repo", "by", "age")
    empty = "No repositories. To add a repository: draftsman repos add PATH|URL"
    columns = (
        Column[Repo]("REPO", 24, most=40, order=lambda repo: repo.full_name.casefold()),
        Column[Repo]("DEFAULT", 7, order=lambda repo: not repo.is_default, optional=True),
        Column[Repo](
            "BRANCH",
            12,
            most=24,
            from_width=90,
            order=lambda repo: repo.default_branch or "",
            optional=True,
        ),
        Column[Repo]("URL", 0, order=lambda repo: repo.remote_url),
        Column[Repo]("ADDED BY", 16, most=24, from_width=110, order=lambda repo: repo.added_by),
        Column[Repo]("AGE", 6, right=True, order=lambda repo: repo.created_at),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Repo]:
        return Rows((await rt.repos.catalog()).repos)

    def key(self, row: Repo) -> str:
        return row.remote_url

    def page_url(self, row: Repo) -> str | None:
        return row.remote_url if row.remote_url.startswith("https://") else None

    def cells(self, row: Repo, now: datetime) -> Sequence[Cell]:
        return (
            cells.text(row.full_name, "key"),
            Cell("default" if row.is_default else "", "good"),
            cells.text(row.default_branch),
            cells.text(row.remote_url),
            cells.text(row.added_by),
            cells.age(row.created_at, now),
        )

    def filter_fields(self, row: Repo) -> FilterFields:
        text = f"{row.full_name} {row.remote_url} {row.added_by}"
        return FilterFields(
            text, repo=row.full_name, by=row.added_by, at=row.created_at, repo_host=row.host
        )
