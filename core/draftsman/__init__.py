"""draftsman: one durable job from a request to the answer to the end.

    invocation -> intake -> job -> claim -> run -> question -> answer -> resume -> outcome
    domain/       services/ domain/ services/ loops/  services/   services/ same     services/
    invocation    intake    job     claim     worker  questions   questions transact. settle

`domain` has the nouns, `store` the rows, `services` the arrows (each one transaction), `handlers`
how work is done, `loops` what runs for ever, `runtime` everything wired. What a handler of yours
needs is exported here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from draftsman.domain.outcome import Cancel, Done, Outcome, Snooze
    from draftsman.domain.question import Answered, Choice, NoAnswer
    from draftsman.errors import Failure
    from draftsman.handlers.context import RunContext

    __version__: str

__all__ = [
    "Answered",
    "Cancel",
    "Choice",
    "Done",
    "Failure",
    "NoAnswer",
    "Outcome",
    "RunContext",
    "Snooze",
    "__version__",
]

_HOME = {
    "Answered": "domain.question",
    "Cancel": "domain.outcome",
    "Choice": "domain.question",
    "Done": "domain.outcome",
    "Failure": "errors",
    "NoAnswer": "domain.question",
    "Outcome": "domain.outcome",
    "RunContext": "handlers.context",
    "Snooze": "domain.outcome",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `draftsman --help` loads no driver."""
    if name == "__version__":
        return _version()
    if name not in _HOME:
        raise AttributeError(f"module 'draftsman' has no attribute {name!r}")
    return getattr(import_module(f"draftsman.{_HOME[name]}"), name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # a mail parser comes with it

    try:
        return version("draftsman")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "0.0.0"
