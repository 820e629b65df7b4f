"""A simulated month: people with hours, holidays and a rotation, and fifty questions a day."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from draftsman.domain.attention.figures import FigureGroup
from draftsman.domain.deliveries.delivery import (
    ChannelName,
    DeliveryKind,
    File,
    Message,
    RateLimit,
    Receipt,
    SendResult,
)
from draftsman.domain.run import LeaderTerm
from draftsman.errors import Failure
from draftsman.runtime import Runtime
from tests.core.attention.conftest import MakeWith, TeamRuntime, person
from tests.factories import GATE, QUESTION
from tests.support.clock import Clock

HOUR: Final = 3600.0
PER_DAY: Final = 50
BERLIN: Final = ZoneInfo("Europe/Berlin")
ROTATION: Final = ("anna", "ben", "carol", "dave")
OFFICE: Final = {"roles": ["invoker", "responder", "approver"], "timezone": "Europe/Berlin"}
PEOPLE: Final[dict[str, dict[str, Any]]] = {
    "anna": OFFICE | {"working_hours": "Mon-Fri 09:00-17:00", "holidays": "local"},
    "ben": OFFICE | {"working_hours": "Mon-Sun 12:00-20:00", "quiet_hours": "14:00-15:00"},
    "carol": OFFICE | {"timezone": "America/New_York", "working_hours": "Mon-Fri 09:00-17:00"},
    "dave": OFFICE | {"quiet_hours": "20:00-08:00"},
}
LADDERS: Final[dict[str, Any]] = {
    "default": {
        "steps": [
            {"notify": ["@asker"]},
            {"notify": ["ben"], "after": 2 * HOUR},
            {"notify": ["@oncall"], "after": 2 * HOUR},
            {"notify": ["carol", "dave"], "after": 4 * HOUR, "when_away": "wait"},
        ]
    },
    "urgent": {"steps": [{"notify": ["@oncall"]}, {"notify": ["ben", "dave"], "after": HOUR}]},
}
CHOICE: Final = {"input": "default", "approval": "default", "critical": "urgent"}


@dataclass
class RecordingChannel:
    """A Slack that records the messages about questions; `now` is the time of the simulation."""

    now: datetime
    name: ChannelName = ChannelName.SLACK
    sent: list[tuple[datetime, str, str, bool]] = field(default_factory=list)
    """Time, user, question, and whether it is critical."""
    markers: Counter[str] = field(default_factory=Counter)

    def limits(self, message: Message) -> Sequence[RateLimit]:
        return ()

    def bucket(self, message: Message, failure: Failure) -> str:
        return "slack"

    async def send(self, message: Message) -> SendResult:
        self.markers[message.marker] += 1
        if message.kind is DeliveryKind.QUESTION and message.question is not None:
            item = message.question
            self.sent.append((self.now, message.target, item.name, item.critical))
        return Receipt(message.marker)

    async def find(self, message: Message) -> SendResult | None:
        return None

    async def edit(self, message: Message) -> SendResult:
        return Receipt(message.edits or "")

    async def upload(self, message: Message, file: File) -> SendResult:
        return Receipt(message.marker)

    async def close(self) -> None:
        return None


async def _deliver(rt: Runtime, channel: RecordingChannel) -> None:
    channel.now = await rt.checkpoints.now()
    for _ in range(10):
        items = await rt.delivery_sender.claim(ChannelName.SLACK, free=500, share=500)
        if not items:
            return
        for item in items:
            await rt.delivery_sender.record(item, await rt.delivery_sender.send(item, channel))


async def _simulate(team: TeamRuntime, make_with: MakeWith, clock: Clock, days: int) -> None:
    dice = random.Random(8)
    today = datetime.now(BERLIN).date()
    start = datetime.now(BERLIN).replace(tzinfo=None, microsecond=0) - timedelta(days=3)
    holidays = [today + timedelta(days=day) for day in (1, 9, 10, 24)]
    rt = await team(
        **PEOPLE,
        ladders=LADDERS,
        questions={"ladders": CHOICE},
        oncall={"default": {"people": ROTATION, "start": start, "timezone": "Europe/Berlin"}},
        holidays={"local": {"dates": holidays}},
        sweeps={"limit": 1000},
    )
    make, channel = make_with(rt), RecordingChannel(datetime.now(UTC))
    asked: dict[str, datetime] = {}
    open_jobs: list[tuple[int, bool, float]] = []
    begin = await rt.checkpoints.now()
    for hour in range(24 * days):
        for _ in range(PER_DAY // 24 + (hour % 24 < PER_DAY % 24)):
            critical, approval = dice.random() < 0.1, dice.random() < 0.3
            spec = (GATE if approval else QUESTION).model_copy(
                update={"critical": critical, "expires_in": 4 * 24 * HOUR}
                | ({"approvers": ROTATION} if approval else {})
            )
            asker = person(rt, dice.choice(ROTATION))
            work = await make.asked(spec, actor=asker)
            asked[f"{work.name}/1"] = await rt.checkpoints.now()
            open_jobs.append((work.number, approval, hour + dice.expovariate(1 / 6)))
        for _ in range(3):  # a step without a recipient is followed at once by the next
            await rt.sweeps.names["ladders"](LeaderTerm())
        await _deliver(rt, channel)
        for job, approval, due in [item for item in open_jobs if item[2] <= hour]:
            responder = person(rt, dice.choice(ROTATION))
            if dice.random() < 0.1:
                await rt.acknowledgments.snooze(job, 1, make.owner, 2 * HOUR)
            if approval:
                await rt.job_control.cancel(job, make.owner)
            else:
                await make.answer(job, "red", responder)
            open_jobs.remove((job, approval, due))
        await clock.forward(HOUR)
    await _check(rt, channel, asked, begin, start)


async def _check(
    rt: Runtime,
    channel: RecordingChannel,
    asked: dict[str, datetime],
    begin: datetime,
    start: datetime,
) -> None:
    users = {person.ids[channel_of].partition("@")[0]: person for person, channel_of in _people(rt)}
    assert len(channel.sent) > len(asked) / 2, "people were notified"
    assert set(channel.markers.values()) == {1}, "no delivery was sent twice"
    disturbed = [
        (at, user, name)
        for at, user, name, critical in channel.sent
        if not critical and users[user].free_at(at) != at
    ]
    assert disturbed == []
    async with rt.db.connection() as conn:
        rows = await (
            await conn.execute(
                "SELECT job, step, recipient, delivery, notified_at"
                " FROM draftsman.question_notifications WHERE outcome = 'sent'"
            )
        ).fetchall()
    assert len({row[3] for row in rows}) == len(rows), "each step has its own message"
    critical = {name for _, _, name, is_critical in channel.sent if is_critical}
    for name in critical:
        at, user = min((at, user) for at, user, of, _ in channel.sent if of == name)
        turns = (at.astimezone(BERLIN).replace(tzinfo=None) - start) // timedelta(days=7)
        assert users[user].name == ROTATION[turns % 4], f"{name} reached the person on duty"
        assert at - asked[name] < timedelta(seconds=60)
    figures = await rt.figures.read((await rt.checkpoints.now() - begin).total_seconds() + HOUR)
    total = next(row for row in figures if row.by is FigureGroup.ALL)
    assert (total.questions, total.quiet_pings) == (len(asked), 0)
    assert total.pings == len(channel.sent)
    pings = Counter(users[user].name for _, user, _, _ in channel.sent)
    people = {row.value: row.pings for row in figures if row.by is FigureGroup.PERSON}
    assert {name: count for name, count in people.items() if count} == dict(pings)


def _people(rt: Runtime) -> list[tuple[Any, Any]]:
    from draftsman.domain.job import Source

    return [
        (person, Source.SLACK) for person in rt.policy.people.values() if Source.SLACK in person.ids
    ]


async def test_two_days_of_questions(team: TeamRuntime, make_with: MakeWith, clock: Clock) -> None:
    await _simulate(team, make_with, clock, 2)


@pytest.mark.slow(fast="test_two_days_of_questions")
@pytest.mark.timeout(1800)
async def test_a_month_of_questions(team: TeamRuntime, make_with: MakeWith, clock: Clock) -> None:
    await _simulate(team, make_with, clock, 30)
