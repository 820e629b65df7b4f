"""The page about the agent protocol: its tables match the models, and its examples run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.protocol.agent_messages import AskMessage, ResultMessage
from draftsman.sandbox.processes.process import MalformedLine
from draftsman.settings.agents import AgentSettings
from draftsman.settings.profiles import ProfileSettings
from tests.core.agents.driver import AgentTranscript, reply_with, run_agent, start_in
from tests.docs.protocol_tables import DOCS, PAGE, page

PYTHON = ("{python}", str(DOCS / "examples" / "agent.py"))
SHELL = (str(DOCS / "examples" / "agent.sh"),)


def test_page_matches_the_models() -> None:
    text = PAGE.read_text()
    hint = "regenerate it: python tests/docs/protocol_tables.py"
    assert page(text) == text, hint


@pytest.fixture
async def workspace(tmp_path: Path) -> Workspace:
    await make_sample_repo(tmp_path / "sample")
    return await Workspace.prepare(
        tmp_path / "data", RepoSource.of(str(tmp_path / "sample")), job=7, run=1
    )


async def run(
    command: tuple[str, ...], space: Workspace, answers: dict[str, str]
) -> AgentTranscript:
    agent = AgentSettings(command=command)
    start = start_in(space, ProfileSettings())
    return await run_agent(agent, start, space.path, space.home, reply_with(answers))


@pytest.mark.parametrize("command", [PYTHON, SHELL], ids=["python", "shell"])
async def test_example_asks_parks_and_applies_the_answer(
    command: tuple[str, ...], workspace: Workspace
) -> None:
    parked = await run(command, workspace, {})
    assert (parked.code, parked.log, parked.of(MalformedLine)) == (0, b"", [])
    [ask] = parked.messages
    assert isinstance(ask, AskMessage)
    assert [choice.value for choice in ask.choices] == ["hello", "goodbye"]
    assert not (workspace.path / "GREETING.txt").exists()
    for word in ("hello", "goodbye"):
        transcript = await run(command, workspace, {"word": word})
        assert (transcript.code, transcript.log, transcript.of(MalformedLine)) == (0, b"", [])
        assert transcript.of(ResultMessage)[0].summary == f"said {word}"
        assert (workspace.path / "GREETING.txt").read_text().startswith(word)


def test_examples_are_short_and_need_no_packages() -> None:
    python = (DOCS / "examples" / "agent.py").read_text()
    code = [line for line in python.splitlines() if line.strip()]
    assert len(code) <= 12
    assert python.startswith("import json, sys\n")
    shell = (DOCS / "examples" / "agent.sh").read_text()
    assert shell.startswith("#!/bin/sh\n")
    assert "jq" not in shell
    assert shutil.which("sh") is not None
