"""What a demo in a chat leaves behind: removed at its end, or by the next demo if it was killed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from draftsman.errors import DraftsmanError
from draftsman.formats.amounts import counted
from draftsman.jobs.job import TERMINAL

if TYPE_CHECKING:
    from draftsman.events.event import Event
    from draftsman.people.actor import Actor
    from draftsman.runtime import Runtime

RECORDS: Final = "demo-chat-*.json"
"""Files of demos in the data directory, which a running demo has locked."""
Cursor = tuple[int, int, int]
RemoveBoard = Callable[[str], Awaitable[object]]
"""Stops watching a board; raises DraftsmanError if it is not watched."""


class UnfinishedJobs:
    """The jobs that began after an event and have not ended."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self._numbers: set[int] = set()

    def add(self, event: Event) -> None:
        """Take the next event into account."""
        self.cursor = event.cursor
        if event.to_status in TERMINAL:
            self._numbers.discard(event.job)
        elif event.to_status is not None:
            self._numbers.add(event.job)

    async def cancel(self, runtime: Runtime, actor: Actor) -> int:
        """Cancel the jobs; return their number."""
        while events := await runtime.read_model.events(self.cursor):
            for event in events:
                self.add(event)
        for number in self._numbers:
            await runtime.job_control.cancel(number, actor, "the demo ended", force=True)
        return len(self._numbers)


@contextlib.contextmanager
def recorded(folder: Path, cursor: Cursor, board: str) -> Iterator[None]:
    """Record for the block what a demo would leave behind: its jobs, and a board or ""."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RECORDS.replace("*", str(os.getpid()))
    written = path.with_suffix(".new")
    with written.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump({"cursor": cursor, "board": board}, file)
        file.flush()
        written.rename(path)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


async def clean_up(runtime: Runtime, actor: Actor, folder: Path, remove_board: RemoveBoard) -> str:
    """Remove what killed demos left behind; return what was removed, "" if there were none."""
    jobs = boards = demos = 0
    for path in sorted(folder.glob(RECORDS)):
        with path.open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # of a demo that runs
            record = json.load(file)
            demos += 1
            first, second, third = record["cursor"]
            jobs += await UnfinishedJobs((first, second, third)).cancel(runtime, actor)
            if record["board"]:
                with contextlib.suppress(DraftsmanError):  # it was not watched yet
                    await remove_board(record["board"])
                    boards += 1
            path.unlink(missing_ok=True)
    if not demos:
        return ""
    removed = [f"canceled {counted(jobs, 'job')}"] if jobs else []
    removed += [f"removed {counted(boards, 'board')}"] if boards else []
    return f"an earlier demo was killed: {' and '.join(removed) or 'nothing was left'}"
