"""Approval tokens: stored as hashes, valid for a single decision of their approver."""

from __future__ import annotations

import hashlib

import pytest

from draftsman.database.database import Connection
from draftsman.errors import NotFound, NotPermitted, QuestionClosed
from draftsman.jobs.job import Source, Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import SYSTEM, Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from tests.support.statements import rows

BEARER = Actor("slack", "U-CAROL", "Carol")
"""The approver on another channel, which maps to the same person."""


async def _mint(make: Factory, people: People, job: int, approver: str = "carol") -> str:
    return await make.rt.questions.mint_token(job, 1, approver, getattr(people, approver))


async def test_a_token_decides_in_its_approvers_name(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked(GATE)
    token = await _mint(make, people, work.number)
    verdict = await make.decide(work.number, True, BEARER, token=token)
    assert verdict.resolution is not None
    assert verdict.resolution["by"] == ["carol"]
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED
    _, (answer,) = await rt.questions.of_job(work.number)
    assert (answer.voter, answer.responder_id) == ("carol", "U-CAROL")


async def test_only_the_hash_of_a_token_is_stored(
    make: Factory, rt: Runtime, people: People, conn: Connection
) -> None:
    work = await make.asked(GATE)
    token = await _mint(make, people, work.number)
    assert len(token) >= 32
    await make.decide(work.number, False, BEARER, token=token, reason="no")
    ((token_hash, used),) = await rows(
        conn, "SELECT token_hash, used_at IS NOT NULL FROM draftsman.approval_tokens"
    )
    assert (token_hash, used) == (hashlib.sha256(token.encode()).hexdigest(), True)
    stored = await rows(
        conn,
        "SELECT to_jsonb(a)::text FROM draftsman.job_answers a"
        " UNION ALL SELECT to_jsonb(e)::text FROM draftsman.job_events e"
        " UNION ALL SELECT to_jsonb(q)::text FROM draftsman.job_questions q",
    )
    assert not any(token in text for (text,) in stored)


async def test_a_token_counts_once(make: Factory, rt: Runtime, people: People) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    token = await _mint(make, people, work.number)
    assert (await make.decide(work.number, True, BEARER, token=token)).accepted
    second_verdict = await make.decide(work.number, False, BEARER, token=token)
    assert second_verdict.reason == "this token was already used; tokens are single-use"
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_APPROVAL


async def test_a_newer_token_replaces_the_older(make: Factory, people: People) -> None:
    work = await make.asked(GATE)
    old, new = [await _mint(make, people, work.number) for _ in range(2)]
    assert not (await make.decide(work.number, True, BEARER, token=old)).accepted
    assert (await make.decide(work.number, True, BEARER, token=new)).accepted


async def test_a_token_is_valid_for_its_approval_only(make: Factory, people: People) -> None:
    first = await make.asked(GATE)
    other = await make.asked(GATE)
    token = await _mint(make, people, first.number)
    refused = await make.decide(other.number, True, BEARER, token=token)
    assert refused.reason == f"this token is not valid for {other.name}/1"
    assert not (await make.decide(other.number, True, BEARER, token="guess")).accepted
    assert (await make.decide(first.number, True, BEARER, token=token)).accepted


async def test_an_invalid_token_is_refused_even_from_an_approver(
    make: Factory, people: People
) -> None:
    work = await make.asked(GATE)
    assert not (await make.decide(work.number, True, people.carol, token="guess")).accepted


async def test_a_token_and_its_approvers_own_vote_are_one_vote(
    make: Factory, people: People
) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    token = await _mint(make, people, work.number)
    assert (await make.decide(work.number, True, people.carol)).accepted
    refused = await make.decide(work.number, True, BEARER, token=token)
    assert refused.reason == "carol has already approved; each person votes once"


@pytest.mark.parametrize("end", ["answered", "canceled", "expired", "asked again"])
async def test_a_token_is_invalid_after_its_question_closed(
    make: Factory, rt: Runtime, people: People, end: str
) -> None:
    seconds = 0.000001 if end == "expired" else 60.0
    work = await make.asked(GATE.model_copy(update={"expires_in": seconds}))
    token = await _mint(make, people, work.number)
    match end:
        case "expired":
            await rt.expiry.expire(LeaderTerm())
        case "canceled":
            await rt.job_control.cancel(work.number, make.owner)
        case _:
            await make.decide(work.number, True, people.dave)
    if end == "asked again":
        next_run = await make.running(work.number)
        await rt.asking.ask(next_run.lease, GATE.model_copy(update={"text": "Really?"}))
        assert not (await make.decide(work.number, True, BEARER, n=2, token=token)).accepted
    assert not (await make.decide(work.number, True, BEARER, token=token)).accepted
    with pytest.raises(QuestionClosed):
        await _mint(make, people, work.number)


async def test_a_used_token_cannot_be_replaced(make: Factory, people: People) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    token = await _mint(make, people, work.number)
    await make.decide(work.number, True, BEARER, token=token)
    with pytest.raises(QuestionClosed, match="carol has already decided"):
        await _mint(make, people, work.number)


async def test_only_the_approver_creates_a_token(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked(GATE)
    for actor in (people.olga, people.anna, people.dave, Actor(Source.CLI, "x", "X")):
        with pytest.raises(NotPermitted, match="may not create a token for carol"):
            await rt.questions.mint_token(work.number, 1, "carol", actor)
    with pytest.raises(NotPermitted, match="erin is not an approver of D-1/1; approvers: carol,"):
        await _mint(make, people, work.number, "erin")
    with pytest.raises(NotFound):
        await rt.questions.mint_token(work.number, 2, "carol", people.carol)
    refused = [e for e in await rt.read_model.job_events(work.number) if e.kind == "token_refused"]
    assert [e.actor for e in refused] == ["cli:olga", "cli:anna", "cli:dave", "cli:x", "cli:erin"]


async def test_the_owner_of_an_embedded_database_decides_without_a_token(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    work = await make.asked(GATE)
    with pytest.raises(NotPermitted, match="decides without a token") as refused:
        await rt.questions.mint_token(work.number, 1, "root", owner)
    assert str(refused.value.hint) == f"run: draftsman approve {work.name}/1"
    assert (await make.decide(work.number, True, owner)).accepted


async def test_creation_and_use_of_a_token_are_events(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked(GATE)
    token = await rt.questions.mint_token(work.number, 1, "carol", SYSTEM)
    assert not (await make.decide(work.number, True, people.dave, token=token)).accepted
    assert (await make.decide(work.number, True, BEARER, token=token)).accepted
    kinds = {"token_minted", "token_redeemed", "answer_refused"}
    events = [
        (e.kind, e.actor) for e in await rt.read_model.job_events(work.number) if e.kind in kinds
    ]
    assert events == [
        ("token_minted", "internal:system"),
        ("answer_refused", "cli:dave"),
        ("token_redeemed", "slack:U-CAROL"),
    ]


async def test_only_its_approver_can_use_a_token(make: Factory, people: People) -> None:
    work = await make.asked(GATE)
    token = await _mint(make, people, work.number)
    for actor in (people.olga, people.dave, Actor(Source.API, "curl", "curl")):
        refused = await make.decide(work.number, True, actor, token=token)
        assert refused.reason is not None
        assert refused.reason.startswith("only the approver can redeem a token")
    assert (await make.decide(work.number, True, people.carol, token=token)).accepted


async def test_a_token_created_by_another_person_does_not_count(
    make: Factory, people: People, conn: Connection
) -> None:
    work = await make.asked(GATE)
    token = await _mint(make, people, work.number)
    await conn.execute("UPDATE draftsman.approval_tokens SET minted_by = 'olga'")
    refused = await make.decide(work.number, True, people.carol, token=token)
    assert refused.reason == "this token was created by another person; create a token yourself"


async def test_refused_token_requests_add_no_events(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked(GATE)
    for _ in range(25):
        with pytest.raises(NotPermitted):
            await rt.questions.mint_token(work.number, 1, "carol", people.olga)
    events = await rt.read_model.job_events(work.number)
    assert sum(e.kind == "token_refused" for e in events) == 20


async def test_a_question_has_no_tokens(make: Factory, rt: Runtime, people: People) -> None:
    work = await make.asked(QUESTION)
    with pytest.raises(NotPermitted, match="only approvals have tokens"):
        await _mint(make, people, work.number)
    assert await rt.questions.open(work.number)


async def test_the_invoker_neither_creates_nor_uses_a_token(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.running(await make.queued(actor=people.erin))
    item = GATE.model_copy(update={"approvers": ("erin", "carol")})
    await rt.asking.ask(work.lease, item)
    with pytest.raises(NotPermitted, match="erin requested this job"):
        await _mint(make, people, work.number, "erin")
    token = await rt.questions.mint_token(work.number, 1, "erin", SYSTEM)
    refused = await make.decide(work.number, True, people.erin, token=token)
    assert refused.reason == "erin requested this job and may not approve it; allowed: carol"
