"""The page about security names a test for each way to start a job."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS

ROOT = DOCS.parent
DOOR = re.compile(r"\| `(tests/[^`]+\.py)::([^`]+)` \|\n")


def test_each_door_has_a_test() -> None:
    page = (DOCS / "security.md").read_text(encoding="utf-8")
    table = page.partition("## Who may start an agent")[2].partition("\n## ")[0]
    doors = DOOR.findall(table)
    assert len(doors) == table.count("\n| ") - 1
    for file, test in doors:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"
