"""Test tools for handlers: run a handler through its questions without a worker or a database.

result = await run_handler(deploy, payload={"to": "staging"}, answers={"go": True})
assert result.outcome == Done({"deployed": "staging"})

`replay` runs today's code against the jobs that a database has recorded.
"""

from __future__ import annotations

from draftsman.testing.handler_runs import (
    Clock,
    Deny,
    HandlerResult,
    Reply,
    RequestChanges,
    run_handler,
)
from draftsman.testing.replays import Replay, replay

__all__ = [
    "Clock",
    "Deny",
    "HandlerResult",
    "Replay",
    "Reply",
    "RequestChanges",
    "replay",
    "run_handler",
]
