"""Codex on a job: permissions, questions of the model, and resumed threads."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.agent_runs.clones.tree_removal import remove_tree
from draftsman.runtime import Runtime
from draftsman.settings.agents import known_table
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.agent_runs.adapted_agents import (
    adapted_worker,
    asked,
    ended,
    lines_of,
    questions_of,
)
from tests.core.worker.agent_jobs import git, make_repository, submit_agent_job
from tests.core.worker.workers import is_free
from tests.support.adapter_driver import AdapterRuns, Message

FAKE: Final = Path(__file__).parents[2] / "support" / "codex_agent.py"
RUN: Final[dict[str, Any]] = {"run": "echo approved >> ran.txt"}
OPTIONS: Final[list[dict[str, Any]]] = [
    {"label": "PostgreSQL", "description": "durable"},
    {"label": "SQLite"},
]
INPUT: Final[dict[str, Any]] = {
    "input": [
        {"id": "database", "header": "Database", "question": "Which one?", "options": OPTIONS},
        {"id": "name", "header": "Name", "question": "Which name?", "options": []},
    ]
}
DONE: Final[dict[str, Any]] = {"say": "all done"}
PROMPTS: Final[dict[str, Any]] = {"say": "PROMPTS"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository whose configuration of Codex would start a program."""
    path = make_repository(tmp_path / "repo", a="one\n")
    (path / ".codex").mkdir()
    server = path / ".codex" / "server"
    server.write_text("#!/bin/sh\ntouch started.txt\n")
    server.chmod(0o755)
    git("add", "-A", cwd=path)
    git("commit", "-qm", "hostile", cwd=path)
    return path


def codex_agent(script: list[dict[str, Any]], *arguments: str, **settings: Any) -> dict[str, Any]:
    """Return the settings of Codex, with the scripted agent as its program."""
    program = ["{python}", "-I", "-S", str(FAKE), json.dumps(script), "app-server", *arguments]
    return dict(known_table("codex")) | {"command": program} | settings


async def test_an_approved_command_runs_once_in_a_later_run_on_another_host(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    agents = {"test": codex_agent([RUN, PROMPTS])}
    async with adapted_worker(rt, tmp_path / "one", agents) as process:
        question = await asked(rt, number)
        await until(lambda: is_free(process), "a free slot")  # it has removed its clone
    remove_tree(tmp_path / "one")
    assert "to run a command?\n\n$ echo approved >> ran.txt\n\nTree " in question.text
    await make.answer(number, "allow once")
    async with adapted_worker(rt, tmp_path / "two", agents):
        job = await ended(rt, number)
    assert lines_of(repo, number) == ["approved"]
    assert (job.result or {})["files_changed"] == 1, "the repository's program was not started"
    first, second = json.loads((job.result or {})["summary"])
    assert first == "Do it"
    assert "Make exactly this call now, before any other." in second
    assert [item.status for item in await questions_of(rt, number)] == ["answered"]


@pytest.fixture
def runs(tmp_path: Path) -> AdapterRuns:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\n")
    (tmp_path / "home").mkdir()
    return AdapterRuns("draftsman_agents.codex", tmp_path / "work", tmp_path / "home")


def run(runs: AdapterRuns, script: list[dict[str, Any]], *answers: str) -> Message:
    """Run the adapter with the scripted agent; return its last message."""
    command = [sys.executable, "-I", "-S", str(FAKE), json.dumps(script), "app-server"]
    return runs.run(command, answers)[-1]


def test_a_changed_edit_is_asked_anew_and_a_denial_reaches_the_model(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    assert run(runs, [RUN, DONE])["type"] == "ask"
    runs.answer("allow once")
    edit: dict[str, Any] = {"edit": ["a.txt", "two\n"]}
    script = [edit, {"edit": ["b.txt", "b\n"], "hidden": True}, PROMPTS]
    assert run(runs, script)["type"] == "ask"
    first, second = runs.asked
    assert first["key"] == second["key"], "the question supersedes the earlier question"
    assert "--- a/./a.txt\n+++ b/./a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n\nTree" in second["text"]
    runs.answer("not on a Friday")
    result = run(runs, script)
    assert "not on a Friday. Do not make it again" in result["summary"]
    assert "An edit was denied, because its changes were not shown." in result["summary"]
    assert (tmp_path / "work" / "a.txt").read_text() == "one\n"
    assert not (tmp_path / "work" / "b.txt").exists()


def test_questions_of_the_model_are_questions_with_their_choices(runs: AdapterRuns) -> None:
    assert run(runs, [INPUT, PROMPTS])["type"] == "ask"
    assert runs.asked[0]["text"] == "agent asks:\n\nWhich one?"
    assert [item["value"] for item in runs.asked[0]["choices"]] == ["PostgreSQL", "SQLite"]
    runs.answer("SQLite")
    assert run(runs, [INPUT, PROMPTS])["type"] == "ask"
    assert runs.asked[-1]["text"] == "agent asks:\n\nWhich name?"
    runs.answer("call it draft")
    prompts = json.loads(run(runs, [INPUT, PROMPTS])["summary"])
    told = "Which one?\nAnswer: SQLite\n\nWhich name?\nAnswer: call it draft"
    assert prompts[-1].endswith(told)
    assert {step["state"] for step in runs.steps.values()} == {"done"}
    again = run(runs, [INPUT, INPUT, PROMPTS], "PostgreSQL", "ada")
    assert again["type"] == "result"
    assert [item["key"] for item in runs.asked[-2:]] == ["input:3", "input:4"], "asked once more"
