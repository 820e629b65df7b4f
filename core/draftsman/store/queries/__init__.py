"""The loader of the named queries beside it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def load(family: str) -> dict[str, LiteralString]:
    """Return the queries of `<family>.sql` by their names.

    Sections start with `-- name: NAME`. The text ships with the package, so it counts as literal.
    """
    parts = _NAME.split(files(__package__).joinpath(f"{family}.sql").read_text(encoding="utf-8"))
    return {
        name: cast(LiteralString, body.strip().rstrip(";"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }
