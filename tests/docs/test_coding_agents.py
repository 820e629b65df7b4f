"""The versions that the page of coding agents names are those of the recordings."""

from __future__ import annotations

import re
from typing import Final

from draftsman import plugins
from draftsman.settings.agents import known_table
from tests.docs.pages import DOCS
from tests.support import claude_agent
from tests.support.codex_recording import FOLDER

ROW: Final = re.compile(
    r"^\| `(\w+)` \| `[^|]+\| [^|]*\| ([\d.]+), with a scripted model \|$", re.M
)


def test_the_tested_versions_are_those_of_the_recordings() -> None:
    page = (DOCS / "coding-agents.md").read_text(encoding="utf-8")
    named = dict(ROW.findall(page))
    recorded = dict(path.stem.split("-", 1) for path in FOLDER.glob("*.jsonl"))
    assert recorded == named
    known = {name for name in plugins.names(plugins.AGENTS) if known_table(name)}
    assert recorded.keys() == known - {"aider", "tidy"}, "Aider speaks no protocol"
    assert recorded["claude"] == claude_agent.VERSION
