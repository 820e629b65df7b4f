"""Permission rules against revocations and denials at the same time, in both orders."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.questions.permission_rules.permission_rule import RuleStatus
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.permissions import ALLOW, DENY, SHOP, asked, decided, question, ratified
from tests.support.races import FirstSession

COMMAND = "pytest tests/test_a.py"


async def _ask(rt: Runtime, work: ClaimedJob) -> Status:
    await rt.asking.ask(work.lease, question(COMMAND))
    return (await rt.read_model.job(work.number)).status


async def _deny(rt: Runtime, work: ClaimedJob, people: People) -> bool:
    response = Response(source_event_id="denial", text=DENY)
    return (await rt.questions.answer(work.number, 1, response, people.ben)).accepted


async def test_a_rule_that_is_being_revoked_allows_nothing(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    rule = await ratified(rt, "pytest tests/**", people.olga)
    work = await make.running(repo=SHOP)
    async with first.doing(first.rt.rules.revoke(rule.id, people.olga)):
        status = await first.then(_ask(rt, work), conn)
    assert status is Status.WAITING_FOR_INPUT
    assert (await rt.rules.get(rule.id)).uses == 0


async def test_a_revocation_waits_for_the_question_that_the_rule_answers(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    rule = await ratified(rt, "pytest tests/**", people.olga)
    work = await make.running(repo=SHOP)
    later = await make.running(repo=SHOP)
    async with first.doing(first.rt.asking.ask(work.lease, question(COMMAND))):
        ended = await first.then(rt.rules.revoke(rule.id, people.olga), conn)
    assert (ended.status, ended.uses) == (RuleStatus.REVOKED, 1)
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED
    assert await _ask(rt, later) is Status.WAITING_FOR_INPUT


async def test_a_denial_that_is_not_committed_stops_the_rule(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    waiting = await asked(make, COMMAND)
    rule = await ratified(rt, "pytest tests/**", people.olga)
    work = await make.running(repo=SHOP)
    async with first.doing(_deny(first.rt, waiting, people)):
        status = await first.then(_ask(rt, work), conn)
    assert status is Status.WAITING_FOR_INPUT
    assert (await rt.rules.get(rule.id)).end_reason == f"ben denied {waiting.name}/1"


async def test_a_proposal_is_not_ratified_over_a_denial_that_comes_first(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    waiting = await asked(make, COMMAND)
    rule = await rt.rules.propose("git.example.org/acme/shop", "pytest tests/**", people.olga)
    async with first.doing(_deny(first.rt, waiting, people)):
        with pytest.raises(Refused, match=f"rule {rule.id} is revoked: ben denied"):
            await first.then(rt.rules.ratify(rule.id, people.olga), conn)


async def test_a_denial_waits_for_a_ratification_and_then_ends_the_rule(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    waiting = await asked(make, COMMAND)
    rule = await rt.rules.propose("git.example.org/acme/shop", "pytest tests/**", people.olga)
    async with first.doing(first.rt.rules.ratify(rule.id, people.olga)):
        assert await first.then(_deny(rt, waiting, people), conn)
    assert (await rt.rules.get(rule.id)).status is RuleStatus.REVOKED


async def test_no_rule_is_proposed_over_a_denial_that_is_not_committed(
    rt: Runtime, make: Factory, people: People, first: FirstSession, conn: Connection
) -> None:
    await decided(rt, make, [COMMAND] * 5, ALLOW, people.ben)
    waiting = await asked(make, COMMAND)
    async with first.doing(_deny(first.rt, waiting, people)):
        assert await first.then(rt.rules.sweep(LeaderTerm()), conn) == 0
    assert await rt.rules.all() == []
