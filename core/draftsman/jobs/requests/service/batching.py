"""Batches that form while an earlier batch is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Generic, TypeVar

from draftsman.errors import DatabaseUnreachable

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BATCH: Final = 100
"""Maximum number of items in a batch."""
PATIENCE: Final = 1.0
"""Seconds after which a batch no longer delays later items, and is split."""


class Batcher(Generic[Item, Result]):
    """Calls a function with all items that arrived during its previous call.

    The function returns the result or the error of each item, in order. If it is canceled or
    raises an error other than DatabaseUnreachable, it must have had no effect: each item is then
    tried alone, so that no item fails because of another.
    """

    def __init__(
        self, call: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]]
    ) -> None:
        self._call = call
        self._waiting: list[_Entry[Item, Result]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_sending = False

    async def submit(self, item: Item) -> Result:
        """Return the result of an item; raises its error.

        A cancellation withdraws an item that is not under way yet. Later it waits for the batch,
        which is canceled when all its items are: the result shows whether the item had an effect.
        """
        entry: _Entry[Item, Result] = _Entry(item)
        self._waiting.append(entry)
        if not self._is_sending:
            self._is_sending = True
            self._spawn(self._send())
        try:
            return await entry.result
        except asyncio.CancelledError:
            if entry.batch is None:
                self._waiting.remove(entry)
                raise
            if not entry.is_resolved:
                entry.abandon()
        result = await entry.result
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        return result

    async def _send(self) -> None:
        """Send batches until no item waits."""
        await asyncio.sleep(0)  # items of the same iteration of the event loop share a batch
        while self._waiting:
            entries = self._waiting[:MAX_BATCH]
            self._waiting = self._waiting[MAX_BATCH:]
            batch = _Batch(self._call, entries)
            await asyncio.wait({batch.task}, timeout=PATIENCE)
            if not (batch.task.done() and batch.resolve()):
                self._spawn(self._finish(batch))
        self._is_sending = False

    async def _finish(self, batch: _Batch[Item, Result]) -> None:
        """Finish a batch that is slow or has failed; split it unless it has a single item."""
        if len(batch.entries) > 1:
            batch.task.cancel()
        await asyncio.wait({batch.task})
        if not batch.resolve():
            for entry in batch.entries:
                if not entry.is_resolved:
                    self._spawn(self._finish(_Batch(self._call, [entry])))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Entry(Generic[Item, Result]):
    """An item whose caller waits for its result."""

    __slots__ = ("batch", "is_abandoned", "is_resolved", "item", "result")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.batch: _Batch[Item, Result] | None = None
        """The batch that it is part of, once that is under way."""
        self.is_abandoned = False
        """Whether its caller was canceled."""
        self.is_resolved = False

    def abandon(self) -> None:
        """Replace the future, which was canceled with its caller; cancel a batch without others."""
        self.is_abandoned = True
        self.result = asyncio.get_running_loop().create_future()
        assert self.batch is not None  # noqa: S101 - it is under way
        if all(entry.is_abandoned for entry in self.batch.entries):
            self.batch.task.cancel()

    def resolve(self, result: Result | BaseException) -> None:
        """Set the result, unless the caller was canceled twice and does not wait any more."""
        self.is_resolved = True
        if self.result.done():
            if self.is_abandoned:
                return
            self.result = asyncio.get_running_loop().create_future()  # it is being canceled
        if isinstance(result, asyncio.CancelledError):
            self.result.cancel()
        elif isinstance(result, BaseException):
            self.result.set_exception(result)
        else:
            self.result.set_result(result)


class _Batch(Generic[Item, Result]):
    """A call under way."""

    def __init__(
        self,
        call: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]],
        entries: list[_Entry[Item, Result]],
    ) -> None:
        self.entries = entries
        for entry in entries:
            entry.batch = self
        self.task = asyncio.ensure_future(call([entry.item for entry in entries]))

    def resolve(self) -> bool:
        """Set the results of a call that ended; return False if the batch is to be split."""
        error = asyncio.CancelledError() if self.task.cancelled() else self.task.exception()
        if error is None:
            for entry, result in zip(self.entries, self.task.result(), strict=True):
                entry.resolve(result)
            return True
        splits = len(self.entries) > 1 and not isinstance(error, DatabaseUnreachable)
        for entry in self.entries:
            if not splits:
                entry.resolve(error)
            elif entry.is_abandoned:
                entry.resolve(asyncio.CancelledError())
        return not splits
