"""The URL of a board as people copy it."""

from __future__ import annotations

import pytest

from draftsman.errors import UsageError
from draftsman_bots.trello.boards.board_setup import parse_reference
from tests.support.cases import cases


@cases(
    "text",
    [
        "https://trello.com/b/a1B2c3D4/work",
        "http://www.trello.com/b/a1B2c3D4",
        "trello.com/b/a1B2c3D4/work",
        "www.trello.com/b/a1B2c3D4/",
        "Trello.com/b/a1B2c3D4?filter=x",
        " /b/a1B2c3D4 ",
        "a1B2c3D4",
    ],
)
def test_a_board_is_named_with_or_without_a_scheme(text: str) -> None:
    assert parse_reference(text) == "a1B2c3D4"


@cases("text", ["trello.com", "trello.com/", "trello.com/c/a1B2c3D4", "trello.com/w/work", ""])
def test_another_page_is_no_board(text: str) -> None:
    with pytest.raises(UsageError, match="board"):
        parse_reference(text)
