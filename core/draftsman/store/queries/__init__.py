"""Loader of the named queries in this folder."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString

_MARGIN = re.compile(r"^[ \t]+|[ \t]*--.*$", re.MULTILINE)
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_EXTENDS = re.compile(r"-- extends: (\w+)\n")


@cache
def load(family: str) -> dict[str, LiteralString]:
    """Return the queries of `<family>.sql` by name.

    A query starts with `-- name: NAME`. The text ships with the package, so it counts as literal.
    A query that starts with `-- extends: NAME` is appended to that query, whose result it reads as
    `result`. Comments and indentation are removed: psycopg caches the parsed query only up to 4,096
    characters.
    """
    parts = _NAME.split(files(__package__).joinpath(f"{family}.sql").read_text(encoding="utf-8"))
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    for name, body in bodies.items():
        if match := _EXTENDS.match(body):
            common, _, result = bodies[match[1]].rpartition("\n)\nSELECT ")
            body = body[match.end() :].lstrip()
            bodies[name] = f"{common}\n), result AS MATERIALIZED (\nSELECT {result}\n), {body}"
    return {name: _MARGIN.sub("", body).strip().rstrip(";") for name, body in bodies.items()}
