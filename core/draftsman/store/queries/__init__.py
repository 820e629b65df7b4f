"""Loader of the named queries in this folder."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString

_MARGIN = re.compile(r"^[ \t]+|[ \t]*--.*$", re.MULTILINE)
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def load(family: str) -> dict[str, LiteralString]:
    """Return the queries of `<family>.sql` by name.

    A query starts with `-- name: NAME`. The text ships with the package, so it counts as literal.
    Comments and indentation are removed: psycopg caches the parsed query only up to 4,096
    characters.
    """
    parts = _NAME.split(files(__package__).joinpath(f"{family}.sql").read_text(encoding="utf-8"))
    return {
        name: _MARGIN.sub("", body).strip().rstrip(";")
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }
