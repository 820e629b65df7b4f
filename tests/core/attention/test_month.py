"""A simulated month of people with hours, holidays, digests, a rotation and pagers.

Fifty questions a day; some are delegated, acknowledged, snoozed, escalated or never answered. It
begins with a Monday, on whatever day the test runs: nobody gets a digest on a day off.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from draftsman.attention.figures import FigureGroup
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.errors import Refused
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.policy import Person
from draftsman.questions.question import OnExpire, QuestionStatus
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from tests.core.attention.conftest import MakeWith, TeamRuntime, person
from tests.core.attention.recording import RecordingChannel, Sent
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
            {
                "notify": ["carol", "dave"],
                "after": 4 * HOUR,
                "when_away": "wait",
                "escalate": True,
            },
        ]
    },
    "urgent": {
        "steps": [
            {"notify": ["@oncall", "pager:ops"]},
            {"notify": ["ben", "dave"], "after": HOUR},
        ]
    },
}
CHOICE: Final = {"input": "default", "approval": "default", "critical": "urgent"}
PLAIN: Final = {"approval": "default", "critical": "urgent"}
"""Ladders of a worker whose questions have reminders and digests."""
DIGESTS: Final = {"anna": "9:00,15:00", "dave": "06:30"}
NEVER: Final = 1e9
PINGS: Final = frozenset({DeliveryKind.QUESTION, DeliveryKind.REMINDER})
ABOUT_QUESTIONS: Final = PINGS | {DeliveryKind.NOTICE, DeliveryKind.DIGEST}
APPROVALS: Final = (
    "SELECT 'D-' || job || '/' || ordinal FROM draftsman.job_questions WHERE kind = 'approval'"
)
REFUSED: Final = re.compile(r"works on it|may not|already|expired|canceled")


@dataclass
class Month:
    """The team, its open questions and its delegations."""

    rt: Runtime
    plain: Runtime
    """Services whose questions of the kind input have no ladder."""
    make: Factory
    make_plain: Factory
    clock: Clock
    start: datetime
    begin: datetime
    dice: random.Random
    slack: RecordingChannel
    pager: RecordingChannel
    asked: dict[str, datetime] = field(default_factory=dict)
    open_jobs: list[tuple[int, bool, float]] = field(default_factory=list)
    delegated: list[tuple[str, datetime]] = field(default_factory=list)

    async def run(self, days: int) -> None:
        """Live through the days, hour by hour."""
        for hour in range(24 * days):
            for _ in range(PER_DAY // 24 + (hour % 24 < PER_DAY % 24)):
                await self.ask(hour)
            await self.sweep()
            for job, approval, due in [item for item in self.open_jobs if item[2] <= hour]:
                await self.end(job, approval=approval)
                self.open_jobs.remove((job, approval, due))
            await self.disturb()
            await self.clock.forward(HOUR)
        await self.sweep()

    async def ask(self, hour: int) -> None:
        """Ask a question in a new job."""
        dice = self.dice
        critical = dice.random() < 0.1
        approval = dice.random() < 0.3
        asker = dice.choice(ROTATION)
        changes: dict[str, Any] = {"critical": critical, "expires_in": 4 * 24 * HOUR}
        if approval:
            changes |= {"approvers": ("anna", "ben")}
        fields: dict[str, Any] = {}
        make = self.make
        if not critical and not approval and dice.random() < 0.5:
            make = self.make_plain
            fields = {"notify": [f"slack:U0{asker.upper()}"]}
            changes |= {"on_expire": OnExpire.ESCALATE, "escalate_to": "leads"}
        spec = (GATE if approval else QUESTION).model_copy(update=changes)
        work = await make.asked(spec, actor=person(self.rt, asker), **fields)
        self.asked[f"{work.name}/1"] = await self.rt.checkpoints.now()
        waits = NEVER if dice.random() < 0.1 else dice.expovariate(1 / 6)
        self.open_jobs.append((work.number, approval, hour + waits))

    async def sweep(self) -> None:
        """Run the sweeps of the leader, and send all messages."""
        sweeps = self.rt.sweeps
        for _ in range(4):  # a step without a recipient is followed at once by the next
            await sweeps.run("ladders", LeaderTerm())
        for name in ("expire", "remind", "digests"):
            await sweeps.run(name, LeaderTerm())
        for channel in (self.slack, self.pager):
            channel.now = await self.rt.checkpoints.now()
            while items := await self.rt.delivery_sender.claim(channel.name, free=500, share=500):
                for item in items:
                    sent = await self.rt.delivery_sender.send(item, channel)
                    await self.rt.delivery_sender.record(item, sent)

    async def end(self, job: int, *, approval: bool) -> None:
        """Answer a question, or cancel the job of an approval."""
        if (await self.rt.questions.get(job, 1)).status is not QuestionStatus.OPEN:
            return  # expired meanwhile
        if approval:
            await self.rt.job_control.cancel(job, self.make.owner)
        else:
            await self.make.answer(job, "red", person(self.rt, self.dice.choice(ROTATION)))

    async def disturb(self) -> None:
        """Delegate, acknowledge or snooze a few open questions."""
        dice = self.dice
        for job, approval, _ in dice.sample(self.open_jobs, min(3, len(self.open_jobs))):
            me, other = dice.sample(ROTATION, 2)
            attention = self.rt.acknowledgments
            what = dice.choice("das")
            try:
                if what == "d" and not approval:
                    await attention.delegate(job, 1, person(self.rt, me), other, 3 * HOUR)
                    now = await self.rt.checkpoints.now()
                    self.delegated.append((f"D-{job}/1", now))
                elif what == "a":
                    await attention.acknowledge(job, 1, person(self.rt, me), HOUR)
                else:
                    await attention.snooze(job, 1, person(self.rt, me), 2 * HOUR)
            except Refused as error:  # another works on it, may not answer it, or it has ended
                if not REFUSED.search(str(error)):
                    raise


async def _simulate(
    team: TeamRuntime, make_with: MakeWith, clock: Clock, days: int, seed: int
) -> None:
    now = datetime.now(BERLIN)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    monday = midnight + timedelta(days=7 - now.weekday())
    await clock.forward((monday - now).total_seconds())
    today = monday.date()
    start = monday.replace(tzinfo=None) - timedelta(days=3)
    holidays = [today + timedelta(days=day) for day in (1, 9, 10, 24)]
    common: dict[str, Any] = PEOPLE | {
        "ladders": LADDERS,
        "oncall": {"default": {"people": ROTATION, "start": start, "timezone": "Europe/Berlin"}},
        "holidays": {"local": {"dates": holidays}},
        "pagers": {"ops": {"format": "pagerduty", "secret": {"env": "KEY"}}},
        "sweeps": {"limit": 1000},
    }
    plain = await team(**common, questions={"ladders": PLAIN})
    rt = await team(**common, questions={"ladders": CHOICE})
    for name, hours in DIGESTS.items():
        await rt.digests.choose(hours, person(rt, name))
    month = Month(
        rt,
        plain,
        make_with(rt),
        make_with(plain),
        clock,
        start,
        await rt.checkpoints.now(),
        random.Random(seed),
        RecordingChannel(datetime.now(UTC)),
        RecordingChannel(datetime.now(UTC), "pager"),
    )
    await month.run(days)
    await _check_messages(month)
    await _check_ladders(month)
    await _check_digests(month)
    await _check_pages(month)
    await _check_figures(month)


async def _rows(rt: Runtime, query: str) -> list[tuple[Any, ...]]:
    async with rt.db.connection() as conn:
        return await (await conn.execute(query)).fetchall()


async def _check_messages(month: Month) -> None:
    """No message is sent twice, and none reaches a person outside of their hours."""
    users = _users(month.rt)
    sent = month.slack.messages
    assert len(sent) > len(month.asked) / 2, "people were notified"
    for channel in (month.slack, month.pager):
        assert set(channel.markers.values()) == {1}, "no delivery was sent twice"
    disturbed = [
        item
        for item in sent
        if item.kind in ABOUT_QUESTIONS
        and not item.critical
        and users[item.target].free_at(item.at) != item.at
    ]
    assert disturbed == []
    approvals = await _rows(month.rt, APPROVALS)
    first: dict[str, Sent] = {}
    for item in sorted([*sent, *month.pager.messages], key=lambda item: item.at):
        if item.kind is DeliveryKind.QUESTION and item.critical:
            first.setdefault(item.question, item)
    for name, item in first.items():
        assert item.at - month.asked[name] < timedelta(seconds=60), f"{name} interrupts at once"
    for name in first.keys() - {name for (name,) in approvals}:
        at, user = min((m.at, m.target) for m in month.slack.questions if m.question == name)
        turns = (at.astimezone(BERLIN).replace(tzinfo=None) - month.start) // timedelta(days=7)
        on_duty = ROTATION[turns % 4]
        assert users[user].name == on_duty, f"{name} reached the person on duty"


async def _check_ladders(month: Month) -> None:
    """Each step has its own message, waits for a delegation, and notifies who may answer."""
    rows = await _rows(
        month.rt,
        "SELECT 'D-' || n.job || '/' || n.question, n.step, n.recipient, n.delivery, n.notified_at,"
        " q.kind = 'approval', q.approvers, r.invoker_id"
        " FROM draftsman.question_notifications n"
        " JOIN draftsman.job_questions q ON q.job = n.job AND q.ordinal = n.question"
        " JOIN draftsman.job_requests r ON r.number = n.job"
        " WHERE n.outcome = 'sent'",
    )
    deliveries = [delivery for *_, delivery, _, _, _, _ in rows]
    assert len(set(deliveries)) == len(rows), "each step has its own message"
    delegations: dict[str, list[datetime]] = {}
    for name, at in month.delegated:
        delegations.setdefault(name, []).append(at)
    for name, step, recipient, _, at, is_approval, approvers, invoker in rows:
        if is_approval and not recipient.startswith("pager:"):
            assert recipient in approvers, f"{recipient} may approve {name}"
            assert recipient != invoker, f"{recipient} requested {name}"
        for begin in delegations.get(name, []):
            waits = step > 0 and begin < at < begin + timedelta(seconds=3 * HOUR)
            assert not waits, f"{name} notified {recipient} in a delegation"
    assert month.delegated, "questions were delegated"
    escalated = await _rows(
        month.rt,
        "SELECT count(*) FROM draftsman.question_notifications"
        " WHERE step = 4 AND recipient IN ('carol', 'dave') AND outcome = 'sent'",
    )
    assert escalated[0][0] > 0, "the last step was reached"


async def _check_digests(month: Month) -> None:
    """A question is in a single digest of a person, and no message of it was sent before."""
    digests = [item for item in month.slack.messages if item.kind is DeliveryKind.DIGEST]
    users = _users(month.rt)
    assert {users[item.target].name for item in digests} <= set(DIGESTS)
    assert digests, "people got digests"
    listed = Counter(
        (item.target, name) for item in digests for name in re.findall(r"D-\d+/1", item.text)
    )
    assert set(listed.values()) == {1}, "no question is in two digests"
    own = {(item.target, item.question) for item in month.slack.messages if item.kind in PINGS}
    delegated = {name for name, _ in month.delegated}
    both = {(user, name) for user, name in own & set(listed) if name not in delegated}
    assert both == set(), "pinged and digested"


async def _check_pages(month: Month) -> None:
    """A critical question is one alert, which is resolved once when it closes; no other is."""
    by_question: dict[str, list[DeliveryKind]] = {}
    for item in month.pager.messages:
        assert item.critical, f"{item.question} is not critical"
        by_question.setdefault(item.question, []).append(item.kind)
    rows = await _rows(
        month.rt,
        "SELECT 'D-' || q.job || '/' || q.ordinal, q.status = 'open'"
        " FROM draftsman.job_questions q"
        " JOIN draftsman.question_times t ON t.job = q.job AND t.question = q.ordinal"
        " WHERE t.critical",
    )
    assert {name for name, _ in rows} == set(by_question)
    for name, is_open in rows:
        kinds = by_question[name]
        assert kinds[0] is DeliveryKind.QUESTION, name
        assert kinds.count(DeliveryKind.QUESTION) == 1, name
        resolved = kinds.count(DeliveryKind.QUESTION_CLOSED)
        assert resolved == (not is_open), name
        assert is_open or kinds[-1] is DeliveryKind.QUESTION_CLOSED, name


async def _check_figures(month: Month) -> None:
    rt = month.rt
    users = _users(month.rt)
    figures = await rt.figures.read(
        (await rt.checkpoints.now() - month.begin).total_seconds() + HOUR
    )
    total = next(row for row in figures if row.by is FigureGroup.ALL)
    assert (total.questions, total.quiet_pings) == (len(month.asked), 0)
    pinged = [item for item in month.slack.messages if item.kind in PINGS]
    assert total.pings == len(pinged) + len(month.pager.questions)
    pings = Counter(users[item.target].name for item in pinged)
    people = {row.value: row.pings for row in figures if row.by is FigureGroup.PERSON}
    assert {name: count for name, count in people.items() if count} == dict(pings)


def _users(rt: Runtime) -> dict[str, Person]:
    """Return the people by their account in Slack."""
    people = rt.policy.people.values()
    return {item.ids["slack"].partition("@")[0]: item for item in people if "slack" in item.ids}


@pytest.mark.parametrize("seed", [21])
async def test_a_day_of_questions(
    team: TeamRuntime, make_with: MakeWith, clock: Clock, seed: int
) -> None:
    await _simulate(team, make_with, clock, 1, seed)


@pytest.mark.slow(fast="test_a_day_of_questions")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [8, 1972, 20261127])
async def test_a_month_of_questions(
    team: TeamRuntime, make_with: MakeWith, clock: Clock, seed: int
) -> None:
    await _simulate(team, make_with, clock, 30, seed)
