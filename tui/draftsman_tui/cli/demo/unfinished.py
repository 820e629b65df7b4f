"""What a demo in a chat leaves behind: removed at its end.

If it was killed, the next demo of the same chat goes on with it, and another demo removes it. A
data directory has a single demo in a chat at a time: all of them would take its jobs and messages.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from draftsman.errors import DraftsmanError, UsageError
from draftsman.formats.amounts import counted
from draftsman.jobs.job import TERMINAL

if TYPE_CHECKING:
    from draftsman.events.event import Event
    from draftsman.people.actor import Actor
    from draftsman.runtime import Runtime

LOCK: Final = "demo.lock"
"""The file that the running demo has locked, with the id of its process."""
RECORDS: Final = "demo-chat-*.json"
"""Files of demos in the data directory."""
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


@dataclass(frozen=True, slots=True)
class Left:
    """What a demo leaves behind while it runs: its jobs, a board or "", and its fake."""

    cursor: Cursor
    """After which its jobs began."""
    board: str = ""
    story: str = ""
    """Which demos go on with it: those of this version, chat, agent and repository."""
    world: str = ""
    """The name of the file with the state of its fake."""


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other demos in a chat out of a data directory for the block; raises UsageError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise UsageError(
                f"a demo in a chat already runs in {folder} (process {file.read().strip() or '?'});"
                " end it with Ctrl-C in its terminal first"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextlib.contextmanager
def recorded(folder: Path, left: Left) -> Iterator[None]:
    """Record for the block what a demo would leave behind, with the state of its fake."""
    path = _own_record(folder)
    written = path.with_suffix(".new")
    written.write_text(json.dumps(asdict(left)), encoding="utf-8")
    written.rename(path)
    try:
        yield
    finally:
        _remove(path, left)


def _own_record(folder: Path) -> Path:
    return folder / RECORDS.replace("*", str(os.getpid()))


def _remove(path: Path, left: Left) -> None:
    path.unlink(missing_ok=True)
    if left.world:
        path.with_name(left.world).unlink(missing_ok=True)


def world_name() -> str:
    """Return the name of the file with the state of the fake of this demo."""
    return f"demo-chat-{os.getpid()}.world"


def _killed(folder: Path) -> Iterator[tuple[Path, Left]]:
    """Yield the records of killed demos."""
    for path in sorted(folder.glob(RECORDS)):
        record = json.loads(path.read_text(encoding="utf-8"))
        first, second, third = record.pop("cursor")
        yield path, Left((first, second, third), **record)


def take_over(folder: Path, story: str, can_go_on: Callable[[Path], bool]) -> Left | None:
    """Return what a killed demo of the same story left, which is this demo's from now on."""
    for path, left in _killed(folder):
        world = path.with_name(left.world)
        if left.world and left.story == story and world.exists() and can_go_on(world):
            path.rename(_own_record(folder))
            return left
    return None


async def clean_up(
    runtime: Runtime,
    actor: Actor,
    folder: Path,
    remove_board: RemoveBoard,
    taken: Left | None = None,
) -> str:
    """Remove what killed demos left behind, but what this one has `taken` over.

    Returns what was removed, "" if there was none.
    """
    jobs = boards = demos = 0
    for path, left in _killed(folder):
        if left == taken:
            continue
        demos += 1
        jobs += await UnfinishedJobs(left.cursor).cancel(runtime, actor)
        if left.board:
            with contextlib.suppress(DraftsmanError):  # it was not watched yet
                await remove_board(left.board)
                boards += 1
        _remove(path, left)
    if not demos:
        return ""
    removed = [f"canceled {counted(jobs, 'job')}"] if jobs else []
    removed += [f"removed {counted(boards, 'board')}"] if boards else []
    return f"an earlier demo was killed: {' and '.join(removed) or 'nothing was left'}"
