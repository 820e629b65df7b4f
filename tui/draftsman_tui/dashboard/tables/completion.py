"""Completion of command lines, filters and form fields."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

MAX_COMPLETIONS: Final = 100
"""Completions at most."""
Completer = Callable[[str], Sequence[str]]
"""Returns completions of a line, best first."""
Completions = Mapping[str, Sequence[str]]
"""Candidates by filter field, or by `COLUMN`, `TABLE`, `VIEW`."""


def commands(
    text: str, names: Iterable[str], takes: Mapping[str, str], completions: Completions
) -> list[str]:
    """Complete a command line; `takes` has the arguments by command."""
    name, space, arguments = text.lstrip().partition(" ")
    if not space:
        return _first(_starting_with(name, names))
    argument = takes.get(name, "")
    if argument.startswith("FILTER"):
        return [f"{name} {candidate}" for candidate in filters(arguments, completions)]
    before, _, last = arguments.rpartition(" ")
    if argument in completions:
        candidates = completions[argument]
    elif last.casefold().startswith("d-"):
        candidates = completions.get("JOB", ())
    else:
        candidates = argument.split("|") if "|" in argument else ()
    head = f"{name} {before} " if before else f"{name} "
    return _first(head + candidate for candidate in _starting_with(last, candidates))


def filters(text: str, completions: Completions) -> list[str]:
    """Complete the last word of a filter: a field or its value."""
    before, space, last = text.rpartition(" ")
    field, colon, typed = last.partition(":")
    head = before + space
    if not colon:
        names = [f"{name}:" for name in completions if name.islower()] + ["age<", "age>"]
        return _first(head + candidate for candidate in _starting_with(last, names))
    if field not in completions:
        return []
    done, comma, prefix = typed.rpartition(",")
    candidates = [
        candidate
        for candidate in _starting_with(prefix, completions[field])
        if candidate not in done.split(",")
    ]
    return _first(
        f"{head}{field}:{done}{comma}{shlex.quote(candidate)}" for candidate in candidates
    )


def form_field(text: str, candidates: Sequence[str], *, multiple: bool = False) -> list[str]:
    """Complete the value of a form field, or with `multiple` its last word, which a space follows.

    Candidates contain the text; those that start with it come first.
    """
    word = text.strip()
    if multiple:
        word = "" if text.endswith((" ", ",")) else text.replace(",", " ").split(" ")[-1]
    matches = [name for name in candidates if word.casefold() in name.casefold()]
    first = _starting_with(word, matches)
    ordered = [*first, *(name for name in matches if name not in first)]
    if ordered == [word]:
        return []
    before = text[: len(text) - len(word)]
    return [f"{before}{name} " for name in ordered] if multiple else ordered


def _starting_with(text: str, candidates: Iterable[str]) -> list[str]:
    return [
        candidate for candidate in candidates if candidate.casefold().startswith(text.casefold())
    ]


def _first(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))[:MAX_COMPLETIONS]
