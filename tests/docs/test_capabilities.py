"""The table of capabilities names commands, options and pages that exist."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.docs.command_lines import problem
from tests.docs.pages import DOCS

ROW: Final = re.compile(r"\| ([^|`]+) \| `draftsman ([^`]+)` \| \[[^\]]+\]\(([^)]+)\) \|")


def _rows() -> list[tuple[str, str, str]]:
    lines = (DOCS / "capabilities.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and "| Command |" not in line]
    matches = [ROW.fullmatch(row) for row in rows]
    assert all(matches), [row for row, match in zip(rows, matches, strict=True) if not match]
    return [(match[1], match[2], match[3]) for match in matches if match]


def test_each_row_names_a_command_and_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    rows = _rows()
    assert len({name for name, _, _ in rows}) == len(rows) == 86
    problems = [(line, word) for _, line, _ in rows if (word := problem(line))]
    assert problems == []
    assert [page for _, _, page in rows if not (DOCS / page).is_file()] == []
