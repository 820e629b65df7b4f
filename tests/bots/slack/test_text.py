"""User text in Slack: literal, complete if it fits, else truncated between graphemes."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from draftsman.formats.invisible import escape_invisible
from draftsman.formats.truncation import graphemes, utf16_length
from draftsman_bots.slack.deliveries.mrkdwn import (
    MAX_TEXT,
    code,
    escape,
    escape_chunks,
    escape_truncated,
    link,
    unescape,
)
from draftsman_bots.text import truncate
from tests.support.cases import cases

FAMILY = "👩‍👩‍👧‍👦"
FLAG = "🇦🇹"
ANY = st.text(st.characters(), max_size=400) | st.text("&<>`\u0301\u200d👩🇦\r\n", max_size=400)


@given(ANY)
def test_unescaping_reverses_escaping(text: str) -> None:
    assert unescape(escape(text)) == escape_invisible(text)
    assert not {"<", ">"} & set(escape(text))


def test_text_is_unescaped_and_escaped_once() -> None:
    typed = "<b> & &amp;"
    sent = "&lt;b&gt; &amp; &amp;amp;"
    assert unescape(sent) == typed
    assert escape(typed) == sent


@given(ANY, st.integers(2, 60))
def test_truncated_text_fits_and_ends_between_graphemes(text: str, max_length: int) -> None:
    result = truncate(text, max_length)
    assert utf16_length(result) <= max_length
    if utf16_length("".join(graphemes(escape_invisible(text)))) > max_length:
        assert result.endswith("…")
    assert "".join(graphemes(escape_invisible(text))).startswith(result.removesuffix("…"))


def test_emoji_sequence_is_not_split() -> None:
    assert truncate("ab" + FAMILY * 3, 16) == "ab" + FAMILY + "…"


@given(ANY, st.integers(10, 60))
def test_escape_sequence_is_not_split(text: str, max_length: int) -> None:
    result = escape_truncated(text, max_length)
    assert utf16_length(result) <= max_length
    assert escape(unescape(_without_dates(result))) == _without_dates(result)


@given(ANY, st.integers(90, 200))
def test_chunks_contain_the_whole_text(text: str, max_length: int) -> None:
    result = list(escape_chunks(text, max_length))
    assert all(utf16_length(item) <= max_length for item in result)
    shown = _without_dates("".join(result))
    assert shown == escape("".join(graphemes(escape_invisible(text))))


def _without_dates(text: str) -> str:
    """Return mrkdwn with the marks themselves, which invalid dates keep from being parsed."""
    return re.sub(r"<!date\^00000000\^\{_\}\|([*_~])>", r"\1", text)


@given(ANY, st.integers(40, 300))
def test_content_cannot_close_a_code_block(text: str, max_length: int) -> None:
    result = code(text, max_length)
    assert utf16_length(result) <= max_length
    assert result.count("```") == 2


@cases(
    "url",
    [
        *("javascript:alert(1)", "http://evil|click", "https://", "not a url", ""),
        *("file:///etc/passwd", "ftp://example.org/x", "slack://open"),
    ],
)
def test_link_with_another_scheme_is_plain_text(url: str) -> None:
    assert not link(url).startswith("<") or "|" not in link(url)
    if not url.startswith("http://"):
        assert link(url) == escape(url)


@given(ANY)
def test_link_shows_its_url_and_ends_once(text: str) -> None:
    result = link(f"https://example.org/{text}")
    assert utf16_length(result) <= MAX_TEXT
    if result.startswith("<"):
        assert result.endswith(">")
        assert "|" not in result
        assert not {"<", ">"} & set(result[1:-1])


def test_a_link_keeps_its_query() -> None:
    result = link("https://example.org/a?b=1&c=%20")
    assert html.unescape(result) == "<https://example.org/a?b=1&c=%20>"
