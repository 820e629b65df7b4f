"""Test tools for handlers: run a handler through its questions without a worker or a database.

result = await run_handler(deploy, payload={"to": "staging"}, answers={"go": True})
assert result.outcome == Done({"deployed": "staging"})

`replay` runs today's code against the jobs that a database has recorded. `MemoryApp` and
`WorkerApp` are what the fixtures `draftsman_app` and `draftsman_worker` of pytest provide.
"""

from __future__ import annotations

from draftsman.testing.drained_app import AppJob, DrainedApp
from draftsman.testing.handler_runs import (
    Clock,
    Deny,
    HandlerResult,
    Reply,
    RequestChanges,
    run_handler,
)
from draftsman.testing.memory_app import MemoryApp
from draftsman.testing.replays import Replay, replay
from draftsman.testing.worker_app import WorkerApp

__all__ = [
    "AppJob",
    "Clock",
    "Deny",
    "DrainedApp",
    "HandlerResult",
    "MemoryApp",
    "Replay",
    "Reply",
    "RequestChanges",
    "WorkerApp",
    "replay",
    "run_handler",
]
