"""Loader of the named queries, which are in the folder `queries` of a package."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, LiteralString

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

PACKAGES: Final = (
    "agent_runs/activity",
    "attention",
    "costs",
    "database",
    "deliveries",
    "events",
    "forges",
    "jobs/control",
    "jobs/details",
    "jobs/pending_decisions",
    "jobs/requests",
    "jobs/runs",
    "people",
    "questions",
    "questions/permission_rules",
    "queues",
    "repos",
    "schedules",
    "trello",
    "worker",
    "worker/registry",
    "workflows",
)
_ROOT: Final = files("draftsman")
_MARGIN = re.compile(r"^[ \t]+|[ \t]*--.*$", re.MULTILINE)
_NAME = re.compile(r"^-- (name|part): (\w+)\n", re.MULTILINE)
_INCLUDE = re.compile(r"^-- include: (\w+)\n", re.MULTILINE)


@cache
def files_of_queries() -> tuple[Traversable, ...]:
    """Return the SQL files of all packages; no two have the same name."""
    folders = (_ROOT.joinpath(package, "queries") for package in PACKAGES)
    return tuple(file for folder in folders for file in folder.iterdir())


@cache
def load(family: str) -> dict[str, LiteralString]:
    """Return the queries of `<family>.sql`, in any of the packages, by name."""
    file = next(file for file in files_of_queries() if file.name == f"{family}.sql")
    return parse(file.read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, LiteralString]:
    """Return the queries of a file's text by name.

    A query starts with `-- name: NAME`; `-- include: PART` inserts an earlier text that starts with
    `-- part: PART` and that several queries share. The text ships with the package, so it counts as
    literal. Comments and indentation are removed: psycopg caches the parsed query only up to 4,096
    characters.
    """
    pieces = _NAME.split(text)
    shared: dict[str, str] = {}
    queries: dict[str, LiteralString] = {}
    for kind, name, section in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        body = _INCLUDE.sub(lambda match: shared[match[1]], section)
        if kind == "part":
            shared[name] = body
        else:
            queries[name] = _MARGIN.sub("", body).strip().rstrip(";")
    return queries
