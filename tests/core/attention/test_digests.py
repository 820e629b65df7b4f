"""Digests: one message at chosen hours, for questions that then notify nobody else's time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from draftsman.attention import store as attention
from draftsman.attention.service.digests import Digests
from draftsman.database.database import Connection
from draftsman.deliveries.service.message_reader import read_message
from draftsman.errors import NotPermitted, Refused, UsageError
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_bots.trello.records.board import BoardConfig, LabelSighting
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.outbox import deliveries_of
from draftsman_testing.people import People
from tests.core.rights.conftest import As, as_role, known, roles
from tests.support.clock import Clock
from tests.support.permissions import SHOP
from tests.support.statements import CHANGE, CHECK, refused, rows, run

__all__ = ["as_role", "known", "roles"]
DAY = 86_400.0
LONG = QUESTION.model_copy(update={"expires_in": 3 * DAY})
DIGESTS = "d" * 24
DIRECT = ["slack:U0BEN", "slack:C1"]


@pytest.fixture(autouse=True)
async def _account(known: Runtime, conn: Connection) -> None:
    """Give ben an account that can be a target."""
    change = "UPDATE draftsman.person_identities SET external_id = 'U0BEN'"
    await run(conn, f"{change} WHERE person = 'ben' AND channel = 'slack'")


async def _chosen(rt: Runtime, people: People, hours: int = 2) -> datetime:
    """Set a digest of ben `hours` hours from now; return its time."""
    now = datetime.now(UTC) + timedelta(hours=hours)
    text = f"{now:%H:00}"
    found = await rt.digests.choose(text, people.ben, timezone="UTC")
    assert found is not None
    assert found.next_at is not None
    return found.next_at


async def _board(rt: Runtime, people: People, conn: Connection) -> str:
    """Watch a board with a card for digests, and link an account of ben; return another card."""
    board = "b" * 24
    card = "c" * 24
    now = datetime.now(UTC)
    config = BoardConfig(board_id=board, name="Work", digest_card_id=DIGESTS)
    await boards_of(rt).save(config, people.olga)
    await boards_of(rt).baseline(board, [LabelSighting(card, "e" * 24)], now, now)
    await run(
        conn,
        "INSERT INTO draftsman.person_identities (person, channel, external_id)"
        " VALUES ('ben', 'trello', 'T-BEN')",
    )
    return card


async def _sent(rt: Runtime, job: int) -> list[tuple[str, str, str]]:
    return [(str(d.kind), d.target, str(d.status)) for d in await deliveries_of(rt, job)]


async def _digests(conn: Connection) -> list[tuple[str, dict[str, Any]]]:
    return await rows(
        conn,
        "SELECT target, payload FROM draftsman.deliveries WHERE kind = 'digest' ORDER BY seq",
    )


def _names(payload: dict[str, Any]) -> list[str]:
    return [question["name"] for question in payload["questions"]]


async def test_questions_wait_for_the_digest_and_are_in_it_once(
    known: Runtime, make: Factory, people: People, clock: Clock, conn: Connection
) -> None:
    at = await _chosen(known, people)
    jobs = [await make.asked(LONG, notify=DIRECT, title=f"Job {n}") for n in range(3)]
    for work in jobs:
        sent = await _sent(known, work.number)
        assert ("question", "U0BEN", "superseded") in sent, "no message of its own"
        assert ("question", "C1", "pending") in sent, "others read the channel"
    assert await known.digests.sweep(LeaderTerm()) == 0
    await make.answer(jobs[1].number, "red", people.ben)
    await clock.forward((at - datetime.now(UTC)).total_seconds() + 1)
    assert await known.digests.sweep(LeaderTerm()) == 2
    assert await known.digests.sweep(LeaderTerm()) == 0
    ((target, payload),) = await _digests(conn)
    assert (target, payload["person"], payload["count"]) == ("U0BEN", "ben", 2)
    assert _names(payload) == [f"{jobs[0].name}/1", f"{jobs[2].name}/1"]
    await clock.forward(2 * DAY)
    assert await known.digests.sweep(LeaderTerm()) == 0, "a question is in one digest"
    await known.sweeps.run("remind", LeaderTerm())
    reminded = [d for d in await _sent(known, jobs[0].number) if d[0] == "reminder"]
    assert [target for _, target, _ in reminded] == ["C1"], "never pinged and digested"


async def test_an_empty_digest_is_not_sent(
    known: Runtime, make: Factory, people: People, clock: Clock, conn: Connection
) -> None:
    await _chosen(known, people)
    work = await make.asked(LONG, notify=DIRECT)
    await make.answer(work.number, "red", people.ben)
    await clock.forward(DAY)
    assert await known.digests.sweep(LeaderTerm()) == 0
    assert await _digests(conn) == []


@pytest.mark.parametrize(
    "item",
    [
        QUESTION.model_copy(update={"expires_in": 60.0}),
        GATE,
        QuestionSpec(key="agent:budget", text="More?", choices=("1", "2")),
    ],
)
async def test_urgent_questions_notify_at_once(
    known: Runtime, make: Factory, people: People, conn: Connection, item: QuestionSpec
) -> None:
    await _chosen(known, people)
    work = await make.asked(item, notify=DIRECT)
    assert ("question", "U0BEN", "pending") in await _sent(known, work.number)
    assert await rows(conn, "SELECT job FROM draftsman.digest_questions") == []


async def test_a_person_chooses_the_hours_and_a_zone(
    known: Runtime, people: People, owner: Actor
) -> None:
    chosen = await known.digests.choose("15:00, 09:00", people.ben, timezone="Europe/Berlin")
    assert chosen is not None
    assert (chosen.text, chosen.timezone) == ("09:00, 15:00", "Europe/Berlin")
    with pytest.raises(NotPermitted, match="may not change the digest of others"):
        await known.digests.choose("09:00", people.anna, person="ben")
    with pytest.raises(UsageError, match="give up to 24 times of"):
        await known.digests.choose("9", people.ben)
    with pytest.raises(UsageError, match="unknown time zone 'Mars'"):
        await known.digests.choose("09:00", people.ben, timezone="Mars")
    with pytest.raises(UsageError, match="unknown person 'zoe'"):
        await known.digests.choose("09:00", people.olga, person="zoe")
    assert await known.digests.choose("off", people.olga, person="ben") is None


async def test_the_next_digest_follows_the_clocks_of_its_zone(
    known: Runtime, conn: Connection, people: People
) -> None:
    await known.digests.choose("02:30", people.ben, timezone="Europe/Berlin")
    at = "SELECT draftsman.next_digest('ben') > draftsman.now()"
    assert await rows(conn, at) == [(True,)]
    one = "SELECT draftsman.next_digest('ben') <= draftsman.now() + interval '25 hours'"
    assert await rows(conn, one) == [(True,)]
    assert await rows(conn, "SELECT draftsman.next_digest('zoe')") == [(None,)]


async def test_a_person_without_slack_reads_the_digest_in_the_log(
    known: Runtime, make: Factory, people: People, clock: Clock, conn: Connection
) -> None:
    now = datetime.now(UTC) + timedelta(hours=2)
    await known.digests.choose(f"{now:%H:00}", people.erin, timezone="UTC")
    await make.asked(LONG, notify=["slack:C1"], actor=people.erin)
    await clock.forward(DAY)
    assert await known.digests.sweep(LeaderTerm()) == 1
    ((target, _),) = await _digests(conn)
    assert target == "log"


async def test_a_board_with_a_digest_card_has_the_digest_there_and_only_there(
    known: Runtime, make: Factory, people: People, clock: Clock, conn: Connection
) -> None:
    card = await _board(known, people, conn)
    digests = DIGESTS
    at = await _chosen(known, people)
    asked = [await make.asked(LONG, notify=[f"trello:{card}"]) for _ in range(2)]
    elsewhere = await make.asked(LONG, notify=["slack:C1"])
    await clock.forward((at - datetime.now(UTC)).total_seconds() + 1)
    assert await known.digests.sweep(LeaderTerm()) == 3
    assert await known.digests.sweep(LeaderTerm()) == 0
    found = dict(await _digests(conn))
    assert set(found) == {digests, "U0BEN"}
    assert _names(found[digests]) == [f"{job.name}/1" for job in asked]
    assert _names(found["U0BEN"]) == [f"{elsewhere.name}/1"]
    assert {payload["person"] for payload in found.values()} == {"ben"}


async def test_identical_questions_are_in_the_digest_of_the_first_job_only(
    known: Runtime, make: Factory, people: People, clock: Clock, conn: Connection
) -> None:
    card = await _board(known, people, conn)
    await _chosen(known, people)
    chats = [["slack:C1"], [f"trello:{card}"], ["slack:C2"]]
    jobs = [await make.asked(LONG, repo=SHOP, notify=chat) for chat in chats]
    later = await make.asked(LONG, notify=[f"trello:{card}"])
    await clock.forward(DAY)
    assert await known.digests.sweep(LeaderTerm()) == 2
    found = dict(await _digests(conn))
    (question,) = found["U0BEN"]["questions"]
    assert (question["name"], question["jobs"]) == (f"{jobs[0].name}/1", 3)
    assert _names(found[DIGESTS]) == [f"{later.name}/1"]


@pytest.mark.parametrize("limit", [1, 2])
async def test_identical_questions_of_a_digest_in_parts_are_in_it_once(
    known: Runtime, make: Factory, people: People, clock: Clock, conn: Connection, limit: int
) -> None:
    await _chosen(known, people)
    jobs = [await make.asked(LONG, repo=SHOP, notify=["slack:C1"]) for _ in range(3)]
    await clock.forward(DAY)
    digests = Digests(db=known.db, policy=known.policy, timezone="UTC", limit=limit)
    assert [await digests.sweep(LeaderTerm()) for _ in jobs].count(1) == 1
    ((_, payload),) = await _digests(conn)
    (question,) = payload["questions"]
    assert (question["name"], question["jobs"]) == (f"{jobs[0].name}/1", 3)


async def test_only_the_database_decides_what_was_sent(
    known: Runtime, make: Factory, people: People, conn: Connection, as_role: As
) -> None:
    await _chosen(known, people)
    await make.asked(LONG, notify=DIRECT)
    await run(conn, "UPDATE draftsman.digest_questions SET sent_at = draftsman.now()")
    for change in ("sent_at = NULL", "sent_at = draftsman.now()", "person = 'anna'"):
        async with refused(CHANGE, "at most one digest"):
            await run(conn, f"UPDATE draftsman.digest_questions SET {change}")
    async with refused(CHANGE, "at most one digest"):
        await run(conn, "DELETE FROM draftsman.digest_questions")
    async with refused(CHECK, "digest_hours_hours_check"):
        await run(conn, "UPDATE draftsman.digest_hours SET hours = '{}'")
    ben = await as_role("ben")
    anna = await as_role("anna")
    assert await ben.digests.choose("10:00", await ben.actor()) is not None
    forged = await anna.actor()
    with pytest.raises(Refused, match="may not change the digest of ben"):
        await anna.db.run_transaction(
            lambda c: attention.choose_digest_hour(c, "ben", [], None, "UTC", forged)
        )


async def test_a_person_with_a_digest_is_not_mentioned_in_the_channel(
    known: Runtime, make: Factory, people: People
) -> None:
    await _chosen(known, people)
    work = await make.asked(LONG, notify=DIRECT)
    (item,) = await known.delivery_sender.claim("slack", free=1, share=1, busy=["U0BEN"])
    assert item.kind == "status"
    other = await make.asked(GATE, notify=DIRECT)
    mentioned = {}
    for number in (work.number, other.number):
        for delivery in await deliveries_of(known, number):
            if delivery.kind == "question" and delivery.target == "C1":
                claimed = replace(
                    item, seq=delivery.seq, job=number, question=1, kind=delivery.kind
                )
                message = (await read_message(known.db, known.policy, claimed)).message
                names = {person.name for person in message.recipients}
                mentioned[number] = names - message.unmentioned
    assert mentioned == {work.number: set(), other.number: {"carol", "dave"}}
