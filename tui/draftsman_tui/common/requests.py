"""Messages about rejected requests, in the terms of the command line and of the form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from draftsman.errors import FieldError, RejectedField, UsageError

UNCHECKED: Final = "to submit it anyway, use --unchecked"
ADD_REPO: Final = "or first run: draftsman repos add"
_OPTIONS: Final = {
    "subject_key": "subject",
    "unique.by": "unique-by",
    "unique.seconds": "unique-for",
    "unique.debounce": "debounce",
    "unique.debounce_limit": "debounce-limit",
}
"""Options of `draftsman submit` whose field has another name."""


@contextmanager
def options_named() -> Iterator[None]:
    """Name the options of `draftsman submit` in the message of an invalid field."""
    try:
        yield
    except RejectedField as error:
        raise error.reworded(option_text(error)) from None
    except FieldError as error:
        if (option := _OPTIONS.get(error.field)) is None:
            raise
        raise UsageError(f"--{option}: {error.problem}") from None


def option_text(error: RejectedField) -> str:
    """Return the message of the command line."""
    problem = _problem(error)
    match error.field, error.rule:
        case "text", "required":
            return f"{problem}, e.g. draftsman submit 'Tidy up'; see --help"
        case "agent", "required":
            return f"--{problem}; or set default_agent in the configuration"
        case "repo", "no_repos":
            return f"no repositories yet; use --repo PATH or URL, {ADD_REPO}"
        case "repo", "unknown":
            return f"--repo {error.value}: {problem}; {_repo_hint(error)}"
        case "repo", _:
            return f"--repo {error.value}: {problem}"
        case "notify", rule:
            add = "; first run: draftsman repos add" if rule == "not_registered" else ""
            return f"--notify {error.value[:60]}: {problem}{add}{_skip_hint()}"
        case "agent", _:
            return problem
    return f"{error.reason}{_skip_hint()}" if error.skippable else error.reason


def _skip_hint() -> str:
    """Return how to submit it anyway, if the current command can."""
    context = click.get_current_context(silent=True)
    options = () if context is None else context.command.params
    return f"; {UNCHECKED}" if any(option.name == "unchecked" for option in options) else ""


def field_text(error: RejectedField) -> str:
    """Return the message beside a field of the form."""
    return f"{_problem(error)}, {ADD_REPO}" if error.rule == "no_repos" else _problem(error)


def _problem(error: RejectedField) -> str:
    """Return the problem in the words of the terminal, without the name of the field."""
    known = ", ".join(error.known or ())
    match error.field, error.rule:
        case "text", "required":
            return "instructions are required"
        case "agent", "required":
            return f"agent is required: {known}"
        case "agent", _:
            return f"unknown agent {error.value!r}; available: {known}"
        case "repo", "no_repos":
            return "no repositories yet; use a path or URL"
        case "repo", "unknown":
            return "no directory or repository with this name"
    return error.problem


def _repo_hint(error: RejectedField) -> str:
    if error.known is None:
        return str(error.hint or "")
    return f"known repositories: {', '.join(error.known) or 'none'}; {error.hint or ''}"
