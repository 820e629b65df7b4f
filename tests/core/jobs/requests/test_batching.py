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

    async def __call__(self, items: Sequence[str]) -> list[str | Exception | None]:
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
        return [self._result(item, alone=len(batch) == 1) for item in batch]

    def _result(self, item: str, *, alone: bool) -> str | Exception | None:
        if item.startswith("wrong"):
            return KeyError(item)
        return None if item == "later" and not alone else item.upper()

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


async def _shared(*items: str, calls: Calls, batcher: Batcher[str, str]) -> list[asyncio.Task[str]]:
    """Start a call with these items, after that of an item of its own."""
    first, *tasks = await _started("first", *items, batcher=batcher)
    calls.release()
    assert await first == "FIRST"
    await calls.until_begun(2)
    assert calls.begun == [["first"], [*items]]
    return tasks


async def test_item_alone_is_passed_on_without_a_task(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    """Nothing is added to the time of a caller that meets no other."""
    calls.release(2)
    before = asyncio.all_tasks()
    assert [await batcher.submit("a"), await batcher.submit("b")] == ["A", "B"]
    assert asyncio.all_tasks() == before
    assert calls.begun == [["a"], ["b"]]


async def test_items_that_arrive_during_a_call_share_the_next_call(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    first, *others = await _started("a", "b", "c", "d", batcher=batcher)
    assert calls.begun == [["a"]]
    calls.release()
    await calls.until_begun(2)
    assert first.done()
    assert not any(task.done() for task in others), "an item ends after its own call"
    calls.release()
    assert await asyncio.gather(first, *others) == ["A", "B", "C", "D"]
    assert calls.begun == [["a"], ["b", "c", "d"]]


async def test_callers_that_submit_again_at_once_share_each_call(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    async def submit_each(*items: str) -> list[str]:
        return [await batcher.submit(item) for item in items]

    async with background(
        asyncio.gather(*(submit_each(*(f"{name}{n}" for n in "123")) for name in "abc"))
    ) as results:
        for count in range(1, 5):
            await calls.until_begun(count)
            calls.release()
        assert await results == [["A1", "A2", "A3"], ["B1", "B2", "B3"], ["C1", "C2", "C3"]]
    assert calls.begun == [["a1"], ["b1", "c1", "a2"], ["b2", "c2", "a3"], ["b3", "c3"]]


async def test_batch_has_a_maximum_size(
    calls: Calls, batcher: Batcher[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MAX_BATCH", 2)
    tasks = await _started("a", "b", "c", "d", batcher=batcher)
    calls.release(3)
    await asyncio.gather(*tasks)
    assert calls.begun == [["a"], ["b", "c"], ["d"]]


@pytest.mark.parametrize("items", [("wrong",), ("a", "wrong", "b")])
async def test_error_of_an_item_is_raised_for_that_item(
    calls: Calls, batcher: Batcher[str, str], items: tuple[str, ...]
) -> None:
    tasks = await _started(*items, batcher=batcher)
    calls.release(2)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for item, result in zip(items, results, strict=True):
        assert isinstance(result, KeyError) if item == "wrong" else result == item.upper()


async def test_failed_batch_is_tried_item_by_item(calls: Calls, batcher: Batcher[str, str]) -> None:
    calls.fails = lambda batch: UsageError("bad") if "bad" in batch else None
    tasks = await _shared("a", "bad", "b", calls=calls, batcher=batcher)
    calls.release(4)
    result = await asyncio.gather(*tasks, return_exceptions=True)
    assert result[0::2] == ["A", "B"]
    assert isinstance(result[1], UsageError)
    assert calls.begun[2:] == [["a"], ["bad"], ["b"]]


async def test_item_without_result_is_tried_alone(calls: Calls, batcher: Batcher[str, str]) -> None:
    tasks = await _shared("a", "later", "b", calls=calls, batcher=batcher)
    calls.release(2)
    assert await asyncio.gather(*tasks) == ["A", "LATER", "B"]
    assert calls.begun[2:] == [["later"]]


async def test_lost_database_fails_the_batch_without_a_second_call(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    """The batch may be committed: each caller finds out by its key, and notes what it did."""
    cause = OSError("cut")
    tasks = await _shared("a", "b", calls=calls, batcher=batcher)
    calls.fails = lambda _: _caused(DatabaseUnreachable("gone"), cause)
    calls.release()
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    for name, error in zip("ab", errors, strict=True):
        assert isinstance(error, DatabaseUnreachable)
        assert (str(error), error.__cause__) == ("gone", cause)
        error.add_note(name)
    assert [error.__notes__ for error in errors if isinstance(error, Exception)] == [["a"], ["b"]]
    assert calls.begun[2:] == []


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("items", [("a",), ("first", "a", "b")])
async def test_slow_call_delays_no_later_item(
    calls: Calls,
    batcher: Batcher[str, str],
    monkeypatch: pytest.MonkeyPatch,
    items: tuple[str, ...],
) -> None:
    monkeypatch.setattr(batching, "PATIENCE", 0.01)
    slow = await _started(*items, batcher=batcher)
    await calls.until_begun(len(items[:2]))
    begun = len(calls.begun)
    for number in range(3):
        (later,) = await _started(f"c{number}", batcher=batcher)
        await calls.until_begun(begun + 1 + number)
        slow.append(later)
    calls.release(begun + 3)
    await asyncio.gather(*slow)
    assert calls.begun[begun:] == [["c0"], ["c1"], ["c2"]]
    assert calls.canceled == []


async def test_canceled_item_that_waits_is_withdrawn(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    first, canceled, other = await _started("a", "b", "c", batcher=batcher)
    canceled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await canceled
    calls.release(2)
    assert [await first, await other] == ["A", "C"]
    assert calls.begun == [["a"], ["c"]]


async def test_canceled_item_alone_cancels_its_call(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    first, second = await _started("a", "b", batcher=batcher)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert calls.canceled == [["a"]]
    calls.release()
    assert await second == "B"


async def test_call_is_canceled_when_nobody_waits_for_it(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    tasks = await _shared("a", "b", calls=calls, batcher=batcher)
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
    """The call has an effect for it, which its cancellation says."""
    canceled, other = await _shared("a", "b", calls=calls, batcher=batcher)
    canceled.cancel()
    await asyncio.sleep(0)
    assert not canceled.done()
    calls.release()
    assert await other == "B"
    with pytest.raises(asyncio.CancelledError) as cancellation:
        await canceled
    assert cancellation.value.args == ("A",)
    assert calls.canceled == []


async def test_canceled_item_of_a_failed_call_is_not_tried_again(
    calls: Calls, batcher: Batcher[str, str]
) -> None:
    calls.fails = lambda batch: UsageError("bad") if len(batch) > 1 else None
    canceled, other = await _shared("a", "b", calls=calls, batcher=batcher)
    canceled.cancel()
    calls.release(2)
    with pytest.raises(asyncio.CancelledError) as cancellation:
        await canceled
    assert cancellation.value.args == ()
    assert await other == "B"
    assert calls.begun[2:] == [["b"]]


@pytest.mark.parametrize("iterations", range(10))
async def test_cancellation_of_a_shared_call_says_whether_it_came_too_late(
    calls: Calls, batcher: Batcher[str, str], iterations: int
) -> None:
    """The cancellation comes some iterations of the event loop after the call may end."""
    (item,) = await _shared("a", calls=calls, batcher=batcher)
    calls.release()
    for _ in range(iterations):
        await asyncio.sleep(0)
    item.cancel()
    late: tuple[object, ...] = ("A",)
    try:
        assert await item == "A"
    except asyncio.CancelledError as error:
        late = error.args
    assert late == (() if calls.canceled else ("A",))


async def test_second_cancellation_is_immediate(calls: Calls, batcher: Batcher[str, str]) -> None:
    twice, other = await _shared("a", "b", calls=calls, batcher=batcher)
    for _ in range(2):
        twice.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await twice
    calls.release()
    assert await other == "B"
