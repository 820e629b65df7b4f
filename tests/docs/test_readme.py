"""The README: short, with its pictures, and its first commands and install lines are true.

`test_command_lines.py` parses its commands; tests/soak/soak_tutorials.py runs them.
"""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from draftsman.job_types import declaration
from draftsman.testing import MemoryApp
from tests.docs.code_names import ROOT
from tests.docs.pages import DOCS
from tests.docs.tutorials import steps

README: Final = (ROOT / "README.md").read_text("utf-8")
PAGES: Final = [ROOT / "README.md", *DOCS.rglob("*.md")]
EXTRAS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
TOOLS: Final = {"testing", "dev"}
"""Extras that are not for the use of draftsman."""


def test_it_is_short_and_begins_with_the_dashboard() -> None:
    assert len(README.encode()) < 7000
    assert README.index("docs/pictures/jobs.svg") < README.index("```")


def test_its_targets_of_make_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"(?:^|`)make (\w+)", README, re.MULTILINE)
    assert named
    assert set(named) <= set(targets)


def test_the_extra_all_has_the_extra_of_every_front_end() -> None:
    (requirement,) = EXTRAS["all"]
    names = re.fullmatch(r"draftsman\[(.+)\]", requirement)
    assert names
    assert names[1].split(",") == sorted(EXTRAS.keys() - TOOLS - {"all"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_installs_draftsman_from_a_folder_and_names_extras_that_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    assert re.findall(r"(?:pip|uv|pipx) (?:install|add) [^\n`#]*?['\" ]draftsman\b", text) == []
    for names in re.findall(r"install '[./\w]+\[([\w,]+)\]'", text):
        assert set(names.split(",")) <= EXTRAS.keys()


def test_its_job_asks_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draftsman_app: MemoryApp
) -> None:
    monkeypatch.setattr(declaration, "declared_types", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    (code,) = [step.code for step in steps("../README.md") if step.file == "shop.py"]
    (tmp_path / "shop.py").write_text(code, encoding="utf-8")
    shop = importlib.import_module("shop")
    del sys.modules["shop"]
    draftsman_app.answers["refund"] = "yes"
    assert shop.refund.submit(order=7).result() == "paid 20 for order 7"
    assert draftsman_app.asked() == ["Refund 20 euros?"]
    draftsman_app.answers["refund"] = "no"
    assert shop.refund.submit(order=8).result() == "refused"
