"""Real coding agents whose work is sent back with comments, in bubblewrap and under Landlock."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.actions.action import Call
from draftsman.actions.questions import request_changes
from draftsman.handlers import registry
from draftsman.questions.question import Question
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.agent_jobs import git, make_repository, submit_agent_job
from tests.core.worker.workers import running_worker
from tests.soak.soak_agent_budgets import AGENTS, with_agent
from tests.soak.soak_busy_models import MODES, NAMES, SECONDS
from tests.support.fake_model import FakeModel, Turn, fake_model

COMMENT: Final = "it must say no"
SECOND: Final = "echo no > ran.txt"
pytestmark = pytest.mark.timeout(600)


class ReviewedModel(FakeModel):
    """A model with a script of two calls and two texts: the last two for requested changes."""

    def turn(self, results: int, conversation: list[dict[str, Any]]) -> Turn:
        sent = json.dumps(conversation)
        if COMMENT in sent:  # a session that cannot go on is replaced by a new one
            results = 3 if SECOND in sent else 2
        return super().turn(results, conversation)


def script(name: str) -> Sequence[Turn]:
    """Return the turns of an agent, which writes two files and then changes one."""

    def turn(command: str) -> Turn:
        run: Turn = copy.deepcopy(AGENTS[name]["run"])
        run["args"]["cmd" if name == "codex" else "command"] = command
        return run

    first, second = turn("echo yes > ran.txt; echo b > b.txt"), turn(SECOND)
    return [first, {"text": "first"}, second, {"text": "second"}]


async def work_asked(rt: Runtime, make: Factory, number: int, since: int) -> Question:
    """Allow the calls of the agent, and return the next question about its work."""
    found: list[Question] = []

    async def look() -> bool:
        job = await rt.read_model.job(number)
        assert job.last_error is None, job.last_error
        questions, _ = await rt.questions.of_job(number)
        for question in questions[since:]:
            if question.status == "open" and question.text.startswith("Allow "):
                await make.answer(number, "allow once", n=question.ordinal)
            elif question.status == "open":
                found.append(question)
        return bool(found)

    await until(look, f"the work of D-{number}", SECONDS)
    return found[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
async def test_requested_changes_are_made_and_approved_as_a_difference(
    rt: Runtime,
    make: Factory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    mode: str,
) -> None:
    monkeypatch.setenv("KEY_OF_TEST", "sk-test")
    repo = make_repository(tmp_path / "repo", a="one\n")
    asks = profile({"max_files_changed": 1, "validation_commands": []})
    await rt.repos.add(Repo.at(parse(str(repo))), asks, make.owner)
    number = await submit_agent_job(make, repo, agent=name)
    with fake_model(script(name), ReviewedModel) as model:
        services = with_agent(rt, tmp_path / "data", name, model, mode=mode, ask_grace=SECONDS)
        async with running_worker(services, registry.load({}), leader=True, slots=1):
            first = await work_asked(rt, make, number, 0)
            call = Call(rt, make.owner, None)
            await request_changes(call, (number, first.ordinal), comments=[f"ran.txt:1={COMMENT}"])
            second = await work_asked(rt, make, number, first.ordinal)
            review = await rt.changes.of_question(second)
            assert review.since == first.name
            assert "-yes\n+no\n" in review.since_patch
            assert (await make.decide(number, True, make.owner, second.ordinal)).accepted

            async def is_done() -> bool:
                return (await rt.read_model.job(number)).result is not None

            await until(is_done, f"the result of D-{number}", SECONDS)
    job = await rt.read_model.job(number)
    assert (job.result or {})["summary"] == "second"
    branch = f"draftsman/D-{number}"
    assert git("show", f"{branch}:ran.txt", cwd=repo) == "no"
    assert git("show", f"{branch}:b.txt", cwd=repo) == "b"
    assert f"ran.txt:1: {COMMENT}" in json.dumps(model.conversations[-1])
