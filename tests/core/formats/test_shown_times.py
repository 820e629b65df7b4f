"""All times that people read pass `formats/times.py`, and so the zone of the reader."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import draftsman

ROOT: Final = Path(draftsman.__file__).parents[2]
EXCEPT: Final = {
    "core/draftsman/formats/times.py",
    "bots/draftsman_bots/mail/mail_handler.py",  # a key of the hour, which nobody sees
    "bots/draftsman_bots/trello/ids.py",  # as Trello writes it
    "core/draftsman/jobs/runs/service/settlement.py",  # a line of a log: in UTC, with its mark
    "core/draftsman/log.py",
    "core/draftsman/attention/digests.py",  # hours of the day that a person configured
    "core/draftsman/schedules/phrases.py",  # times of the clock in the zone of a schedule
    "tui/draftsman_tui/cli/jobs/log_printer.py",  # the zone of the reader, in each line of a log
}


def _clocks(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        is_format = isinstance(node, ast.FormattedValue) and node.format_spec is not None
        is_call = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("strftime")
        if is_format or is_call:
            text = ast.unparse(node)
            if "%H" in text or "%T" in text:
                yield node.lineno  # type: ignore[attr-defined]


def test_no_other_module_formats_the_time_of_day() -> None:
    """A format of its own shows the zone that a time came with: UTC, without its name."""
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for folder in ("core", "tui", "bots")
        for path in (ROOT / folder).rglob("*.py")
        if str(path.relative_to(ROOT)) not in EXCEPT
        for line in _clocks(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found
