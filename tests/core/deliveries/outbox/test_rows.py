"""Every transition inserts its deliveries in the same transaction."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind, Unconfirmed
from draftsman.errors import Failure
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.outbox import (
    LOG,
    RECEIPT,
    claim,
    deliveries_of,
    kinds_and_statuses,
    send_all,
)
from draftsman_testing.people import People
from tests.support.cases import cases
from tests.support.statements import CHANGE, refused, rows, run

PATHS = {
    Status.SCHEDULED: ["status"],
    Status.QUEUED: ["status"],
    Status.CLAIMED: ["status"],
    Status.RUNNING: ["status"],
    Status.WAITING_FOR_INPUT: ["status", "question"],
    Status.WAITING_FOR_APPROVAL: ["status", "question"],
    Status.RESUMED: ["status"],
    Status.RETRYING: ["status"],
    Status.COMPLETED: ["status", "result"],
    Status.FAILED: ["status", "result"],
    Status.DEAD_LETTER: ["status", "result"],
    Status.CANCELED: ["status", "result"],
    Status.EXPIRED: ["status", "question", "result"],
}


@cases("status", Status)
async def test_a_job_has_deliveries_for_its_targets_only(
    make: Factory, rt: Runtime, status: Status
) -> None:
    number = await make.job_in(status, **LOG)
    assert [kind for kind, _ in await kinds_and_statuses(rt, number)] == PATHS[status]
    assert await deliveries_of(rt, await make.job_in(status)) == []
    broken = {
        name: violations
        for name, violations in (await rt.read_model.invariants()).items()
        if violations
    }
    assert broken == {}


@pytest.mark.parametrize("status", Status)
async def test_only_the_newest_status_is_pending(
    make: Factory, rt: Runtime, conn: Connection, status: Status
) -> None:
    number = await make.job_in(status, **LOG)
    pending = await rows(
        conn,
        "SELECT d.version, j.version - (j.status = 'claimed')::int FROM draftsman.deliveries d"
        " JOIN draftsman.jobs j ON j.number = d.job WHERE d.kind = 'status'",
    )
    assert len(pending) == 1
    assert pending[0][0] == pending[0][1], number


async def test_a_status_in_flight_is_followed_by_the_next_status(
    make: Factory, rt: Runtime
) -> None:
    number = await make.queued(**LOG)
    (first,) = await claim(rt)
    await make.running(number)
    assert await kinds_and_statuses(rt, number) == [("status", "sending"), ("status", "pending")]
    assert await claim(rt) == [], "it waits behind the first"
    await rt.delivery_sender.record(first, Unconfirmed("cut"))
    assert await kinds_and_statuses(rt, number) == [
        ("status", "unconfirmed"),
        ("status", "pending"),
    ]


async def test_a_rolled_back_change_has_no_delivery(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work = await make.asked(**LOG)
    before = await deliveries_of(rt, work.number)
    async with conn.transaction(force_rollback=True):
        await run(
            conn,
            "UPDATE draftsman.job_questions SET status = 'canceled', resolution = '{}'"
            " WHERE job = %s",
            (work.number,),
        )
        await run(
            conn,
            "UPDATE draftsman.job_states SET status = 'canceled', finished_at = now(),"
            " version = version + 1 WHERE number = %s",
            (work.number,),
        )
        inside = await rows(conn, "SELECT kind::text, status::text FROM draftsman.deliveries")
        assert sorted(inside) == [
            ("question", "superseded"), ("result", "pending"), ("status", "pending"),
        ]  # fmt: skip
    assert await deliveries_of(rt, work.number) == before


async def test_a_manual_statement_has_deliveries_too(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    number = await make.queued(**LOG)
    await run(
        conn,
        "UPDATE draftsman.job_states SET status = 'canceled', finished_at = now(), version = 2"
        " WHERE number = %s",
        (number,),
    )
    assert [kind for kind, _ in await kinds_and_statuses(rt, number)] == ["status", "result"]


async def _closed_by(
    how: str, make: Factory, rt: Runtime, people: People, work: ClaimedJob
) -> None:
    number = work.number
    match how:
        case "answered":
            await make.answer(number, "red")
        case "canceled":
            await rt.job_control.cancel(number, make.owner)
        case "approved":
            await make.decide(number, True, people.carol)
        case "denied":
            await make.decide(number, False, people.carol)
        case "expired":
            assert await rt.expiry.expire(LeaderTerm()) == 1


HOW = ("answered", "canceled", "approved", "denied", "expired")


def _item(how: str) -> QuestionSpec:
    if how == "expired":
        return QUESTION.model_copy(update={"expires_in": 0.000001})
    return GATE if how in ("approved", "denied") else QUESTION


@pytest.mark.parametrize("how", HOW)
async def test_a_question_closed_before_its_post_is_not_posted(
    make: Factory, rt: Runtime, people: People, how: str
) -> None:
    work = await make.asked(_item(how), **LOG)
    await _closed_by(how, make, rt, people, work)
    statuses = await kinds_and_statuses(rt, work.number)
    assert ("question", "superseded") in statuses
    assert "question_closed" not in {kind for kind, _ in statuses}
    assert (await send_all(rt))[0].kind is DeliveryKind.STATUS


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("copy", ["sent", "sending", "unconfirmed"])
async def test_a_question_that_closes_settles_every_copy_once(
    make: Factory, rt: Runtime, people: People, how: str, copy: str
) -> None:
    work = await make.asked(_item(how), notify=("log", "slack:C1"))
    (status,) = await claim(rt)
    await rt.delivery_sender.record(status, RECEIPT)
    (question,) = await claim(rt)
    assert question.kind is DeliveryKind.QUESTION
    if copy == "sent":
        await rt.delivery_sender.record(question, RECEIPT)
    elif copy == "unconfirmed":
        await rt.delivery_sender.record(question, Unconfirmed("cut"))
    await _closed_by(how, make, rt, people, work)
    deliveries = await deliveries_of(rt, work.number)
    settles = [delivery for delivery in deliveries if delivery.kind is DeliveryKind.QUESTION_CLOSED]
    assert [(delivery.original, delivery.channel) for delivery in settles] == [
        (question.seq, "log")
    ]
    (other,) = [
        delivery
        for delivery in deliveries
        if delivery.kind is DeliveryKind.QUESTION and delivery.channel == "slack"
    ]
    assert str(other.status) == "superseded"
    broken = {name: bad for name, bad in (await rt.read_model.invariants()).items() if bad}
    assert broken == {}


async def test_a_target_that_joins_later_gets_the_status_and_the_open_question(
    make: Factory, rt: Runtime
) -> None:
    work = await make.asked(subject_key="card")
    joined = await make.queued(subject_key="card", **LOG)
    assert joined == work.number
    assert await kinds_and_statuses(rt, joined) == [("status", "pending"), ("question", "pending")]
    await make.answer(joined, "red")
    assert ("question", "superseded") in await kinds_and_statuses(rt, joined)
    assert await make.queued(subject_key="card", **LOG) == joined
    assert len(await rt.outbox.targets(joined)) == 1


async def test_the_same_request_again_adds_no_target(make: Factory, rt: Runtime) -> None:
    first = await make.queued(key="k", queue="q")
    assert await make.queued(key="k", queue="q", **LOG) == first
    assert await rt.outbox.targets(first) == []


async def test_a_retry_inherits_the_targets(make: Factory, rt: Runtime) -> None:
    old = await make.failed(notify=("log", "slack:C1/17.5"))
    new = (await rt.job_control.retry(old, make.owner)).number
    targets = await rt.outbox.targets(new)
    assert [(target.channel, target.target, target.thread) for target in targets] == [
        ("log", "log", None), ("slack", "C1", "17.5"),
    ]  # fmt: skip
    assert await kinds_and_statuses(rt, new) == [("status", "pending")] * 2
    plain = await rt.job_control.retry(await make.failed(), make.owner)
    assert await deliveries_of(rt, plain.number) == []


@pytest.mark.parametrize("status", sorted(TERMINAL))
async def test_a_target_gets_only_its_selected_outcomes(
    make: Factory, rt: Runtime, conn: Connection, status: Status
) -> None:
    number = await make.queued(max_attempts=1, **LOG)
    await run(
        conn,
        "INSERT INTO draftsman.job_targets (job, ordinal, channel, target, thread_key, kinds,"
        " outcomes) VALUES (%s, 2, 'webhook', 'ops', 'T', '{result}', '{failed,dead_letter}')",
        (number,),
    )
    await _end(make, rt, number, status)
    hook = [
        delivery for delivery in await deliveries_of(rt, number) if delivery.channel == "webhook"
    ]
    expected = ["result"] if status in (Status.FAILED, Status.DEAD_LETTER) else []
    assert [delivery.kind for delivery in hook] == expected


async def _end(make: Factory, rt: Runtime, number: int, status: Status) -> None:
    if status is Status.CANCELED:
        await rt.job_control.cancel(number, make.owner)
        return
    work = await make.running(number)
    match status:
        case Status.EXPIRED:
            assert await rt.asking.ask(work.lease, _item("expired"))
            assert await rt.expiry.expire(LeaderTerm()) == 1
        case Status.COMPLETED:
            await rt.settlement.outcome(work, Done({}))
        case Status.FAILED:
            await rt.settlement.failure(work, Failure("no", declared="PERMANENT"))
        case _:
            await rt.settlement.failure(work, Failure("gone"))
    assert (await rt.read_model.job(number)).status is status


async def test_a_sent_delivery_is_immutable(conn: Connection, make: Factory, rt: Runtime) -> None:
    await make.queued(**LOG)
    await send_all(rt)
    reset = "status = 'pending', sent_at = NULL, next_attempt_at = now()"
    for change in (reset, "kind = 'result', version = NULL", "thread_key = 'T'", "id = id"):
        async with refused(CHANGE, "a sent delivery is immutable"):
            await run(conn, f"UPDATE draftsman.deliveries SET {change}")
    for statement in ("DELETE FROM draftsman.deliveries", "TRUNCATE draftsman.deliveries CASCADE"):
        async with refused(CHANGE, "deliveries are never deleted"):
            await run(conn, statement)


async def test_a_process_claims_only_the_targets_that_it_serves(rt: Runtime, make: Factory) -> None:
    """A name that ends with a slash is that of all issues of a forge; a similar name is not."""
    for target in ("github/a/b#1", "github2/a/b#1", "gitlab/a/b!2"):
        await make.queued(notify=(f"forge:{target}",))
    forge = "forge"
    assert await claim(rt, forge, served=["github"]) == []
    assert await rt.delivery_sender.next_due(forge, ["github"]) is None
    assert await rt.delivery_sender.next_due(forge, ["gitlab/"]) is not None
    claimed = await claim(rt, forge, served=["github/", "nothing"])
    assert [item.target for item in claimed] == ["github/a/b#1"]
    assert len(await claim(rt, forge)) == 2
