"""Loader of the named queries, which lie beside the module that runs them."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final, LiteralString

_MARGIN = re.compile(r"^[ \t]+|[ \t]*--.*$", re.MULTILINE)
_NAME = re.compile(r"^-- (name|part): (\w+)\n", re.MULTILINE)
_INCLUDE = re.compile(r"^-- include: (\w+)\n", re.MULTILINE)
_VISIBLE = re.compile(r"^-- visible (job|repo): (.+)\n", re.MULTILINE)
VISIBLE_REPOS: Final = "visible_repos"
"""Parameter that each query with `-- visible` has: the repositories of its viewer; NULL: all.

The connection of a viewer supplies it.
"""


def load(module: str) -> dict[str, LiteralString]:
    """Return the queries of a module by name: those of `store.sql` for `draftsman.costs.store`."""
    return _read(module)[0]


def load_parts(module: str) -> dict[str, LiteralString]:
    """Return the parts of a module by name, for a query of another module."""
    return _read(module)[1]


@cache
def _read(module: str) -> tuple[dict[str, LiteralString], dict[str, LiteralString]]:
    package, *path = module.split(".")
    file = files(package).joinpath(*path[:-1], f"{path[-1]}.sql")
    return parse(file.read_text(encoding="utf-8"))


def parse(text: str) -> tuple[dict[str, LiteralString], dict[str, LiteralString]]:
    """Return the queries of a file's text by name, and its parts by name.

    A query starts with `-- name: NAME`; `-- include: PART` inserts an earlier text that starts with
    `-- part: PART` and that several queries share. `-- visible job: COLUMN` inserts the condition
    that the viewer may see the repository of that job, and `-- visible repo: COLUMN` the one of
    that name; for a viewer of all, neither is evaluated. The text ships with the package, so it
    counts as literal. Comments and indentation are removed: psycopg caches the parsed query only up
    to 4,096 characters.
    """
    pieces = _NAME.split(text)
    parts: dict[str, LiteralString] = {}
    queries: dict[str, LiteralString] = {}
    for kind, name, section in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        body = _INCLUDE.sub(lambda match: f"{parts[match[1]]}\n", section)
        body = _VISIBLE.sub(
            lambda match: (
                f"(%({VISIBLE_REPOS})s::text[] IS NULL"
                f" OR draftsman.is_{match[1]}_of({match[2]}, %({VISIBLE_REPOS})s))\n"
            ),
            body,
        )
        texts = parts if kind == "part" else queries
        texts[name] = _MARGIN.sub("", body).strip().rstrip(";")
    return queries, parts
