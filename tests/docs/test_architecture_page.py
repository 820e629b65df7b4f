"""Files and functions that docs/architecture.md names exist."""

from __future__ import annotations

import re

from tests.docs.code_names import ROOT, defined_names
from tests.docs.pages import DOCS

TEXT = (DOCS / "architecture.md").read_text(encoding="utf-8")
WALKS = re.findall(r"^### .*?(?=^##)", TEXT, re.M | re.S)


def test_there_are_six_paths_of_at_least_five_steps() -> None:
    assert [len(_steps(walk)) >= 5 for walk in WALKS] == [True] * 6


def test_each_step_names_a_function_of_its_file() -> None:
    missing = [
        f"{path}: {name}"
        for walk in WALKS
        for path, name in _steps(walk)
        if not (ROOT / path).is_file() or name not in defined_names(ROOT / path)
    ]
    assert missing == []


def test_every_path_of_the_page_exists() -> None:
    paths = re.findall(r"`((?:core|tui|bots|soak|config|migrations|tests)/[\w./-]+)`", TEXT)
    assert len(paths) > 40
    assert [path for path in paths if not (ROOT / path).exists()] == []


def _steps(walk: str) -> list[tuple[str, str]]:
    return re.findall(r"^\| `([\w./]+\.py)` \| `([\w.]+)` \|", walk, re.M)
