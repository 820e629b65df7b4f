"""Batches that form while an earlier call is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from copy import copy
from typing import Any, Final, Generic, TypeVar

from draftsman.errors import DatabaseUnreachable

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BATCH: Final = 100
"""Maximum number of items in a batch."""
PATIENCE: Final = 1.0
"""Seconds after which a call no longer delays later items."""


class Batcher(Generic[Item, Result]):
    """Calls a function with all items that arrived during its previous call.

    An item that meets no other is passed on at once, in the task of its caller.

    The function returns the result or the error of each item, in order; None is for an item that
    is to be tried alone. If it raises an error other than DatabaseUnreachable, it must have had no
    effect: each item is then tried alone, so that no item fails because of another.
    """

    def __init__(
        self, call: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception | None]]]
    ) -> None:
        self._call = call
        self._waiting: list[_Entry[Item, Result]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._single: asyncio.Future[None] | None = None
        """Done at the end of a call in the task of its caller, which delays later items."""
        self._is_sending = False

    async def submit(self, item: Item) -> Result:
        """Return the result of an item; raises its error.

        A cancellation withdraws an item that waits. Once a call with it is under way, the end of
        that is waited for, and it is canceled when all its items are. The CancelledError of an item
        that has a result nevertheless has it as its argument.
        """
        if self._single is None and not self._is_sending:
            return await self._submit_single(item)
        entry: _Entry[Item, Result] = _Entry(item)
        self._waiting.append(entry)
        if not self._is_sending:
            self._is_sending = True
            self._spawn(self._send())
        try:
            return entry.value(await asyncio.shield(entry.outcome))
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
                raise
            entry.abandon()
            await asyncio.wait({entry.outcome})
            outcome = entry.outcome.result()
            if isinstance(outcome, BaseException):
                raise
            raise asyncio.CancelledError(outcome) from None

    async def _submit_single(self, item: Item) -> Result:
        end = asyncio.get_running_loop().create_future()
        self._single = end
        try:
            (result,) = await self._call([item])
        finally:
            if self._single is end:
                self._single = None
            end.set_result(None)
        assert result is not None  # noqa: S101 - it was tried alone
        if isinstance(result, Exception):
            raise result
        return result

    async def _send(self) -> None:
        """Send batches until no item waits."""
        if self._single is not None:
            await asyncio.wait({self._single}, timeout=PATIENCE)
            self._single = None
        while self._waiting:
            entries = self._waiting[:MAX_BATCH]
            self._waiting = self._waiting[MAX_BATCH:]
            await asyncio.wait({self._begin(entries)}, timeout=PATIENCE)
            await asyncio.sleep(0)  # callers that submit again at once share the next batch
        self._is_sending = False

    def _begin(self, entries: Sequence[_Entry[Item, Result]]) -> asyncio.Task[None]:
        task = self._spawn(self._run(entries))
        for entry in entries:
            entry.task = task
            entry.batch = entries
        return task

    async def _run(self, entries: Sequence[_Entry[Item, Result]]) -> None:
        """Call the function for these items, and set their outcomes."""
        outcomes: Sequence[Result | BaseException | None]
        try:
            outcomes = await self._call([entry.item for entry in entries])
        except asyncio.CancelledError as error:
            outcomes = [error] * len(entries)
        except Exception as error:
            if len(entries) > 1 and not isinstance(error, DatabaseUnreachable):
                outcomes = [None] * len(entries)
            else:
                outcomes = [error, *(_twin(error) for _ in entries[1:])]
        for entry, outcome in zip(entries, outcomes, strict=True):
            if outcome is not None:
                entry.outcome.set_result(outcome)
            elif entry.is_abandoned:
                entry.outcome.set_result(asyncio.CancelledError())
            else:
                self._begin([entry])

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Entry(Generic[Item, Result]):
    """An item whose caller waits for its outcome."""

    __slots__ = ("batch", "is_abandoned", "item", "outcome", "task")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: asyncio.Future[Result | BaseException] = (
            asyncio.get_running_loop().create_future()
        )
        """Its result or its error."""
        self.batch: Sequence[_Entry[Item, Result]] = ()
        """The items of the call that is under way, and its task."""
        self.task: asyncio.Task[None] | None = None
        self.is_abandoned = False
        """Whether its caller was canceled."""

    def value(self, outcome: Result | BaseException) -> Result:
        """Return the result; raises the error."""
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def abandon(self) -> None:
        """Cancel the call under way if all its items are abandoned."""
        self.is_abandoned = True
        if self.task is not None and all(entry.is_abandoned for entry in self.batch):
            self.task.cancel()


def _twin(error: Exception) -> Exception:
    """Return the same error for another caller, who may add notes to it."""
    twin = copy(error)
    twin.__cause__ = error.__cause__
    return twin
