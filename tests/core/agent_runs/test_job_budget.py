"""Jobs that use up their budget: the question, a larger budget, and the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.errors import UsageError
from draftsman.handlers import registry
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.questions.response import Response
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.attacks.catalog import attack
from tests.core.agent_runs.gateway_agents import provider, with_gateway
from tests.core.worker.agent_jobs import agent_worker, make_repository, submit_agent_job
from tests.core.worker.workers import (
    last_event,
    running_worker,
    wait_for_end,
    wait_for_question,
)
from tests.support.faulty_server import FaultyServer

__all__ = ["provider"]
S = Status
CALLS = """
done = start["checkpoint"] or []
while len(done) < 3:
    reply = call(max_tokens=5)
    if "error" in reply:
        say("error", **{"class": "PERMANENT", "code": "api", "message": json.dumps(reply)})
        sys.exit(1)
    done = done + [start["run"]]
    open("a.txt", "w").write(str(done))
    say("checkpoint", id=str(len(done)), data=done)
    hear()
say("result", summary=json.dumps(done))
"""
"""An agent of three calls, of $0.0045 each; it ends with an error if a call is refused."""
REPORTS = """
done = (start["checkpoint"] or 0) + 1
open("a.txt", "w").write(str(done))
say("checkpoint", id="1", data=done)
hear()
say("usage", cost_usd=0.75, input_tokens=5)
if done < 3:
    assert hear()["type"] == "park"
    sys.exit(0)
say("result", summary=f"{done} calls")
"""


async def job_with_budget(rt: Runtime, make: Factory, path: Path, **budget: float) -> int:
    """Submit a job of a repository with this budget."""
    repo = Repo.at(parse(str(make_repository(path))))
    added = await rt.repos.add(repo, profile({"budget": budget}), make.owner)
    return await submit_agent_job(make, added.remote_url)


async def answer(rt: Runtime, number: int, ordinal: int, text: str, actor: Actor) -> bool:
    response = Response(source_event_id=f"{ordinal}:{text}:{actor.id}", text=text)
    return (await rt.questions.answer(number, ordinal, response, actor)).accepted


async def test_an_agent_that_is_refused_a_call_continues_after_the_budget_was_raised(
    rt: Runtime, make: Factory, tmp_path: Path, provider: FaultyServer
) -> None:
    number = await job_with_budget(rt, make, tmp_path / "repo", cost_usd=0.004)
    configured = with_gateway(rt, tmp_path, provider, CALLS, "off")
    async with running_worker(configured, registry.load({}), leader=False):
        await wait_for_question(rt, number)
        question = await rt.questions.get(number, 1)
        assert question.text == (
            f"D-{number} has used $0.0045 of $0.0040. Add $0.0040, add $0.0160, or stop?"
        )
        assert [item["label"] for item in question.choices] == [
            "Add $0.0040",
            "Add $0.0160",
            "Stop",
        ]
        why = await rt.read_model.why(number)
        assert why.text == f"D-{number}/1 needs an answer from olga: {question.text}"
        [run] = await rt.read_model.runs(number)
        assert (run.status, run.error) == ("parked", None), "the refusal is no failure"
        assert await answer(rt, number, 1, "0.004", make.owner)
        await wait_for_question(rt, number, 2)
        assert await answer(rt, number, 2, "$1.50", make.owner)
        job = await wait_for_end(rt, number)
    assert (job.status, job.run_count) == (S.COMPLETED, 3), job.last_error
    assert (job.result or {})["summary"] == "[1, 2, 3]", "each run continued from the checkpoint"
    assert len(provider.requests) == 3, "no refused call reached the provider"
    assert (await last_event(rt, number, "budget_raised")).payload["added"] == 1.5
    assert (job.attempts, job.retry_count) == (0, 0)


async def test_a_job_that_reports_its_usage_is_asked_and_stopped_with_its_patch(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    number = await job_with_budget(rt, make, tmp_path / "repo", cost_usd=0.5, input_tokens=1000)
    async with agent_worker(rt, tmp_path / "data", REPORTS):
        await wait_for_question(rt, number)
        with pytest.raises(UsageError, match="'please' is not an amount"):
            await answer(rt, number, 1, "please", make.owner)
        assert await answer(rt, number, 1, "Add $0.50", make.owner)
        await wait_for_question(rt, number, 2)
        assert await answer(rt, number, 2, "Stop", make.owner)
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert job.last_error == f"D-{number} has used $1.50 of $1.00; stopped by {make.owner.voter}"
    assert b"+2" in (await rt.checkpoints.read_artifact(number, "changes.patch"))[1]


async def test_a_result_after_the_last_report_needs_no_larger_budget(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    code = """
say("usage", cost_usd=0.75)
say("result", summary="done")
"""
    number = await job_with_budget(rt, make, tmp_path / "repo", cost_usd=0.5)
    async with agent_worker(rt, tmp_path / "data", code):
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error


@attack(
    "An agent calls a model that has no price, so that a budget in money never ends",
    surface="quota",
    with_sandbox="refused before the call; the job fails and names the setting",
)
@pytest.mark.parametrize("budget", [{"cost_usd": 5}, {"input_tokens": 10**6}])
async def test_a_model_without_a_price_is_not_called(
    rt: Runtime, make: Factory, tmp_path: Path, provider: FaultyServer, budget: dict[str, float]
) -> None:
    number = await job_with_budget(rt, make, tmp_path / "repo", **budget)
    code = CALLS.replace("max_tokens=5", "model='other'")
    configured = with_gateway(rt, tmp_path, provider, code, "off")
    async with running_worker(configured, registry.load({}), leader=False):
        job = await wait_for_end(rt, number)
    assert job.status is S.FAILED
    assert job.last_error == 'the model other has no price: set [prices."other"]'
    assert provider.requests == []
