"""Identical questions by role: a person's answer and a worker's application count for all jobs."""

from __future__ import annotations

from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.answer import Verdict
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.rights.conftest import As
from tests.support.clock import Clock
from tests.support.permissions import SHOP


async def test_a_person_and_a_bot_answer_for_all_jobs(
    as_role: As, known: Runtime, make: Factory
) -> None:
    ben = await as_role("ben")
    bot = await as_role("bot")
    accounts = ((ben, await ben.actor()), (bot, Actor("slack", "U-BEN", "Ben")))
    for number, (rt, actor) in enumerate(accounts):
        jobs = [await make.asked(repo=SHOP, notify=["slack:C1"]) for _ in range(3)]
        response = Response(source_event_id=f"e{number}", text="red")
        verdict = await rt.questions.answer(jobs[1].number, 1, response, actor)
        assert verdict.also == (f"{jobs[0].name}/1", f"{jobs[2].name}/1")
        for work in jobs:
            assert (await known.read_model.job(work.number)).status is Status.RESUMED


async def test_a_worker_applies_the_decision_of_a_person_to_all_jobs(
    as_role: As, known: Runtime, make: Factory, clock: Clock
) -> None:
    jobs = [await make.asked(repo=SHOP) for _ in range(2)]
    ben = await as_role("ben")
    response = Response(source_event_id="key", text="red")
    held = await ben.pending_decisions.answer(jobs[0].number, 1, response, await ben.actor(), 5)
    assert not isinstance(held, Verdict)
    await clock.forward(6)
    assert await (await as_role("worker")).pending_decisions.apply_due(LeaderTerm()) == 1
    for work in jobs:
        (question,), (answer,) = await known.questions.of_job(work.number)
        assert (question.resolution or {})["by"] == ["ben"]
        assert answer.voter == "ben"
    attested = (await known.read_model.invariants())["answers_are_attested"]
    assert attested == []
