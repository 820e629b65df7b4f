"""Background tasks of a bot, deduplication of notices, and drafts of answers.

Jobs, answers and decisions never depend on these tasks: they may be lost with the process.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any, Final

MAX_ENTRIES: Final = 10_000
"""Keys that are remembered for deduplication."""
_log = logging.getLogger(__name__)


class BackgroundTasks:
    """Background tasks of a bot, with the keys and drafts that it remembers."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._seen_keys: OrderedDict[object, None] = OrderedDict()
        self._drafts: OrderedDict[object, str] = OrderedDict()

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Start a task; an exception that it raises is logged."""
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    async def idle(self) -> None:
        """Wait until no task is running."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self, seconds: float) -> None:
        """Wait for the running tasks, and cancel them after the timeout."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()

    def first(self, key: object) -> bool:
        """Return whether this is the first call with this key in this process."""
        is_seen = key in self._seen_keys
        self._seen_keys[key] = None
        self._seen_keys.move_to_end(key)
        if len(self._seen_keys) > MAX_ENTRIES:
            self._seen_keys.popitem(last=False)
        return not is_seen

    def save_draft(self, key: object, text: str) -> None:
        """Save the text of an answer until its author chooses the question."""
        self._drafts[key] = text
        self._drafts.move_to_end(key)
        if len(self._drafts) > MAX_ENTRIES // 10:
            self._drafts.popitem(last=False)

    def draft(self, key: object) -> str:
        """Return the saved text, or ""."""
        return self._drafts.get(key, "")

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("background task failed: %s", _describe_error(error))


def _describe_error(error: BaseException) -> str:
    """Return the error's type and code for the log, never a payload."""
    response = getattr(error, "response", None)
    data = getattr(response, "data", None)
    code = data.get("error") if isinstance(data, dict) else None
    return f"{type(error).__name__} {code}" if code else type(error).__name__
