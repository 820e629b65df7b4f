"""No surface hides a character of a title, a question, a choice, an answer, an error or a name."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from draftsman.deliveries.documents.html import inert
from draftsman.entities import cells
from draftsman_bots.text import truncate
from draftsman_bots.web.job_pages import visible
from draftsman_bots.web.pages import visible_value
from draftsman_testing.channel.examples import HOSTILE, examples
from draftsman_tui.dashboard.dialogs.base import safe
from draftsman_tui.terminal.output import plain, styled
from tests.bots.test_documents import MEDIA
from tests.support.cases import cases
from tests.support.hostile_diffs import UNSEEN

BLANK: Final = (0xA0, 0x2003, 0x2800, 0x3000, 0xE000)
"""What a reader sees as a blank or a box."""
HIDDEN: Final = [chr(code) for code in UNSEEN if code not in BLANK]
TEXT: Final = " ".join(f"p{char}y" for char in HIDDEN)
SHOWN: Final = {f"p\\u{{{ord(char):x}}}y" for char in HIDDEN if not char.isspace()}
"""How each is shown; what separates lines may be a blank in a line."""
CHATS: Final = {name: print_ for name, print_ in MEDIA.items() if name not in ("json", "terminal")}
SURFACES: Final[dict[str, Callable[[str], str]]] = {
    "page": visible_value,
    "log of a page": visible,
    "message of a page": lambda text: html.unescape(inert(text)),
    "title of a chat": lambda text: truncate(text, 10_000),
    "cell of a table": lambda text: cells.text(text).text,
    "dialog": lambda text: safe(text).plain,
    "line of a terminal": lambda text: styled(text).plain,
    "log of a terminal": plain,
}


def _with_text(value: Any) -> Any:
    """Return the value with the text in the place of the hostile one, wherever that is."""
    if isinstance(value, str):
        return value.replace(HOSTILE, TEXT) if HOSTILE in value else value
    if isinstance(value, dict):
        return {_with_text(key): _with_text(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_with_text, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{one.name: _with_text(getattr(value, one.name)) for one in fields(value)}
        )
    return value


EXAMPLES: Final = {
    name: changed for name, one in examples().items() if (changed := _with_text(one)) != one
}


@cases("name", EXAMPLES)
def test_a_message_hides_no_character(name: str) -> None:
    for medium, print_ in CHATS.items():
        shown = html.unescape(print_(EXAMPLES[name])).replace("\\\\", "\\")
        hidden = [ascii(char) for char in HIDDEN if f"p{char}y" in shown]
        assert hidden == [], f"{medium} hides characters"
        assert "p\\u{8}y" in shown, f"{medium} shows none of the text"


@cases("name", SURFACES)
def test_a_text_hides_no_character(name: str) -> None:
    shown = SURFACES[name](TEXT)
    assert {*shown.split(" ")} >= SHOWN
    assert [ascii(char) for char in HIDDEN if f"p{char}y" in shown] == []
