"""Invisible characters: none is left, and visible text stays as it is."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from draftsman.formats.invisible import escape_invisible, remove_invisible
from tests.support.cases import cases

HIDDEN: Final = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
FILLERS: Final = "\u034f\u115f\u1160\u17b4\u2800\u3164\ufe0f\uffa0\U000e0101"
ANY = st.text(max_size=80) | st.text("a\r\n\t\x1b\u202e\u2066\u2028\x9b\ud800\u200d🏴\U000e0067")


def is_invisible(char: str) -> bool:
    """Return whether a character controls, separates or reorders text, or is half of one."""
    is_override = "\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069"
    is_control = unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}
    return (is_control or is_override) and char not in "\t\n"


@given(ANY)
def test_no_invisible_character_is_left(text: str) -> None:
    for shown in (remove_invisible(text), escape_invisible(text)):
        assert not any(map(is_invisible, shown))
    assert not {"\n", "\t"} & set(escape_invisible(text, lines=False))


@given(ANY)
def test_visible_text_stays_as_it_is(text: str) -> None:
    visible = "".join(char for char in text if unicodedata.category(char)[0] != "C")
    visible = visible.translate({0x2028: None, 0x2029: None})
    assert remove_invisible(visible) == escape_invisible(visible) == visible


@given(st.text(st.characters(max_codepoint=0x24F, categories=["L", "N", "P", "S"])))
def test_visible_text_stays_as_it_is_when_strict(text: str) -> None:
    assert escape_invisible(text, strict=True) == text


@given(ANY)
def test_strict_text_has_no_format_characters_either(text: str) -> None:
    shown = escape_invisible(text, strict=True)
    assert all(char in "\t\n " or unicodedata.category(char) not in HIDDEN for char in shown)


def test_all_hidden_characters_of_unicode_are_strictly_invisible() -> None:
    every = map(chr, range(sys.maxunicode + 1))
    missed = [
        char
        for char in every
        if unicodedata.category(char) in HIDDEN
        and char not in "\t\n "
        and escape_invisible(char, strict=True) == char
    ]
    assert missed == []
    assert not set(FILLERS) & set(escape_invisible(FILLERS, strict=True))


def test_characters_that_languages_need_are_kept() -> None:
    words = "\u0645\u06cc\u200c\u062e\u0648 \u200f\u05e9\u05dc \u0e02\u200b\u0e04 \u845b\U000e0100"
    emoji = "1\ufe0f\u20e3 \xa9\ufe0f \u2764\ufe0f\u200d🔥 👁\ufe0f\u200d🗨\ufe0f 👩\u200d👩\u200d👧"
    flag = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    kept = f"\t\n {words} {emoji} {flag}"
    assert remove_invisible(kept) == escape_invisible(kept) == kept


@cases(
    ("text", "removed", "escaped"),
    [
        ("\x1b[31mred", "[31mred", "\\u{1b}[31mred"),
        ("a\r\nb\rc", "a\nbc", "a\nb\\u{d}c"),
        ("\u202egpj.exe", "gpj.exe", "\\u{202e}gpj.exe"),
        ("yes\U000e0020\U000e0041", "yes", "yes\\u{e0020}\\u{e0041}"),
        ("half \ud83d", "half ", "half \\u{d83d}"),
        ("\x1b\x1b\x1b", "", "\\u{1b}{3}"),
        ("a\u200bd\xadm\u200din", "admin", "a\\u{200b}d\\u{ad}m\\u{200d}in"),
        ("pay\u3164\ufe0f()", "pay()", "pay\\u{3164}\\u{fe0f}()"),
        ("é\ufe01\ufe02\ufe03", "é", "é\\u{fe01}\\u{fe02}\\u{fe03}"),
        ("é\u200d\u200dx", "é\u200dx", "é\u200d\\u{200d}x"),
        ("🏴\U000e0072\U000e006d", "🏴", "🏴\\u{e0072}\\u{e006d}"),
        ("\u200b\u200cx", "x", "\\u{200b}\\u{200c}x"),
    ],
)
def test_invisible_characters_are_shown(text: str, removed: str, escaped: str) -> None:
    assert remove_invisible(text) == removed
    assert escape_invisible(text) == escaped


@given(st.text())
def test_json_stays_the_same_document(text: str) -> None:
    document = json.dumps(text, ensure_ascii=False)
    shown = escape_invisible(document, strict=True, escape=lambda char: json.dumps(char)[1:-1])
    assert json.loads(shown) == text
