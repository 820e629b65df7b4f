"""The index by task: each row has a command that exists, and a section; test_links follows it."""

from __future__ import annotations

import re
from typing import Final

import pytest

from draftsman_tui.cli import main, pages
from tests.docs.code_names import ROOT
from tests.docs.command_lines import problem
from tests.docs.pages import DOCS

INDEX: Final = (DOCS / "README.md").read_text("utf-8")
ROWS: Final = re.findall(r"^\| ([^|]+) \| ([^|]+) \| \[[^]]+\]\(([^)]+)\) \|$", INDEX, re.MULTILINE)


def test_each_row_is_a_task_with_a_section() -> None:
    tasks = [task for task, _, _ in ROWS]
    lines = re.findall(r"^\| (?!I want)(.+?) \| .+ \|.+ \|$", INDEX, re.MULTILINE)
    assert lines == tasks
    assert len(set(tasks)) == len(tasks) > 60
    assert [link for _, _, link in ROWS if "#" not in link] == []


def test_every_page_is_in_the_index() -> None:
    pages = {path.name for path in DOCS.glob("*.md")} - {"README.md"}
    assert pages - {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", INDEX)} == set()


def test_its_commands_can_be_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for _, cell, _ in ROWS for line in re.findall("`draftsman ([^`]+)`", cell)]
    wrong = [(line, text) for line in lines if (text := problem(line))]
    assert wrong == []


def test_every_command_has_a_row() -> None:
    commands = [*main.COMMANDS, *main.channel_commands()]
    assert [name for name in commands if pages.page_of([name]) is None] == []


def test_messages_name_pages_and_sections_that_an_installation_has() -> None:
    """No message names a file of `docs/`, which an installation lacks; a comment may."""
    named = set()
    for folder in ("core", "tui", "bots", "agents", "testing"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            named |= set(re.findall(r'help --page(?: |", ")([\w-]+(?:#[\w-]+)?)', text))
            assert re.findall(r"see docs/", text) == [], path
    assert len(named) > 10
    for page in named:
        assert pages.read(page)
