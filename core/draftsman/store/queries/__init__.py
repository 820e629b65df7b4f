"""The loader of the named queries beside it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString

_MARGIN = re.compile(r"^[ \t]+|[ \t]*--.*$", re.MULTILINE)
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def load(family: str) -> dict[str, LiteralString]:
    """Return the queries of `<family>.sql` by their names.

    Sections start with `-- name: NAME`. The text ships with the package, so it counts as literal.
    Comments and indentation are left out: psycopg parses a text of over 4,096 characters anew at
    each call.
    """
    parts = _NAME.split(files(__package__).joinpath(f"{family}.sql").read_text(encoding="utf-8"))
    return {
        name: _MARGIN.sub("", body).strip().rstrip(";")
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }
