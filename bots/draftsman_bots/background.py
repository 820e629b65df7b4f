"""What is done beside the answer to a chat: private words, and windows that open.

Nothing of it is a job's: were it lost with the process, no job, answer or decision would be.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any, Final

MAX_ENTRIES: Final = 10_000
"""Things said once that are remembered."""
_log = logging.getLogger(__name__)


class BackgroundTasks:
    """Runs what nobody waits for, and remembers what was said."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._said: OrderedDict[object, None] = OrderedDict()
        self._drafts: OrderedDict[object, str] = OrderedDict()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do this beside; what it raises is one line of the log."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def idle(self) -> None:
        """Wait until nothing is being done."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self, seconds: float) -> None:
        """Wait so long for what is being done, and give up the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()

    def first(self, key: object) -> bool:
        """Return whether this is said for the first time since the process began."""
        known = key in self._said
        self._said[key] = None
        self._said.move_to_end(key)
        if len(self._said) > MAX_ENTRIES:
            self._said.popitem(last=False)
        return not known

    def save_draft(self, key: object, text: str) -> None:
        """Keep what somebody wrote until they say what it answers."""
        self._drafts[key] = text
        self._drafts.move_to_end(key)
        if len(self._drafts) > MAX_ENTRIES // 10:
            self._drafts.popitem(last=False)

    def draft(self, key: object) -> str:
        """Return what was kept, or ""."""
        return self._drafts.get(key, "")

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("background task failed: %s", _brief(error))


def _brief(error: BaseException) -> str:
    """Return what a chat calls an error, never a payload."""
    response = getattr(error, "response", None)
    data = getattr(response, "data", None)
    code = data.get("error") if isinstance(data, dict) else None
    return f"{type(error).__name__} {code}" if code else type(error).__name__
