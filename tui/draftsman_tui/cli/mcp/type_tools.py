"""Names of the tools of described job types. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from draftsman.text import digest

PREFIX: Final = "run_"
"""Of no other tool."""
MAX_NAME: Final = 48
"""Characters: models take 64, and clients prefix the name of the server, `mcp__draftsman__`."""
_HASH: Final = 8
"""Characters of the digest of a type."""
_INVALID: Final = re.compile(r"[^A-Za-z0-9_-]")


def tool_names(types: Iterable[str]) -> dict[str, str]:
    """Return the name of the tool of each type: `run_report_weekly` of `report:weekly`.

    Types whose names would be equal, or too long, have a digest of their type in it, so that the
    name of a tool never becomes that of another type.
    """
    plain = {type: PREFIX + _INVALID.sub("_", type) for type in types}
    uses = Counter(name.casefold() for name in plain.values())
    return {
        type: name
        if uses[name.casefold()] == 1 and len(name) <= MAX_NAME
        else f"{name[: MAX_NAME - _HASH - 1]}_{digest(type)[:_HASH]}"
        for type, name in plain.items()
    }
