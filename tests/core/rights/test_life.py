"""The life of a job, each step by a process with its own database role."""

from __future__ import annotations

import pytest

from draftsman.errors import Refused
from draftsman.ids import new_id
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.people.directory import Directory, DirectoryEntry
from draftsman.questions.question import Decision, OnDeny, OnExpire
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman.worker.registry import store as workers
from draftsman.worker.registry.service import SessionLock
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.waits import until
from tests.core.rights.conftest import As
from tests.support.clock import Clock


async def test_each_role_can_run_its_part_of_a_job(as_role: As) -> None:
    anna, worker, bot, carol = [await as_role(user) for user in ("anna", "worker", "bot", "carol")]
    job = await anna.submissions.submit(
        invocation(type="noop", queue="q", notify=("log",)), await anna.actor()
    )
    make = Factory(worker, await worker.actor())
    work = await make.running(job.number)
    await worker.checkpoints.save(work.lease, {"n": 1})
    assert await worker.asking.ask(work.lease, QUESTION, invoker="anna")
    ben = Actor("slack", "U-BEN", "Ben")
    red = Response(source_event_id="click", text="red")
    assert (await bot.questions.answer(work.number, 1, red, ben)).resolved
    next_run = await make.running(work.number)
    gate = GATE.model_copy(update={"quorum": 2})
    assert await worker.asking.ask(next_run.lease, gate, invoker="anna")
    yes = Response(source_event_id="dave", decision=Decision.APPROVE)
    dave = Actor("slack", "U-DAVE", "Dave")
    assert (await bot.questions.answer(work.number, 2, yes, dave)).accepted
    second = Response(source_event_id="c", decision=Decision.APPROVE)
    verdict = await carol.questions.answer(work.number, 2, second, await carol.actor())
    assert verdict.job_status is Status.RESUMED
    last = await make.running(work.number)
    assert await worker.settlement.outcome(last, Done({"ok": True})) is Status.COMPLETED
    events = await carol.read_model.job_events(work.number)
    actors = {event.kind: event.actor for event in events}
    assert actors["job_created"].startswith("cli:t")
    assert actors["job_created"].endswith("_anna")
    assert actors["vote_received"] == "slack:U-DAVE"
    assert actors["answer_received"].endswith("_carol")
    _, answers = await carol.questions.of_job(work.number)
    assert {answer.voter for answer in answers} == {"ben", "dave", "carol"}
    violations = await carol.read_model.invariants()
    assert {name: rows for name, rows in violations.items() if rows} == {}


async def test_a_worker_sweeps(as_role: As, make: Factory, clock: Clock, known: Runtime) -> None:
    soon = {"expires_in": 60.0}
    plain = await make.asked(QUESTION.model_copy(update=soon))
    gate = await make.asked(GATE.model_copy(update=soon))
    rule = {"on_expire": OnExpire.ESCALATE, "escalate_to": "olga"}
    escalates = await make.asked(GATE.model_copy(update=soon | rule))
    lost = await make.running()
    due = await make.retrying()
    followed = await make.running(on_lost="new_job")
    dead = await make.dead()
    await clock.forward(3600)
    worker = await as_role("worker")
    for sweep in ("expire", "promote", "rescue", "deregister", "notify", "partitions"):
        await worker.sweeps.run(sweep, LeaderTerm())
    assert (await known.read_model.job(plain.number)).status is Status.EXPIRED
    assert (await known.read_model.job(gate.number)).status is Status.EXPIRED
    assert (await known.questions.get(escalates.number, 1)).approvers[-1] == "olga"
    assert (await known.read_model.job(lost.number)).status is not Status.RUNNING
    assert (await known.read_model.job(due)).status is Status.QUEUED
    assert [delivery.kind for delivery in await known.outbox.all(dead)] == ["result"]
    kinds = {event.kind for event in await known.read_model.job_events(followed.number)}
    assert "retry_not_created" not in kinds
    assert (await known.read_model.job(followed.number)).status in TERMINAL


async def test_a_bot_holds_a_session_lock_and_the_lease_of_its_poller_alone(
    as_role: As, make: Factory, known: Runtime
) -> None:
    bot = await as_role("bot")
    lock = SessionLock()
    owner = new_id()
    number = await make.queued(notify=("slack:C1",))
    conn = await bot.db.dedicated_connection()
    try:
        await lock.hold(conn)
        (item,) = await bot.delivery_sender.claim("slack", free=1, share=1, sender=lock.number)
        assert item.job == number
        assert await bot.delivery_sender.rescue(["slack"]) == 0
        assert await boards_of(bot).acquire(owner, 60, lock.number) is not None
    finally:
        await conn.close()
    other = await as_role("bot")

    async def free() -> bool:
        return await other.delivery_sender.rescue(["slack"]) == 1

    await until(free, "the delivery of a session that ended")
    assert await boards_of(other).acquire(new_id(), 60) is not None
    with pytest.raises(Refused, match="a bot cannot hold the lease leader"):
        async with bot.db.connection() as session:
            await workers.acquire(session, "leader", owner, 60)
    async with known.db.connection() as session:
        assert await workers.acquire(session, "leader", new_id(), 60)
    rename = "UPDATE draftsman.leases SET name = %s WHERE name = %s"
    for names in (("trello", "leader"), ("leader", "trello")):
        with pytest.raises(Refused, match="hold the lease leader"):
            async with bot.db.connection() as session:
                await session.execute(rename, names)


async def test_a_worker_can_apply_the_answers_of_the_request(as_role: As) -> None:
    anna = await as_role("anna")
    worker = await as_role("worker")
    request = invocation(type="noop", queue="q", overrides={"answers": {"pick": "red"}})
    job = await anna.submissions.submit(request, await anna.actor())
    work = await Factory(worker, await worker.actor()).running(job.number)
    assert await worker.asking.ask(work.lease, QUESTION, answer="red", invoker="anna")
    assert (await worker.read_model.job(job.number)).status is Status.RESUMED


async def test_a_person_cancels_retries_and_links(as_role: As) -> None:
    anna, bot, olga = [await as_role(user) for user in ("anna", "bot", "olga")]
    first, two = [
        await anna.submissions.submit(invocation(type="noop"), await anna.actor()) for _ in range(2)
    ]
    await anna.job_control.cancel(first.number, await anna.actor())
    await olga.job_control.cancel(two.number, await olga.actor())
    assert (await anna.job_control.retry(first.number, await anna.actor())).outcome == "created"
    assert (await olga.job_control.retry(two.number, await olga.actor())).outcome == "created"
    newcomer = Actor("slack", "U-NEW", "Newcomer")
    code = await bot.people.create_link_code(newcomer)
    assert (await anna.people.link(code, await anna.actor())).person == "anna"
    linked = await bot.people.actor(newcomer)
    assert (await bot.submissions.submit(invocation(type="noop"), linked)).outcome == "created"
    assert await anna.people.unlink("slack", "U-NEW", await anna.actor()) == "anna"


async def test_the_people_of_a_process_are_those_of_the_database(
    as_role: As, known: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftsman.people.service.stored_policy.REFRESH_INTERVAL", 0.01)
    anna = await as_role("anna")
    actor = await anna.actor()
    assert (actor.person, sorted(actor.roles)) == ("anna", ["invoker"])
    await known.people.save(Directory({"zoe": DirectoryEntry()}))

    async def gone() -> bool:
        return set(anna.policy.people) == {"zoe"}

    await until(gone, "the changed people")


async def test_decisions_stay_supported_by_their_votes(
    as_role: As, make: Factory, known: Runtime, clock: Clock
) -> None:
    carol, dave, ben = [await as_role(user) for user in ("carol", "dave", "ben")]
    decided = await make.asked(GATE)
    continuing = await make.asked(GATE.model_copy(update={"on_deny": OnDeny.CONTINUE}))
    twice = await make.asked(GATE.model_copy(update={"quorum": 2}))
    rule = {"on_expire": OnExpire.ESCALATE, "escalate_to": "dave", "expires_in": 60.0}
    late = await make.asked(GATE.model_copy(update=rule | {"approvers": ("carol",)}))
    plain = await make.asked(QUESTION)

    async def decide(rt: Runtime, job: int, yes: bool, why: str | None = None) -> None:
        decision = Decision.APPROVE if yes else Decision.DENY
        response = Response(source_event_id=f"{id(rt)}{yes}", decision=decision, reason=why)
        assert (await rt.questions.answer(job, 1, response, await rt.actor())).accepted

    await decide(carol, decided.number, True, "fine")
    await decide(carol, continuing.number, False, "not yet")
    await decide(carol, twice.number, True, "fine")
    await decide(carol, twice.number, False)  # an approver may still deny
    response = Response(source_event_id="ben", text="red")
    assert (await ben.questions.answer(plain.number, 1, response, await ben.actor())).resolved
    await clock.forward(61)
    await known.expiry.expire(LeaderTerm())
    await decide(dave, late.number, True)
    next_run = await make.running(decided.number)
    assert await known.asking.ask(next_run.lease, GATE.model_copy(update={"text": "Again?"}))
    await known.people.save(Directory({"zoe": DirectoryEntry()}))
    assert not any((await known.read_model.invariants()).values())


async def test_a_request_joins_a_live_job_in_the_name_of_the_session_alone(as_role: As) -> None:
    anna, bot, worker = [await as_role(user) for user in ("anna", "bot", "worker")]
    fields = {"type": "noop", "subject_key": "card:1", "queue": "q"}
    submitted = await anna.submissions.submit(invocation(**fields), await anna.actor())
    own = await anna.submissions.submit(
        invocation(**fields, text="and test it"), await anna.actor()
    )
    assert own.outcome == "joined"
    for session, actor in ((anna, "slack:U-ANNA"), (bot, "cli:anna"), (worker, "worker:1")):
        with pytest.raises(Refused, match=f"{actor} may not ask for {submitted.name}"):
            async with session.db.connection() as conn:
                await submissions.join(conn, [(submitted.number, {"key": "forged"})], actor)
    actor = (await anna.actor()).name
    with pytest.raises(Refused, match=f"{actor} may not ask for {submitted.name}"):
        async with anna.db.connection() as conn:
            await submissions.join(conn, [(submitted.number, {"requester": "carol"})], actor)
    events = await anna.read_model.job_events(submitted.number)
    joined = [event for event in events if event.kind == "request_joined"]
    assert [(join.payload["requester"], join.payload["text"]) for join in joined] == [
        ("anna", "and test it")
    ]
