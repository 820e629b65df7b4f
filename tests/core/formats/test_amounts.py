"""Counts, sizes and money as text."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from draftsman.formats.amounts import counted, format_money, format_size
from tests.support.cases import cases


@cases(
    ("count", "text"),
    [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), (12_345, "12,345 jobs")],
)
def test_a_count_has_its_noun(count: int, text: str) -> None:
    assert counted(count, "job") == text


def test_a_noun_may_have_another_plural() -> None:
    assert counted(1, "delivery waits", "deliveries wait") == "1 delivery waits"
    assert counted(2, "delivery waits", "deliveries wait") == "2 deliveries wait"


@cases(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1536, "1.5 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (26_214_400, "26.2 MB"),
        (10**10, "10,000.0 MB"),
    ],
)
def test_a_size_has_a_unit(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(0, 10**9))
def test_a_size_has_three_digits_and_a_decimal(size: int) -> None:
    assert re.fullmatch(r"\d{1,3} B|\d{1,3}\.\d kB|(\d{1,3}|1,000)\.\d MB", format_size(size))


@cases(
    ("dollars", "text", "in_cents"),
    [
        (0, "$0.00", "$0.00"),
        (0.0004, "$0.0004", "<$0.01"),
        (0.0051, "$0.0051", "$0.01"),
        (0.25, "$0.25", "$0.25"),
        (1234.5, "$1,234.50", "$1,234.50"),
    ],
)
def test_money_is_exact_or_in_cents(dollars: float, text: str, in_cents: str) -> None:
    assert format_money(dollars) == text
    assert format_money(dollars, cents=True) == in_cents


@given(st.floats(0, 10**6))
def test_money_never_hides_a_cost(dollars: float) -> None:
    assert (format_money(dollars, cents=True) == "$0.00") == (dollars == 0)
