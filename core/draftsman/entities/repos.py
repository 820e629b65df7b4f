"""Repositories, with their labels and profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, ListedEntity, Listing
from draftsman.formats.json_data import as_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.repos.repo_catalog import Catalog, LabelMapping, Repo
    from draftsman.runtime import Runtime


@dataclass(frozen=True, slots=True)
class RepoRow:
    """A repository, its labels, and the folders that have a profile."""

    repo: Repo
    mappings: Sequence[LabelMapping] = ()
    profiles: Sequence[str] = ()


def repo_row(repo: Repo, catalog: Catalog) -> RepoRow:
    """Return a repository with its part of the catalog."""
    return RepoRow(
        repo,
        [item for item in catalog.mappings if item.repo == repo.id],
        [path for id, path in catalog.profile_paths if id == repo.id],
    )


def mapping_data(item: LabelMapping) -> dict[str, Any]:
    """Return the JSON object of a label."""
    return {
        "label_id": item.label_id,
        "label": item.label_name,
        "path": item.path,
    }


def repo_data(row: RepoRow) -> Any:
    """Return the JSON object of a repository."""
    mappings = [mapping_data(item) for item in row.mappings]
    return as_data(row.repo) | {"mappings": mappings, "profiles": list(row.profiles)}


def _labels(row: RepoRow) -> str:
    return ", ".join(str(item.label_name or item.label_id) for item in row.mappings)


async def _read(rt: Runtime, _: int) -> Sequence[RepoRow]:
    catalog = await rt.repos.catalog()
    return [repo_row(repo, catalog) for repo in catalog.repos]


REPOS: Final[ListedEntity[RepoRow]] = ListedEntity(
    empty="no repositories",
    hint="to add a repository: draftsman repos add PATH|URL",
    data=repo_data,
    json_class="draftsman.repos.repo_catalog:Repo",
    json_more={"mappings": {"type": "array"}, "profiles": {"type": "array"}},
    listing=Listing(
        "repos",
        "Repositories.",
        read=_read,
        key=lambda row: row.repo.name,
        jobs=lambda row: {"repo": row.repo.name},
    ),
    columns=(
        shared_columns.text(
            "REPO",
            24,
            help="The repository.",
            of=lambda row: row.repo.full_name,
            role="key",
            most=40,
        ),
        Column(
            "DEFAULT",
            7,
            help="The repository of jobs that name none.",
            cell=lambda row, _: Cell("default" if row.repo.is_default else "", "good"),
            order=lambda row: not row.repo.is_default,
            optional=True,
        ),
        shared_columns.text(
            "BRANCH",
            12,
            help="Its default branch.",
            of=lambda row: row.repo.default_branch,
            most=24,
            from_width=90,
            optional=True,
        ),
        shared_columns.text(
            "URL", help="Its address.", of=lambda row: row.repo.remote_url, cut=True
        ),
        Column(
            "PROFILES",
            10,
            help="Folders with a profile; .: the root.",
            cell=lambda row, _: cells.text(", ".join(path or "." for path in row.profiles)),
            most=30,
            cut=True,
            from_width=130,
            optional=True,
        ),
        Column(
            "LABELS",
            10,
            help="Labels of cards that lead to its jobs.",
            cell=lambda row, _: cells.text(_labels(row)),
            most=30,
            cut=True,
            from_width=130,
            optional=True,
        ),
        shared_columns.by(lambda row: row.repo.added_by),
        shared_columns.age(lambda row: row.repo.created_at),
    ),
)
