"""The catalog of chat cases names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import DOCS

PAGE = DOCS / "chat-cases.md"
ROOT = Path(__file__).resolve().parents[2]
LAST = 159
FUNCTION = re.compile(r"^ *(?:async )?def (\w+)", re.MULTILINE)


def test_each_case_names_tests_that_exist() -> None:
    cases = dict(re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", PAGE.read_text("utf-8"), re.M))
    assert sorted(map(int, cases)) == list(range(1, LAST + 1))
    files = [path for folder in ("tests", "testing") for path in (ROOT / folder).rglob("*.py")]
    defined = {name for path in files for name in FUNCTION.findall(path.read_text("utf-8"))}
    for case, names in cases.items():
        tests = re.findall(r"`(test_\w+)`", names)
        assert tests, f"case {case} names no test"
        assert set(tests) <= defined, f"case {case} names a test that does not exist"
