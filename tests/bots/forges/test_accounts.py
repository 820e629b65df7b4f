"""Logins of people at forges: each belongs to the account that first acted under it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from draftsman.errors import NotFound, NotPermitted
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.people import People
from tests.bots.forges.issues import LABEL, Issue, comment


async def test_a_login_that_another_account_took_is_refused_until_an_operator_unlinks_it(
    issue: Issue, rt: Runtime, make: Factory, people: People
) -> None:
    assert await issue.on(replace(LABEL, author_id="7")) == "submitted"
    (listed,) = await rt.read_model.jobs()
    job = await rt.read_model.job(listed.number)
    work = await make.running(job.number)
    assert await rt.asking.ask(work.lease, QUESTION)
    await issue.delivered(job.number)
    stolen = comment(f"/answer {job.name} red", "Anna", 2, author_id="66")
    assert await issue.on(stolen) == "refused"
    assert (await rt.read_model.job(job.number)).status is Status.WAITING_FOR_INPUT
    _, answers = await rt.questions.of_job(job.number)
    assert answers == [], "nothing is stored in her name"
    label = replace(LABEL, author_id="66", key="label:7:fix it:y")
    control = comment(f"@draftsman pause {job.name}", "anna", 3, author_id="66")
    assert [await issue.on(event) for event in (label, control)] == ["refused"] * 2
    (reply, *_) = [
        note.body for note in issue.place.fake.world.comments() if "account 7" in note.body
    ]
    assert "acme:anna was used by the account 7 of the forge, and this is 66" in reply
    assert "`draftsman people unlink forge:acme:anna`" in reply

    with pytest.raises(NotPermitted, match="may not unlink"):
        await rt.people.unlink("forge", "acme:anna", people.ben)
    assert await rt.people.unlink("forge", "acme:anna", people.olga) == "anna"
    with pytest.raises(NotFound, match="is not linked"):
        await rt.people.unlink("forge", "acme:anna", people.olga)
    again = replace(stolen, key="comment:4")
    assert await issue.on(again) == "answered", "the next account under the login is hers"
    assert await issue.on(comment("/draftsman pause", "anna", 5, author_id="7")) == "refused"


async def test_the_login_of_a_stranger_is_bound_to_nobody(issue: Issue, rt: Runtime) -> None:
    assert await issue.on(replace(LABEL, author="mallory", author_id="5")) == "refused"
    actor = Actor("forge", "acme:mallory", "mallory")
    assert await rt.people.bind_account(actor, "6") == "6", "her first account is still open"
