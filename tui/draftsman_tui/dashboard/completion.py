"""What a line that was begun may become: names of commands, and what they take. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

MOST: Final = 100
"""Completions at most."""
Values = Mapping[str, Sequence[str]]
"""What is known to be there, by what it is: a field of the filter, `COLUMN`, `TABLE`, `VIEW`."""


def commands(
    text: str, names: Iterable[str], takes: Mapping[str, str], values: Values
) -> list[str]:
    """Return what a `:` line may become; `takes` is what may follow each name."""
    name, space, rest = text.lstrip().partition(" ")
    if not space:
        return _first(_beginning(name, names))
    wanted = takes.get(name, "")
    if wanted.startswith("FILTER"):
        return [f"{name} {one}" for one in filters(rest, values)]
    known = values[wanted] if wanted in values else wanted.split("|") if "|" in wanted else ()
    before, _, last = rest.rpartition(" ")
    head = f"{name} {before} " if before else f"{name} "
    return _first(head + one for one in _beginning(last, known))


def filters(text: str, values: Values) -> list[str]:
    """Return what a filter may become: its last word is a field, or a value of one."""
    before, space, last = text.rpartition(" ")
    field, colon, value = last.partition(":")
    head = before + space
    if not colon:
        names = [f"{name}:" for name in values if name.islower()] + ["age<", "age>"]
        return _first(head + one for one in _beginning(last, names))
    if field not in values:
        return []
    done, comma, open_ = value.rpartition(",")
    known = [one for one in _beginning(open_, values[field]) if one not in done.split(",")]
    return _first(f"{head}{field}:{done}{comma}{_written(one)}" for one in known)


def _beginning(text: str, known: Iterable[str]) -> list[str]:
    return [one for one in known if one.casefold().startswith(text.casefold())]


def _first(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))[:MOST]


def _written(value: str) -> str:
    return shlex.quote(value)
