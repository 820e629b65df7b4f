"""Output of commands: escaping, JSON, tables and colors."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.formats.invisible import one_line
from draftsman.formats.json_data import as_data
from draftsman_tui.terminal.output import CommandOutput, plain


class Colour(StrEnum):
    """A set of values."""

    RED = "red"


@dataclass(frozen=True, slots=True)
class Row:
    """A row as services return it."""

    number: int
    id: UUID
    color: Colour
    at: datetime
    tags: frozenset[str]
    more: dict[str, object]

    @property
    def name(self) -> str:
        """Not a column."""
        return "x"


ROW = Row(
    1,
    UUID(int=7),
    Colour.RED,
    datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
    frozenset({"b", "a"}),
    {"path": Path("/x"), "rows": (1, None, True, 0.5)},
)


def test_json_has_columns_iso_times_and_plain_values() -> None:
    assert as_data([ROW]) == [
        {
            "number": 1,
            "id": "00000000-0000-0000-0000-000000000007",
            "color": "red",
            "at": "2030-01-02T03:04:05+00:00",
            "tags": ["a", "b"],
            "more": {"path": "/x", "rows": [1, None, True, 0.5]},
        }
    ]
    assert json.loads(json.dumps(as_data(ROW)))["color"] == "red"


@given(st.text())
def test_no_output_controls_the_terminal(text: str) -> None:
    output = plain(text)
    assert all(char in "\n\t" or ord(char) >= 32 for char in output)
    assert not set(output) & set("\x7f\x9b\u2028\u202e\u2066")
    assert "\n" not in one_line(text)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_valid_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stream)
    CommandOutput(json=True).document({"text": "é 日本 \x1b"})
    assert json.loads(raw.getvalue().decode(encoding)) == {"text": "é 日本 \x1b"}


def test_markup_and_emoji_of_people_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    CommandOutput().print("[bold]x[/bold] :smile:", "[link=http://x]y[/link]")
    assert capsys.readouterr().out == "[bold]x[/bold] :smile:\n[link=http://x]y[/link]\n"
