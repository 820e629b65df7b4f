"""Forms of MCP servers: questions with choices, whose answers a later run gives the server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.agents.mcp_forms import form_content, form_questions
from draftsman.settings.agents import AgentSettings
from tests.core.agent_runs.test_acp import acp_agent
from tests.core.agent_runs.test_claude import fake
from tests.support.adapter_driver import AdapterRuns, Message

SCHEMA: Final = {
    "type": "object",
    "properties": {
        "database": {"type": "string", "enum": ["PostgreSQL", "SQLite"]},
        "copies": {"type": "integer", "description": "How many copies?"},
    },
}
FORM: Final = {"message": "Which database?"}
RESULTS: Final = {"say": "RESULTS"}


def agent(kind: str, calls: int) -> dict[str, Any]:
    """Return an agent that makes this number of calls, of which the last is not interrupted."""
    if kind == "acp":
        return acp_agent([{"form": {**FORM, "requestedSchema": SCHEMA}}, RESULTS])
    form = {"form": {**FORM, "requested_schema": SCHEMA}}
    return fake([*[form] * calls, RESULTS], allowed_tools=["mcp__desk__form"])


def test_the_mode_of_a_form_is_optional_and_its_numbers_are_finite() -> None:
    form = {**FORM, "requestedSchema": {"properties": {"share": {"type": "number"}}}}
    for params in (form, form | {"mode": "form"}, form | {"mode": None}):
        assert [question.name for question in form_questions(params) or []] == ["share"]
    assert form_questions(form | {"mode": "url"}) is None
    assert form_content(form, {"share": "0.5"}) == {"share": 0.5}
    assert [form_content(form, {"share": text}) for text in ("inf", "nan", "half")] == [None] * 3


@pytest.fixture
def runs(kind: str, tmp_path: Path) -> AdapterRuns:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    adapter = AgentSettings(kind=kind, command=(kind,)).plugin.adapter
    assert adapter is not None
    return AdapterRuns(adapter, tmp_path / "work", tmp_path / "home")


def run(runs: AdapterRuns, settings: dict[str, Any], *answers: str) -> Message:
    """Run the adapter of this agent; return its last message."""
    command = [sys.executable, *settings["command"][1:]]
    tools = [f"--allow={tool}" for tool in settings.get("allowed_tools", [])]
    return runs.run(command, answers, options=[f"--mode={settings['session_mode']}", *tools])[-1]


@pytest.mark.parametrize("kind", ["acp", "claude"])
def test_a_form_is_a_question_for_each_field_and_is_not_asked_again(
    runs: AdapterRuns, kind: str
) -> None:
    settings = agent(kind, 2)
    assert run(runs, settings)["type"] == "ask"
    first = runs.asked[-1]
    assert "asks:\n\nWhich database?" in first["text"]
    assert [item["value"] for item in first["choices"]] == ["PostgreSQL", "SQLite", "decline"]
    runs.answer("SQLite")
    assert run(runs, settings)["type"] == "ask"
    assert "How many copies?\n\n(copies)" in runs.asked[-1]["text"]
    runs.answer("3")
    [result] = json.loads(run(runs, settings)["summary"])
    expected = {"action": "accept", "content": {"database": "SQLite", "copies": 3}}
    assert json.loads(result) == expected
    assert {item["key"] for item in runs.asked} == {"input:1", "input:2"}


@pytest.mark.parametrize("kind", ["acp", "claude"])
def test_a_declined_form_gives_the_server_no_answer(runs: AdapterRuns, kind: str) -> None:
    [result] = json.loads(run(runs, agent(kind, 1), "decline", "3")["summary"])
    assert json.loads(result) == {"action": "decline"}
