"""Invisible characters: none is left, and visible text stays as it is."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from draftsman.formats.invisible import REPLACEMENT, escape_invisible, replace_invisible
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
    for shown in (replace_invisible(text), escape_invisible(text)):
        assert not any(map(is_invisible, shown))
    assert not {"\n", "\t"} & set(escape_invisible(text, lines=False))


@given(ANY)
def test_visible_text_stays_as_it_is(text: str) -> None:
    visible = "".join(char for char in text if unicodedata.category(char)[0] != "C")
    visible = visible.translate({0x2028: None, 0x2029: None})
    assert replace_invisible(visible) == escape_invisible(visible) == visible


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
    kept = "\t\n\u200c\u200d\u200e\u200f\u061c\u200b\xad 👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿"
    assert replace_invisible(kept) == escape_invisible(kept) == kept


@cases(
    ("text", "replaced", "escaped"),
    [
        ("\x1b[31mred", "\ufffd[31mred", "\\u{1b}[31mred"),
        ("a\r\nb\rc", "a\nb\nc", "a\\u{d}\nb\\u{d}c"),
        ("\u202egpj.exe", "\ufffdgpj.exe", "\\u{202e}gpj.exe"),
        ("yes\U000e0020\U000e0041", "yes\ufffd\ufffd", "yes\\u{e0020}\\u{e0041}"),
        ("half \ud83d", "half \ufffd", "half \\u{d83d}"),
        ("\x1b\x1b\x1b", "\ufffd\ufffd\ufffd", "\\u{1b}{3}"),
    ],
)
def test_invisible_characters_are_shown(text: str, replaced: str, escaped: str) -> None:
    assert replace_invisible(text) == replaced
    assert escape_invisible(text) == escaped


@given(st.text())
def test_json_stays_the_same_document(text: str) -> None:
    document = json.dumps(text, ensure_ascii=False)
    shown = escape_invisible(document, strict=True, escape=lambda char: json.dumps(char)[1:-1])
    assert json.loads(shown) == text
    assert REPLACEMENT in text or REPLACEMENT not in shown
