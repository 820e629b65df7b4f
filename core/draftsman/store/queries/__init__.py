"""Loader of the named queries in this folder, whose folders are those of the store."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final, LiteralString

FOLDERS: Final = (".", "attention", "forges", "outbox", "requests", "scheduling", "trello", "web")
_ROOT: Final = files(__package__)
_MARGIN = re.compile(r"^[ \t]+|[ \t]*--.*$", re.MULTILINE)
_NAME = re.compile(r"^-- (name|part): (\w+)\n", re.MULTILINE)
_INCLUDE = re.compile(r"^-- include: (\w+)\n", re.MULTILINE)


@cache
def load(family: str) -> dict[str, LiteralString]:
    """Return the queries of `<family>.sql`, in any of the folders, by name."""
    file = next(
        file for folder in FOLDERS if (file := _ROOT.joinpath(folder, f"{family}.sql")).is_file()
    )
    return parse(file.read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, LiteralString]:
    """Return the queries of a file's text by name.

    A query starts with `-- name: NAME`; `-- include: PART` inserts an earlier text that starts with
    `-- part: PART` and that several queries share. The text ships with the package, so it counts as
    literal. Comments and indentation are removed: psycopg caches the parsed query only up to 4,096
    characters.
    """
    parts = _NAME.split(text)
    shared: dict[str, str] = {}
    queries: dict[str, LiteralString] = {}
    for kind, name, section in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        body = _INCLUDE.sub(lambda match: shared[match[1]], section)
        if kind == "part":
            shared[name] = body
        else:
            queries[name] = _MARGIN.sub("", body).strip().rstrip(";")
    return queries
