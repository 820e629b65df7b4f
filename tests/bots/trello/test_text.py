"""Escaping of text in comments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from draftsman.deliveries.documents.markdown import quoted, strong
from draftsman.formats.truncation import utf16_length
from draftsman_bots.trello.deliveries.markdown import (
    MAX_COMMENT,
    code,
    escape,
    escape_truncated,
    link,
    marker_of,
    one_line,
    with_marker,
)
from draftsman_bots.trello.ids import created_at, format_time, just_after, parse_time
from tests.support.cases import cases

MARKER = "1b428df0-afc7-4cfb-bd65-887332ad118a"
DIRTY = st.text(st.sampled_from("@`*_[]<>#-+1.)\\ \n\t&|~aé🙂\u202e\x00"), max_size=200)


@cases(
    ("text", "shown"),
    [
        ("D-7 was answered by anna: red", "D-7 was answered by anna: red"),
        ("**bold** _it_ `x`", r"\*\*bold\*\* \_it\_ \`x\`"),
        ("[click](https://evil)", "\\[click\\](https:\u200b//evil)"),
        ("<b>&lt;", r"\<b\>\&lt;"),
        ("# head\n- item\n1. one\n> quote", "\\# head\n\\- item\n1\\. one\n\\> quote"),
        ("    code", "\u00a0\u00a0\u00a0\u00a0code"),
        ("a - b 1. c # d", "a - b 1. c # d"),
        ("===", "\\==="),
        ("~~gone~~ | x", r"\~\~gone\~\~ \| x"),
    ],
)
def test_markdown_is_shown_literally(text: str, shown: str) -> None:
    assert escape(text) == shown


@cases(
    ("text", "shown"),
    [
        (":smile: :+1: x:100:", ":\u200bsmile: :\u200b+1: x:\u200b100:"),
        ("at 10:20:30, a: b: c", "at 10:20:30, a: b: c"),
        ("::x::", "::\u200bx::"),
        ("see https://evil.org/a?b", "see https:\u200b//evil.org/a?b"),
        ("FTP://evil.org (www.evil.org)", "FTP:\u200b//evil.org (www\u200b.evil.org)"),
        ("<https://evil.org>", "\\<https:\u200b//evil.org\\>"),
    ],
)
def test_text_creates_no_emoji_and_no_link(text: str, shown: str) -> None:
    assert escape(text) == shown
    assert text in code(text), "code is shown as it is"


@cases("text", ["@card", "hi @anna", "(@board)", "anna@example.org", "@@x"])
def test_text_of_people_mentions_no_member(text: str) -> None:
    for escaped in (escape(text), code(text), strong(one_line(text))):
        assert all(after == "\u200b" for after in _behind_each_at(escaped))


def test_length_limit_applies_after_escaping() -> None:
    escaped = with_marker(escape_truncated("*" * 20_000, 20_000), MARKER)
    assert utf16_length(escaped) <= MAX_COMMENT
    assert marker_of(escaped) == MARKER
    escaped = with_marker("🙂" * 20_000, MARKER)
    assert utf16_length(escaped) <= MAX_COMMENT
    assert "…" in escaped


def test_truncated_code_block_is_closed() -> None:
    escaped = with_marker("```\n" + "x" * 20_000 + "\n```", MARKER)
    assert escaped.count("```") == 2
    assert utf16_length(escaped) <= MAX_COMMENT


def test_text_cannot_close_a_code_block() -> None:
    assert code("a\n````\nb").count("```") == 2


@cases(
    ("url", "shown"),
    [
        ("https://x.org/a_b?c=d", "<https://x.org/a_b?c=d>"),
        ("https://anna@x.org/", "<https://anna%40x.org/>"),
        ("https://x.org/>evil", "<https://x.org/%3Eevil>"),
        ("https://x.org:80/:smile:/", "<https://x.org:80/%3Asmile:/>"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("https://x .org", "https:\u200b//x .org"),
    ],
)
def test_a_link_shows_where_it_leads(url: str, shown: str) -> None:
    assert link(url) == shown


@cases(
    ("text", "marker"),
    [
        (with_marker("hello", MARKER), MARKER),
        (with_marker("hello", MARKER) + "\n\n", MARKER),
        (quoted(with_marker("hello", MARKER)), None),
        (with_marker("hello", MARKER) + "\n2", None),
        (f"draftsman:{MARKER}", MARKER),
        ("2", None),
        ("", None),
        ("`draftsman:x`", None),
    ],
)
def test_own_comment_is_recognized_by_its_last_line(text: str, marker: str | None) -> None:
    assert marker_of(text) == marker


@given(DIRTY, st.integers(20, 60))
def test_any_text_fits_and_mentions_no_member(text: str, most: int) -> None:
    for escaped in (escape_truncated(text, most), code(text, most)):
        assert utf16_length(escaped) <= most
        assert all(after in "\u200b…" for after in _behind_each_at(escaped))
        assert "\x00" not in escaped
        assert "\u202e" not in escaped


def _behind_each_at(text: str) -> list[str]:
    return [text[at + 1 : at + 2] for at, char in enumerate(text) if char == "@"]


@given(st.datetimes(), st.text(max_size=50), st.from_regex(r"[0-9a-f]{24}", fullmatch=True))
def test_times_are_parsed_in_trello_format(when: object, text: str, id: str) -> None:
    parse_time(text)
    parse_time(when)
    assert parse_time(format_time(created_at(id))) == created_at(id)
    later = parse_time(just_after(id))
    assert later is not None
    assert later > created_at(id)
