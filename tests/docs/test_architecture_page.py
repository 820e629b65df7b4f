"""Files and functions that docs/architecture.md names exist."""

from __future__ import annotations

import re

from tests.docs.code_names import ROOT, defined_names
from tests.docs.pages import DOCS
from tests.support.cases import cases

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


@cases("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_path_of_the_page_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:core|tui|bots|soak|config|migrations|tests|docs)/[\w./-]+)`", text)
    assert len(paths) > 25
    invented = re.compile(r"NNNN|/test_render\.py$")
    assert [p for p in paths if not (ROOT / p).exists() and not invented.search(p)] == []


def test_contributors_get_every_target_of_make() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):.*?## ", makefile, re.M)) - {"help"}
    assert set(re.findall(r"^\| `make (\w+)` \|", text, re.M)) == targets


def _steps(walk: str) -> list[tuple[str, str]]:
    return re.findall(r"^\| `([\w./]+\.py)` \| `([\w.]+)` \|", walk, re.M)
