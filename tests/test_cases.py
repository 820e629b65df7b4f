"""Cases of one test all run, and each failure names its case."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.support.cases import cases


@cases(("number", "half"), [(2, 1), (3, 1), (5, 2)])
def halves(number: int, half: int, tmp_path: Path) -> None:
    (tmp_path / str(number)).touch()
    assert number == 2 * half


@cases("number", [2, 4], ids=["two", "four"])
async def is_odd(number: int) -> None:
    assert number % 2


def test_every_case_is_called_and_each_failure_names_its_case(tmp_path: Path) -> None:
    assert [*inspect.signature(halves).parameters] == ["tmp_path"]
    with pytest.raises(ExceptionGroup, match="2 of 3 cases failed") as raised:
        halves(tmp_path=tmp_path)
    notes = [note for error in raised.value.exceptions for note in error.__notes__]
    assert [note for note in notes if note.startswith("case")] == [
        "case: number=3, half=1",
        "case: number=5, half=2",
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"2", "3", "5"}


async def test_cases_of_a_coroutine_are_awaited() -> None:
    with pytest.raises(ExceptionGroup, match="2 of 2 cases failed") as raised:
        await is_odd()
    assert [error.__notes__[-1] for error in raised.value.exceptions] == ["case: two", "case: four"]


def test_a_test_without_cases_fails() -> None:
    with pytest.raises(AssertionError, match="there are no cases"):
        cases("number", [])(lambda number: None)()
