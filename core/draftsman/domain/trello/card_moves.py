"""Where a card goes as its job goes on: a board's rules. Pure.

    {"running": "5f1e…", "completed": {"to": "5f1e…", "from": ["5f1e…", "5f1e…"]}}

A rule names a list by its id; with `from` it moves a card only out of those lists, so that what
people put elsewhere stays there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from draftsman.domain.job import Status

_LIST: Final = re.compile(r"[0-9a-f]{24}")


@dataclass(frozen=True, slots=True)
class CardMove:
    """To which list, and out of which; none named: out of any."""

    to: str
    out_of: tuple[str, ...] = ()

    def moves(self, now_in: str) -> bool:
        """Return whether a card that is in this list is to be moved."""
        return now_in != self.to and (not self.out_of or now_in in self.out_of)


def moves(rules: Mapping[str, Any], ready: str | None = None) -> dict[Status, CardMove]:
    """Return the move of each status; `ready` is that of a completed job without a rule of its own.

    Raises ValueError that says what a rule looks like.
    """
    found = {_status(name): _move(name, rule) for name, rule in rules.items()}
    if ready is not None:
        found.setdefault(Status.COMPLETED, CardMove(ready))
    return found


def _status(name: str) -> Status:
    try:
        return Status(name)
    except ValueError:
        known = ", ".join(Status)
        raise ValueError(f"transition rule {name[:40]!r}: give a status: {known}") from None


def _move(name: str, rule: Any) -> CardMove:
    to: Any = rule
    out_of: Any = ()
    if isinstance(rule, Mapping) and set(rule) <= {"to", "from"}:
        to, out_of = rule.get("to"), rule.get("from", ())
    if not isinstance(out_of, list | tuple) or not all(map(_is_list, (to, *out_of))):
        raise ValueError(
            f"transition rule {name!r}: give the id of a list, 24 hexadecimal digits, or"
            ' {"to": ID, "from": [ID, …]}'
        )
    return CardMove(str(to), tuple(out_of))


def _is_list(value: Any) -> bool:
    return isinstance(value, str) and _LIST.fullmatch(value) is not None
