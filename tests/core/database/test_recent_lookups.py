"""Values that many callers look up and a process reads once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from draftsman.database.recent_lookups import RecentLookups
from draftsman_testing.waits import background


class Source:
    """The values, and the names that were read."""

    def __init__(self) -> None:
        self.values = {"a": 1, "b": 2}
        self.read: list[list[str]] = []
        self.gate = asyncio.Semaphore(0)
        self.fails = False

    async def __call__(self, names: Sequence[str]) -> dict[str, int]:
        self.read.append(list(names))
        await self.gate.acquire()
        if self.fails:
            raise OSError("gone")
        return {name: self.values[name] for name in names if name in self.values}


@pytest.fixture
async def source() -> Source:
    return Source()


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_each_name_is_read_once(source: Source) -> None:
    lookups = RecentLookups(source, age=60.0)
    source.gate.release()
    source.gate.release()
    assert await lookups.of(["a", "none"]) == {"a": 1}
    assert await lookups.of(["a", "none", "b"]) == {"a": 1, "b": 2}
    assert source.read == [["a", "none"], ["b"]]


async def test_name_that_is_given_twice_is_read_once_and_again_after_an_error(
    source: Source,
) -> None:
    lookups = RecentLookups(source, age=60.0)
    source.fails = True
    source.gate.release()
    with pytest.raises(OSError, match="gone"):
        await lookups.of(["a", "a"])
    source.fails = False
    source.gate.release()
    assert await lookups.of(["a", "a"]) == {"a": 1}
    assert source.read == [["a"], ["a"]]


async def test_value_is_read_again_after_its_age(source: Source) -> None:
    lookups = RecentLookups(source, age=0.0)
    source.gate.release()
    assert await lookups.of(["a"]) == {"a": 1}
    source.values["a"] = 3
    source.gate.release()
    assert await lookups.of(["a"]) == {"a": 3}


async def test_callers_that_meet_share_a_read_although_one_is_canceled(source: Source) -> None:
    lookups = RecentLookups(source, age=60.0)
    first = asyncio.ensure_future(lookups.of(["a"]))
    async with background(asyncio.gather(*(lookups.of(["a"]) for _ in range(3)))) as others:
        await _settle()
        first.cancel()
        await _settle()
        source.gate.release()
        assert await others == [{"a": 1}] * 3
    assert first.cancelled()
    assert source.read == [["a"]]


async def test_failed_read_fails_all_its_callers_and_is_repeated(source: Source) -> None:
    lookups = RecentLookups(source, age=60.0)
    source.fails = True
    async with background(
        asyncio.gather(*(lookups.of(["a"]) for _ in range(2)), return_exceptions=True)
    ) as failed:
        await _settle()
        source.gate.release()
        assert [str(error) for error in await failed] == ["gone"] * 2
    source.fails = False
    source.gate.release()
    assert await lookups.of(["a"]) == {"a": 1}
    assert source.read == [["a"], ["a"]]


async def test_lookup_keeps_its_values_when_others_are_read_anew(source: Source) -> None:
    """The values of an earlier lookup get too old while those of another name are read."""
    lookups = RecentLookups(source, age=0.0)
    async with background(lookups.of(["a", "b"])) as both:
        await _settle()
        async with background(lookups.of(["a"])) as again:
            await _settle()
            source.gate.release()
            source.gate.release()
            assert await both == {"a": 1, "b": 2}
            assert await again == {"a": 1}
    assert source.read == [["a", "b"], ["a"]]
