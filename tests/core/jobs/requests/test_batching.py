"""Batches that form under load: who shares a call, and what one item's failure does to others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from draftsman.errors import DatabaseUnreachable, UsageError
from draftsman.jobs.requests.service import batching
from draftsman.jobs.requests.service.batching import Batcher
from draftsman_testing.waits import background

pytestmark = pytest.mark.timeout(15)  # an item whose result is never set waits forever


class Calls:
    """A function whose calls wait until they are released, and its history."""

    def __init__(self) -> None:
        self.begun: list[list[str]] = []
        self.canceled: list[list[str]] = []
        self.gate = asyncio.Semaphore(0)
        self.fails: Callable[[Sequence[str]], Exception | None] = lambda _: None
        self._changed = asyncio.Condition()

    async def __call__(self, items: Sequence[str]) -> list[str | Exception]:
        batch = list(items)
        self.begun.append(batch)
        await self._notify()
        try:
            await self.gate.acquire()
        except asyncio.CancelledError:
            self.canceled.append(batch)
            await self._notify()
            raise
        if (error := self.fails(batch)) is not None:
            raise error
        return [KeyError(item) if item.startswith("wrong") else item.upper() for item in batch]

    def release(self, count: int = 1) -> None:
        for _ in range(count):
            self.gate.release()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(condition)

    async def until_begun(self, count: int) -> None:
        await self.until(lambda: len(self.begun) >= count)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


@pytest.fixture
async def calls() -> Calls:
    return Calls()


@pytest.fixture
async def batcher(calls: Calls) -> AsyncIterator[Batcher[str, str]]:
    """Provide a batcher; tasks that a failed test leaves end at their second cancellation."""
    earlier = asyncio.all_tasks()
    yield Batcher(calls)
    for _ in range(2):
        for task in asyncio.all_tasks() - earlier:
            if task is not asyncio.current_task():
                task.cancel()
        await asyncio.sleep(0)


async def _started(*items: str, batcher: Batcher[str, str]) -> list[asyncio.Task[str]]:
    """Submit items, and let them arrive."""
    tasks = [asyncio.create_task(batcher.submit(item)) for item in items]
    await asyncio.sleep(0)
    return tasks


async def _first(calls: Calls, batcher: Batcher[str, str]) -> asyncio.Task[str]:
    """Start a call with the single item `a`."""
    (task,) = await _started("a", batcher=batcher)
    await calls.until_begun(1)
    return task


async def test_items_that_arrive_during_a_call_share_the_next_call(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    first = await _first(calls, batcher)
    others = await _started("b", "c", "d", batcher=batcher)
    assert calls.begun == [["a"]]
    calls.release()
    await calls.until_begun(2)
    assert first.done()
    assert not any(task.done() for task in others), "an item ends after its own call"
    calls.release()
    assert await asyncio.gather(first, *others) == ["A", "B", "C", "D"]
    assert calls.begun == [["a"], ["b", "c", "d"]]


async def test_batch_has_a_maximum_size(
    calls: Calls, batcher: Batcher[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH", 2)
    calls.release(2)
    await asyncio.gather(*await _started("a", "b", "c", batcher=batcher))
    assert calls.begun == [["a", "b"], ["c"]]


async def test_error_of_an_item_is_raised_for_that_item(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    calls.release()
    tasks = await _started("a", "wrong", "b", batcher=batcher)
    result = await asyncio.gather(*tasks, return_exceptions=True)
    assert result[0::2] == ["A", "B"]
    assert isinstance(result[1], KeyError)
    assert calls.begun == [["a", "wrong", "b"]]


async def test_failed_batch_is_tried_item_by_item(calls: Calls, batcher: Batcher[str, str]) -> None:
    calls.fails = lambda batch: UsageError("bad") if "bad" in batch else None
    calls.release(4)
    tasks = await _started("a", "bad", "b", batcher=batcher)
    result = await asyncio.gather(*tasks, return_exceptions=True)
    assert result[0::2] == ["A", "B"]
    assert isinstance(result[1], UsageError)
    assert calls.begun == [["a", "bad", "b"], ["a"], ["bad"], ["b"]]


async def test_lost_database_fails_the_batch_without_a_second_call(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    """The batch may be committed: each caller finds out by its key."""
    calls.fails = lambda _: DatabaseUnreachable("gone")
    calls.release()
    tasks = await _started("a", "b", batcher=batcher)
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(result, DatabaseUnreachable)
    assert calls.begun == [["a", "b"]]


async def test_slow_batch_is_split_and_delays_no_later_item(
    calls: Calls, batcher: Batcher[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "PATIENCE", 0.01)
    slow = await _started("a", "b", batcher=batcher)
    await calls.until_begun(3)
    assert calls.canceled == [["a", "b"]]
    assert calls.begun == [["a", "b"], ["a"], ["b"]]
    (later,) = await _started("c", batcher=batcher)
    await calls.until_begun(4)
    calls.release(3)
    assert await asyncio.gather(*slow, later) == ["A", "B", "C"]
    assert calls.canceled == [["a", "b"]], "an item alone is not canceled, however slow"


async def test_canceled_item_that_waits_is_withdrawn(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    first = await _first(calls, batcher)
    canceled, other = await _started("b", "c", batcher=batcher)
    canceled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await canceled
    calls.release(2)
    assert [await first, await other] == ["A", "C"]
    assert calls.begun == [["a"], ["c"]]


async def test_call_is_canceled_when_nobody_waits_for_it(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    tasks = await _started("a", "b", batcher=batcher)
    await calls.until_begun(1)
    for task in tasks:
        task.cancel()
    for task in tasks:
        with pytest.raises(asyncio.CancelledError):
            await task
    assert calls.canceled == [["a", "b"]]
    calls.release()
    async with background(batcher.submit("c")) as later:
        assert await later == "C"


async def test_canceled_item_of_a_shared_call_learns_its_result(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    """The call has an effect for it: a caller who reports a cancellation would be wrong."""
    canceled, other = await _started("a", "b", batcher=batcher)
    await calls.until_begun(1)
    canceled.cancel()
    await asyncio.sleep(0)
    assert not canceled.done()
    calls.release()
    assert [await canceled, await other] == ["A", "B"]
    assert canceled.cancelling() == 0
    assert calls.canceled == []


@pytest.mark.parametrize("iterations", range(10))
async def test_canceled_item_is_canceled_only_with_its_call(
    calls: Calls, batcher: Batcher[str, str], iterations: int
) -> None:
    """The cancellation comes some iterations of the event loop after the call may end."""
    item = await _first(calls, batcher)
    calls.release()
    for _ in range(iterations):
        await asyncio.sleep(0)
    item.cancel()
    (result,) = await asyncio.gather(item, return_exceptions=True)
    assert isinstance(result, asyncio.CancelledError) if calls.canceled else result == "A"


async def test_second_cancellation_is_immediate(calls: Calls, batcher: Batcher[str, str]) -> None:
    twice, other = await _started("a", "b", batcher=batcher)
    await calls.until_begun(1)
    for _ in range(2):
        twice.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await twice
    calls.release()
    assert await other == "B"
