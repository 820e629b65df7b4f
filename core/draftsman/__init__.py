"""draftsman: durable jobs over PostgreSQL that ask people questions.

    request ── job ── claim ── run ── question ── answer ── resume ── outcome

A package has the rules of a capability, its SQL in `store` and its transactions in `service`;
`runtime` connects them, and `client` is the API for other programs.
This package exports the client (`Draftsman`) and the names that job types need (`job`).
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` takes 3 ms of the 25 that a guard needs to start
if TYPE_CHECKING:
    from typing import Any

    from draftsman.client import Draftsman
    from draftsman.client.asynchronous import Client
    from draftsman.client.blocking import BlockingClient
    from draftsman.client.requests import Request
    from draftsman.errors import Failure
    from draftsman.handlers.asks import Approve, Ask
    from draftsman.handlers.batches import BatchRun
    from draftsman.handlers.blocking_context import BlockingRunContext
    from draftsman.handlers.context import RunContext
    from draftsman.job_types.declaration import job
    from draftsman.job_types.lifespan import lifespan, middleware
    from draftsman.job_types.schedules import Every
    from draftsman.job_types.secret_name import SecretName
    from draftsman.jobs.runs.outcome import Cancel, Done, Outcome, Snooze
    from draftsman.jobs.runs.run import ClaimedJob
    from draftsman.people.policy import Person
    from draftsman.questions.question import Answered, NoAnswer
    from draftsman.questions.question_spec import Choice

    __version__: str

__all__ = [
    "Answered",
    "Approve",
    "Ask",
    "BatchRun",
    "BlockingClient",
    "BlockingRunContext",
    "Cancel",
    "Choice",
    "ClaimedJob",
    "Client",
    "Done",
    "Draftsman",
    "Every",
    "Failure",
    "NoAnswer",
    "Outcome",
    "Person",
    "Request",
    "RunContext",
    "SecretName",
    "Snooze",
    "__version__",
    "job",
    "lifespan",
    "middleware",
]

_MODULES = {
    "Answered": "questions.question",
    "Approve": "handlers.asks",
    "Ask": "handlers.asks",
    "BatchRun": "handlers.batches",
    "BlockingClient": "client.blocking",
    "BlockingRunContext": "handlers.blocking_context",
    "Cancel": "jobs.runs.outcome",
    "Choice": "questions.question_spec",
    "ClaimedJob": "jobs.runs.run",
    "Client": "client.asynchronous",
    "Done": "jobs.runs.outcome",
    "Draftsman": "client",
    "Failure": "errors",
    "NoAnswer": "questions.question",
    "Outcome": "jobs.runs.outcome",
    "Person": "people.policy",
    "Request": "client.requests",
    "RunContext": "handlers.context",
    "SecretName": "job_types.secret_name",
    "Snooze": "jobs.runs.outcome",
    "Every": "job_types.schedules",
    "job": "job_types.declaration",
    "lifespan": "job_types.lifespan",
    "middleware": "job_types.lifespan",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `draftsman --help` loads no driver."""
    from importlib import import_module

    if name == "__version__":
        return import_module("draftsman.version").installed()
    if name not in _MODULES:
        raise AttributeError(f"module 'draftsman' has no attribute {name!r}")
    return getattr(import_module(f"draftsman.{_MODULES[name]}"), name)
