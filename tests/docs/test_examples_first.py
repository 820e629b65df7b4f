"""Every page begins with what it is for and a short example, which parses, compiles or loads.

`test_command_lines.py` parses the command lines of all blocks.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import pytest
from markdown_it import MarkdownIt

from tests.docs.command_lines import command_lines
from tests.docs.pages import DOCS

_MARKDOWN: Final = MarkdownIt().enable("table")
CHATS: Final = {"chat-cases.md", "slack.md"}
"""Pages whose first example is a message, not a command."""
OTHERS: Final = {"mcp.md", "tutorial-agents.md", "tutorial-jobs.md"}
"""Pages whose first commands are of other programs."""


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_a_page_begins_with_its_purpose_and_an_example(page: Path) -> None:
    tokens = _MARKDOWN.parse(page.read_text("utf-8"))
    kinds = [token.type for token in tokens]
    at = kinds.index("fence")
    assert kinds[:at].count("paragraph_open") == 1
    assert "table_open" not in kinds[:at]
    purpose = tokens[kinds.index("paragraph_open") + 1].content
    assert 5 < len(purpose.split()) <= 35
    example = tokens[at]
    assert len(example.content.splitlines()) <= 30
    match example.info:
        case "python":
            compile(example.content, page.name, "exec")
        case "toml":
            assert tomllib.loads(example.content)
        case "text":
            assert page.name in CHATS
        case "bash":
            assert example.content.startswith(("draftsman ", "make "))
        case language:
            assert language == "sh"
            commands = [*command_lines(f"```sh\n{example.content}```\n")]
            assert commands or page.name in OTHERS
