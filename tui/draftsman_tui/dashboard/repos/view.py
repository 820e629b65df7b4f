"""Registered repositories."""

from __future__ import annotations

from draftsman.entities.repos import REPOS, RepoRow
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import ListedResource


class ReposResource(ListedResource[RepoRow]):
    """Repository catalog."""

    number_key = "8"
    help = "Registered repositories."
    fields = ("repo", "by", "age")
    entity = REPOS

    def key(self, row: RepoRow) -> str:
        return row.repo.remote_url

    def page_url(self, row: RepoRow) -> str | None:
        return row.repo.remote_url if row.repo.remote_url.startswith("https://") else None

    def filter_fields(self, row: RepoRow) -> FilterFields:
        repo = row.repo
        return FilterFields(
            f"{repo.full_name} {repo.remote_url} {repo.added_by}",
            repo=repo.full_name,
            by=repo.added_by,
            at=repo.created_at,
            repo_host=repo.host,
        )
