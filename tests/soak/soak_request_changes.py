"""Real coding agents whose work people send back: in the session that they had, in each sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.jobs.job import Status
from draftsman.questions.question import Decision, QuestionKind, QuestionStatus
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.agent_jobs import git, submit_agent_job
from tests.soak.soak_agent_budgets import AGENTS
from tests.soak.soak_busy_models import MODES, NAMES, SECONDS, with_agent, worker
from tests.soak.soak_busy_models import repo as repo
from tests.support.fake_model import FakeModel, Turn, fake_model

pytestmark = pytest.mark.timeout(600)
COMMENT: Final = "twice, please"
CASES: Final = [
    (name, mode) for name in NAMES for mode in MODES if (name, mode) != ("opencode", "landlock")
]
"""OpenCode keeps the folder of a session, which is another in each run without namespaces."""
DECISIONS: Final = (Decision.REQUEST_CHANGES, Decision.APPROVE)


class WillingModel(FakeModel):
    """A model that makes its call once, and once more when it is told to."""

    def turn(self, results: int, conversation: list[dict[str, Any]]) -> Turn:
        is_told = COMMENT in json.dumps(conversation)
        if results <= is_told:
            return self.script[0]
        return {"text": "did it twice" if is_told else "did it"}


@pytest.mark.parametrize(("name", "mode"), CASES)
async def test_an_agent_makes_requested_changes_in_its_session(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, name: str, mode: str
) -> None:
    await rt.repos.add(Repo.at(parse(str(repo))), profile({"risky_paths": ["ran.txt"]}), make.owner)
    number = await submit_agent_job(make, repo, agent=name)
    decisions = iter(DECISIONS)
    answered = set[int]()

    async def look() -> bool:
        for question in await rt.questions.open(number):
            if question.ordinal in answered or question.status is not QuestionStatus.OPEN:
                continue
            answered.add(question.ordinal)
            if question.kind is QuestionKind.INPUT:
                await make.answer(number, "allow once", n=question.ordinal)
                continue
            decision = next(decisions)
            fields: dict[str, Any] = {}
            if decision is Decision.REQUEST_CHANGES:
                comments = [{"path": "ran.txt", "line": 1, "text": COMMENT}]
                fields = {"reason": "almost", "comments": comments}
            await make.review(number, decision, make.owner, question.ordinal, **fields)
        job = await rt.read_model.job(number)
        return job.result is not None or job.last_error is not None

    with fake_model([AGENTS[name]["run"]], WillingModel) as model:
        async with worker(with_agent(rt, tmp_path / "data", name, model, mode=mode)):
            await until(look, f"the end of D-{number}", SECONDS)
    job = await rt.read_model.job(number)
    assert (job.status, job.last_error) == (Status.COMPLETED, None), job.last_error
    assert (job.result or {})["summary"] == "did it twice"
    assert git("show", f"draftsman/D-{number}:ran.txt", cwd=repo) == "yes\nyes"
    told = next(item for item in map(json.dumps, model.conversations) if COMMENT in item)
    assert told.count("echo yes >> ran.txt") >= 1, "the session knows its first turn"
    assert f"almost\\n\\nran.txt:1: {COMMENT}" in told or f"ran.txt:1: {COMMENT}" in told
    questions, _ = await rt.questions.of_job(number)
    outcomes = [item.outcome for item in questions if item.kind is QuestionKind.APPROVAL]
    assert outcomes == ["changes_requested", "approved"]
