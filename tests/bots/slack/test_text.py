"""User text in Slack: literal, complete if it fits, else truncated between graphemes."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman_bots.slack.mrkdwn import (
    MAX_TEXT,
    code,
    escape,
    escape_chunks,
    escape_truncated,
    link,
    unescape,
)
from draftsman_bots.text import graphemes, replace_invisible, truncate, utf16_length

FAMILY = "👩‍👩‍👧‍👦"
FLAG = "🇦🇹"
ANY = st.text(st.characters(), max_size=400) | st.text("&<>`\u0301\u200d👩🇦\r\n", max_size=400)


@given(ANY)
def test_what_is_escaped_and_read_again_is_the_same(text: str) -> None:
    assert unescape(escape(text)) == replace_invisible(text)
    assert not {"<", ">"} & set(escape(text))


def test_text_is_unescaped_and_escaped_once() -> None:
    typed = "<b> & &amp;"
    sent = "&lt;b&gt; &amp; &amp;amp;"
    assert unescape(sent) == typed
    assert escape(typed) == sent


@given(ANY)
def test_graphemes_lose_nothing_but_a_crowd_of_marks(text: str) -> None:
    result = "".join(graphemes(text))
    assert len(result) <= len(text)
    assert all(len(grapheme) <= 16 for grapheme in graphemes(text))


@pytest.mark.parametrize("one", [FAMILY, FLAG, "e\u0301", "👍🏽", "\r\n", "각", "❤️"])
def test_a_grapheme_is_one(one: str) -> None:
    assert list(graphemes(one * 3)) == [one] * 3


@given(ANY, st.integers(2, 60))
def test_what_is_clamped_fits_and_ends_between_graphemes(text: str, most: int) -> None:
    result = truncate(text, most)
    assert utf16_length(result) <= most
    if utf16_length("".join(graphemes(replace_invisible(text)))) > most:
        assert result.endswith("…")
    assert "".join(graphemes(replace_invisible(text))).startswith(result.removesuffix("…"))


def test_a_family_is_not_torn_apart() -> None:
    assert truncate("ab" + FAMILY * 3, 16) == "ab" + FAMILY + "…"


@given(ANY, st.integers(10, 60))
def test_an_escape_is_not_torn_apart(text: str, most: int) -> None:
    result = escape_truncated(text, most)
    assert utf16_length(result) <= most
    assert escape(unescape(result)) == result


@given(ANY, st.integers(90, 200))
def test_pieces_are_all_of_it(text: str, most: int) -> None:
    result = list(escape_chunks(text, most))
    assert all(utf16_length(item) <= most for item in result)
    assert "".join(result) == escape("".join(graphemes(replace_invisible(text))))


@given(ANY, st.integers(40, 300))
def test_nothing_in_a_code_block_ends_it(text: str, most: int) -> None:
    result = code(text, most)
    assert utf16_length(result) <= most
    assert result.count("```") == 2


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "http://evil|click", "https://", "not a url", ""),
        *("file:///etc/passwd", "ftp://example.org/x", "slack://open"),
    ],
)
def test_a_link_that_leads_elsewhere_is_text(url: str) -> None:
    assert not link(url).startswith("<") or "|" not in link(url)
    if not url.startswith("http://"):
        assert link(url) == escape(url)


@given(ANY)
def test_a_link_shows_where_it_leads_and_ends_once(text: str) -> None:
    result = link(f"https://example.org/{text}")
    assert utf16_length(result) <= MAX_TEXT
    if result.startswith("<"):
        assert result.endswith(">")
        assert "|" not in result
        assert not {"<", ">"} & set(result[1:-1])


def test_a_link_keeps_its_query() -> None:
    result = link("https://example.org/a?b=1&c=%20")
    assert html.unescape(result) == "<https://example.org/a?b=1&c=%20>"
