"""Truncation: never longer than asked, and never within a grapheme."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from draftsman.formats.truncation import graphemes, truncate, utf16_length
from tests.support.cases import cases

FAMILY = "👩‍👩‍👧‍👦"
MIXED = st.text("ab \u0301\u200d👩🇦🏴\U000e0067\r\n", max_size=100)
ANY = st.text(st.characters(), max_size=100) | MIXED
MEASURES = st.sampled_from([len, utf16_length, cell_len])


@given(ANY, st.integers(0, 60), MEASURES)
def test_truncated_text_is_never_longer_than_asked(
    text: str, most: int, measure: Callable[[str], int]
) -> None:
    assert sum(map(measure, graphemes(truncate(text, most, measure)))) <= most


@given(ANY, st.integers(1, 60), MEASURES)
def test_truncated_text_ends_between_graphemes(
    text: str, most: int, measure: Callable[[str], int]
) -> None:
    parts = list(graphemes(text))
    result = truncate(text, most, measure)
    if sum(map(measure, parts)) <= most:
        assert result == "".join(parts)
        return
    assert result.endswith("…")
    kept = result.removesuffix("…")
    beginnings = ("".join(parts[:count]).rstrip() for count in range(len(parts)))
    assert kept in beginnings


@given(ANY)
def test_graphemes_lose_only_excess_combining_marks(text: str) -> None:
    result = "".join(graphemes(text))
    assert len(result) <= len(text)
    assert all(len(grapheme) <= 16 for grapheme in graphemes(text))


@cases("grapheme", [FAMILY, "🇦🇹", "e\u0301", "👍🏽", "\r\n", "각", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"])
def test_a_grapheme_is_a_single_unit(grapheme: str) -> None:
    assert list(graphemes(grapheme * 3)) == [grapheme] * 3


@cases(
    ("text", "most", "measure", "expected"),
    [
        ("D-12 failed", 11, len, "D-12 failed"),
        ("D-12 failed", 5, len, "D-12…"),
        ("D-12 failed", 6, len, "D-12…"),
        ("D-12 failed", 1, len, "…"),
        ("D-12 failed", 0, len, ""),
        ("ab" + FAMILY * 3, 10, len, "ab" + FAMILY + "…"),
        ("ab" + FAMILY * 3, 10, utf16_length, "ab…"),
        ("日本語", 5, cell_len, "日本…"),
        ("日本語", 5, len, "日本語"),
    ],
)
def test_text_is_cut_where_the_measure_ends(
    text: str, most: int, measure: Callable[[str], int], expected: str
) -> None:
    assert truncate(text, most, measure) == expected
