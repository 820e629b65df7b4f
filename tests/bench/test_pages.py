"""The pages about the benchmarks: commands that exist, queues that are measured, working links."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from bench.arguments import DEFAULT, MEASURES, arguments
from bench.install import PEERS
from bench.report import COSTS
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "bench" / "README.md", ROOT / "docs" / "performance.md")
COMMANDS = sorted(
    {
        command
        for page in PAGES
        for command in re.findall(r"make bench ARGS=('[^']*'|[\w-]+)", page.read_text())
    }
)


def test_pages_have_commands() -> None:
    assert len(COMMANDS) > 8


@pytest.mark.parametrize("command", COMMANDS)
def test_documented_command_is_valid(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *shlex.split(command.strip("'"))])
    assert arguments(None).rounds > 0


def test_every_measure_and_cost_is_explained() -> None:
    text = PAGES[0].read_text()
    explained = set(re.findall(r"^\| ([\w, ]+) \| ", text, re.MULTILINE))
    names = {name for cell in explained for name in cell.split(", ")}
    assert set(MEASURES) <= names
    assert set(DEFAULT) < set(MEASURES)
    assert set(COSTS.values()) <= names


def test_every_queue_is_in_the_comparison() -> None:
    text = PAGES[0].read_text()
    rows = text.partition("## What is compared")[2].partition("## Measured")[0]
    queues = {
        re.sub(r"\W|worker", "", line.split("|")[1]) for line in rows.splitlines() if "|" in line
    }
    assert {"draftsman", *PEERS} <= queues


@cases("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_a_page_and_a_title(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)(?:#([\w-]+))?\)", page.read_text())
    assert links
    for path, anchor in links:
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
            assert anchor in anchors, f"{path}#{anchor}"
