"""Messages about a repository do not reach people who may not see it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from draftsman.attention.ladder import DueStep, NotificationOutcome, plan_step
from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind, Obsolete
from draftsman.deliveries.service.message_reader import read_message
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.configuration import configured_directory
from draftsman.people.visibility import may_see
from draftsman.questions.question import QuestionKind
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.outbox import deliveries_of
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.support.statements import rows, run
from tests.support.visibility import SECRET, hide

DAY = 86_400
LONG = QUESTION.model_copy(update={"expires_in": 9 * DAY})


@pytest.fixture(autouse=True)
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the repository `secret` from carol."""
    hide(monkeypatch, "carol")


async def test_a_question_asks_only_people_who_may_see_its_repository(
    rt: Runtime, make: Factory
) -> None:
    work = await make.asked(GATE, notify=["log"], repo=SECRET)
    (item,) = await rt.delivery_sender.claim("log", free=1, share=1, busy=[])
    (asked,) = [i for i in await deliveries_of(rt, work.number) if i.kind == "question"]
    claimed = replace(item, seq=asked.seq, job=work.number, question=1, kind=asked.kind)
    read = await read_message(rt.db, rt.policy, claimed)
    assert {person.name for person in read.message.recipients} == {"dave"}


@pytest.mark.parametrize("repo", ["pay", SECRET])
async def test_a_message_to_a_person_alone_is_not_sent(
    rt: Runtime, make: Factory, conn: Connection, repo: str
) -> None:
    number = await make.completed(repo=repo, notify=["slack:C1"])
    await run(conn, "UPDATE draftsman.deliveries SET target = 'U-CAROL'")
    sent = await deliveries_of(rt, number)
    assert {item.kind for item in sent} >= {DeliveryKind.RESULT}
    channel: Any = None
    claimed = await rt.delivery_sender.claim("slack", free=9, share=9)
    for item in claimed:
        instead = (await read_message(rt.db, rt.policy, item)).instead
        assert isinstance(instead, Obsolete) is (repo == SECRET), item.kind
        if repo == SECRET:
            assert isinstance(await rt.delivery_sender.send(item, channel), Obsolete)
    assert claimed


async def test_a_digest_leaves_out_what_its_reader_may_not_see(
    rt: Runtime,
    make: Factory,
    people: People,
    clock: Clock,
    conn: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hide(monkeypatch, "erin")
    await rt.people.save(configured_directory(rt.settings))
    at = datetime.now(UTC) + timedelta(hours=2)
    await rt.digests.choose(f"{at:%H:00}", people.erin, timezone="UTC")
    asks = {"notify": ["slack:C1"], "actor": people.erin}
    await make.asked(LONG, repo=SECRET, **asks)
    shown = await make.asked(LONG, repo="pay", **asks)
    await clock.forward(DAY)
    assert await rt.digests.sweep(LeaderTerm()) == 1
    assert await rt.digests.sweep(LeaderTerm()) == 0
    ((payload,),) = await rows(
        conn, "SELECT payload FROM draftsman.deliveries WHERE kind = 'digest'"
    )
    assert [question["name"] for question in payload["questions"]] == [f"{shown.name}/1"]


@pytest.mark.parametrize("repo", ["pay", "git.example/acme/secret"])
def test_a_step_of_a_ladder_notifies_nobody_who_may_not_see_the_job(rt: Runtime, repo: str) -> None:
    now = datetime(2030, 1, 7, 12, tzinfo=UTC)
    step = {"notify": ["leads"], "after": 0, "when_away": "next", "escalate": False}
    due = DueStep(
        job=1, question=1, step=1, due_at=now, now=now, steps=[step], owners=[],
        kind=QuestionKind.APPROVAL, key="gate", text="Deploy?", critical=False,
        approvers=["leads"], invoker="anna", repo=repo, asked_at=now, expires_at=None, chat=False,
    )  # fmt: skip
    outcomes = {item.recipient: item.outcome for item in plan_step(due, rt.policy, {}).notices}
    expected = NotificationOutcome.SENT if repo == "pay" else NotificationOutcome.NOT_ALLOWED
    assert outcomes == {"carol": expected, "dave": NotificationOutcome.SENT}


def test_a_reminder_counts_only_people_who_may_see_the_job(rt: Runtime) -> None:
    for repo, names in (("pay", {"carol", "dave"}), (SECRET, {"dave"})):
        people = rt.policy.eligible_people(["leads"], "anna", approval=True, repo=repo)
        assert {person.name for person in people} == names


def test_a_repository_is_named_with_or_without_its_host(rt: Runtime) -> None:
    carol = rt.policy.people["carol"]
    for repo in (None, "", "pay", "Pay", "acme/pay", "git.example/acme/pay"):
        assert may_see(carol, repo), repo
    for repo in (SECRET, "acme/repay", "pay/other"):
        assert not may_see(carol, repo), repo
