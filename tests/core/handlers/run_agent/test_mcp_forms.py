"""Forms of MCP servers: questions with choices, whose answers a later run gives the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.agents.mcp_forms import form_content, form_questions
from draftsman.runtime import Runtime
from tests.core.handlers.run_agent.adapted_agents import (
    adapted_worker,
    asked,
    ended,
    questions_of,
)
from tests.core.handlers.run_agent.test_acp import acp_agent
from tests.core.handlers.run_agent.test_claude import fake
from tests.core.loops.agent_jobs import make_repository, submit_agent_job
from tests.factories import Factory

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


@pytest.mark.parametrize("kind", ["acp", "claude"])
async def test_a_form_is_a_question_for_each_field_and_is_not_asked_again(
    rt: Runtime, make: Factory, tmp_path: Path, kind: str
) -> None:
    number = await submit_agent_job(make, make_repository(tmp_path / "repo", a="one\n"))
    async with adapted_worker(rt, tmp_path / "data", {"test": agent(kind, 2)}):
        first = await asked(rt, number)
        assert "asks:\n\nWhich database?" in first.text
        assert [choice["value"] for choice in first.choices] == ["PostgreSQL", "SQLite", "decline"]
        await make.answer(number, "SQLite")
        second = await asked(rt, number, 2)
        assert "How many copies?\n\n(copies)" in second.text
        await make.answer(number, "3", n=2)
        job = await ended(rt, number)
    [result] = json.loads((job.result or {})["summary"])
    expected = {"action": "accept", "content": {"database": "SQLite", "copies": 3}}
    assert json.loads(result) == expected
    assert len(await questions_of(rt, number)) == 2


@pytest.mark.parametrize("kind", ["acp", "claude"])
async def test_a_declined_form_gives_the_server_no_answer(
    rt: Runtime, make: Factory, tmp_path: Path, kind: str
) -> None:
    number = await submit_agent_job(make, make_repository(tmp_path / "repo", a="one\n"))
    async with adapted_worker(rt, tmp_path / "data", {"test": agent(kind, 1)}, ask_grace=60):
        await asked(rt, number)
        await make.answer(number, "decline")
        await asked(rt, number, 2)
        await make.answer(number, "3", n=2)
        job = await ended(rt, number)
    [result] = json.loads((job.result or {})["summary"])
    assert json.loads(result) == {"action": "decline"}
