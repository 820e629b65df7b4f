"""Methods of the clients that delay the reminders of a question."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from draftsman import Client
from draftsman.errors import NotFound, NotPermitted, QuestionClosed, UsageError
from draftsman.jobs.job import Source
from draftsman.people.policy import Person
from draftsman.processes.host import login
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, PATCH, REVIEW, Factory


@pytest.fixture(autouse=True)
def _me(rt: Runtime) -> None:
    """Map the operating-system user to a person."""
    ids: dict[str, str] = dict.fromkeys((Source.CLI, Source.API), login())
    others = {
        name: person
        for name, person in rt.policy.people.items()
        if login() not in person.ids.values()
    }
    rt.policy.people = {"me": Person("me", frozenset({"responder"}), ids)} | others


async def test_a_question_is_acknowledged_snoozed_and_delegated(rt: Runtime, make: Factory) -> None:
    client = Client(rt)
    work = await make.asked()
    name = f"{work.name}/1"
    held = await client.acknowledge(name)
    now = await rt.checkpoints.now()
    assert (held.acknowledged, held.expires_at - now > timedelta(minutes=59)) == (True, True)
    [question] = await client.questions(work.number)
    assert await client.snooze(question, 60) - now < timedelta(minutes=2)
    until = await client.delegate(question, "ben", 7200)
    attention = (await rt.acknowledgments.attention([work.number]))[work.number, 1]
    assert (attention.delegated_to, attention.delegated_until) == ("ben", until)
    assert (attention.acknowledged_by, len(attention.snoozed)) == (None, 1)


async def test_changes_are_requested(rt: Runtime, make: Factory) -> None:
    me = replace(rt.policy.people["me"], roles=frozenset({"approver"}))
    rt.policy.people = {"me": me}
    rt.policy.self_approval = True
    client = Client(rt)
    approvers = {"approvers": ("me",)}
    review = REVIEW.model_copy(update=approvers)
    work = await make.running()
    await rt.changes.store(work.lease, PATCH)
    await rt.asking.ask(work.lease, review)
    name = f"{work.name}/1"
    with pytest.raises(UsageError, match="'x=1' is not a comment on a changed file"):
        await client.request_changes(name, comments=["x=1"])
    verdict = await client.request_changes(name, "add a test", comments=["a.py:1=why?"])
    assert (verdict.accepted, verdict.job_status) == (True, "resumed")
    with pytest.raises(QuestionClosed, match="changes were already requested"):
        await client.request_changes(name, "again")
    gate = await make.asked(GATE.model_copy(update=approvers))
    with pytest.raises(UsageError, match="takes no requests for changes"):
        await client.request_changes(f"{gate.name}/1", "no")


async def test_delays_are_refused_in_a_line(rt: Runtime, make: Factory) -> None:
    client = Client(rt)
    name = f"{(await make.asked()).name}/1"
    for seconds in (0, -1, 86_401, float("nan")):
        with pytest.raises(UsageError, match="more than 0 s, at most 1 day"):
            await client.acknowledge(name, seconds)
    with pytest.raises(UsageError, match="unknown person 'zoe'; people: "):
        await client.delegate(name, "zoe")
    with pytest.raises(NotPermitted, match="olga may not answer"):
        await client.delegate(name, "olga")
    with pytest.raises(UsageError, match="specify a question, such as"):
        await client.snooze(name.partition("/")[0], 60)
    with pytest.raises(NotFound):
        await client.acknowledge("D-999/1")
    await client.answer(name, "red")
    with pytest.raises(QuestionClosed, match="already answered"):
        await client.acknowledge(name)
