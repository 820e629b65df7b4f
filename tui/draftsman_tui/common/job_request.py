"""Messages about rejected requests, in the terms of the command line and of the form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from draftsman.errors import RejectedField

UNCHECKED: Final = "to submit it anyway, use --unchecked"
ADD_REPO: Final = "or first run: draftsman repos add"
OTHER_TEXT_IGNORED: Final = "your request was added to its history"
"""Note on a request that joined a live job."""


@contextmanager
def options_named() -> Iterator[None]:
    """Name the options of `draftsman submit` in the message of a RejectedField."""
    try:
        yield
    except RejectedField as error:
        raise error.reworded(option_text(error)) from None


def option_text(error: RejectedField) -> str:
    """Return the message of the command line."""
    match error.field, error.rule:
        case "text", "required":
            return f"{error.problem}, e.g. draftsman submit 'Tidy up'; see --help"
        case "agent", "required":
            return f"--{error.problem}; or set default_agent in the configuration"
        case "repo", "no_repos":
            return f"no repositories yet; use --repo PATH or URL, {ADD_REPO}"
        case "repo", "unknown":
            return f"--repo {error.value}: {error.problem}; {_repo_hint(error)}"
        case "repo", _:
            return f"--repo {error.value}: {error.problem}"
        case "notify", _:
            return f"--notify {error.value[:60]}: {error.problem}; {UNCHECKED}"
    return f"{error.reason}; {UNCHECKED}" if error.skippable else error.reason


def field_text(error: RejectedField) -> str:
    """Return the message beside a field of the form."""
    return f"{error.problem}, {ADD_REPO}" if error.rule == "no_repos" else error.problem


def _repo_hint(error: RejectedField) -> str:
    if error.known is None:
        return str(error.hint or "")
    return f"known repositories: {', '.join(error.known) or 'none'}; {error.hint or ''}"
