"""Ladders: each step once, to people who may answer and may be interrupted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from draftsman.deliveries.delivery import (
    Deferred,
    DeliveryKind,
    DeliveryOutcome,
    Message,
    RateLimit,
    Receipt,
    SendResult,
)
from draftsman.errors import NotPermitted, UsageError
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse as parse_url
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION
from draftsman_testing.outbox import claim, deliveries_of
from tests.core.attention.conftest import MakeWith, TeamRuntime, person
from tests.support.clock import Clock

HOUR = 3600.0
DAY = 24 * HOUR
ASK = QUESTION.model_copy(update={"expires_in": 3 * DAY})
STEPS: list[dict[str, Any]] = [
    {"notify": ["@asker"]},
    {"notify": ["ben"], "after": HOUR},
    {"notify": ["leads", "slack:C0TEAM"], "after": HOUR},
]
LADDER: dict[str, Any] = {
    "ladders": {"default": {"steps": STEPS}},
    "questions": {"ladders": {"input": "default"}},
}


async def sweep(rt: Runtime, times: int = 1) -> int:
    return sum([await rt.sweeps.run("ladders", LeaderTerm()) for _ in range(times)])


async def sent(rt: Runtime, job: int) -> list[str]:
    """Return the Slack targets of a job's questions, in order."""
    return [
        delivery.target
        for delivery in await deliveries_of(rt, job)
        if delivery.kind is DeliveryKind.QUESTION and delivery.channel == "slack"
    ]


async def away(hours: float) -> str:
    """Return quiet hours that began an hour ago and last for so many hours."""
    now = datetime.now(UTC)
    start = now - timedelta(hours=1)
    end = now + timedelta(hours=hours)
    return f"{start:%H:%M}-{end:%H:%M}"


async def test_each_step_is_taken_once_at_its_time(
    team: TeamRuntime, make_with: MakeWith, clock: Clock
) -> None:
    rt = await team(**LADDER)
    anna = person(rt, "anna")
    number = (await make_with(rt).asked(ASK, actor=anna)).number
    assert await sweep(rt, 3) == 1
    assert await sent(rt, number) == ["U0ANNA"], "the job has no thread"
    assert await rt.sweeps.next_due() == pytest.approx(HOUR, abs=5)
    await clock.forward(HOUR - 1)
    assert await sweep(rt) == 0
    await clock.forward(2)
    assert await sweep(rt, 3) == 1
    await clock.forward(HOUR + 1)
    assert await sweep(rt, 3) == 1
    assert await sent(rt, number) == ["U0ANNA", "U0BEN", "U0CAROL", "C0TEAM"]
    await clock.forward(DAY)
    assert await sweep(rt) == 0
    attention = (await rt.acknowledgments.attention([number]))[number, 1]
    assert (attention.ladder, attention.next_at) == ("default", None)
    assert [(n.step, n.recipient, str(n.outcome)) for n in attention.notifications] == [
        (1, "anna", "sent"),
        (2, "ben", "sent"),
        (3, "carol", "sent"),
        (3, "dave", "not_allowed"),
        (3, "slack:C0TEAM", "sent"),
    ]
    assert (await rt.questions.get(number, 1)).reminders == 0
    assert await rt.sweeps.run("remind", LeaderTerm()) == 0, "steps replace reminders"


async def test_the_message_in_the_thread_notifies_the_asker(
    team: TeamRuntime, make_with: MakeWith, clock: Clock
) -> None:
    rt = await team(**LADDER)
    thread = "slack:C0WORK/1700000000.000100"
    work = await make_with(rt).asked(ASK, actor=person(rt, "anna"), notify=(thread,))
    await sweep(rt)
    assert await sent(rt, work.number) == ["C0WORK"]
    (first,) = (await rt.acknowledgments.attention([work.number]))[work.number, 1].notifications
    assert (first.recipient, str(first.outcome)) == ("anna", "thread")


@pytest.mark.parametrize("when_away", ["next", "wait"])
async def test_a_person_in_quiet_hours_is_passed_over_or_waited_for(
    team: TeamRuntime, make_with: MakeWith, clock: Clock, when_away: str
) -> None:
    steps = [{"notify": ["ben"], "when_away": when_away}, {"notify": ["carol"], "after": DAY}]
    changes = LADDER | {"ladders": {"default": {"steps": steps}}}
    rt = await team(**changes, ben={"quiet_hours": await away(2)})
    number = (await make_with(rt).asked(ASK, actor=person(rt, "anna"))).number
    await sweep(rt, 3)
    attention = (await rt.acknowledgments.attention([number]))[number, 1]
    if when_away == "next":
        assert await sent(rt, number) == ["U0CAROL"]
        outcomes = [(n.recipient, str(n.outcome)) for n in attention.notifications]
        assert outcomes == [("ben", "away"), ("carol", "sent")]
        return
    assert await sent(rt, number) == []
    assert attention.next_step == ("ben",)
    await clock.forward(2 * HOUR + 60)
    await sweep(rt, 2)
    assert await sent(rt, number) == ["U0BEN"]


async def test_the_last_step_waits_for_the_first_person(
    team: TeamRuntime, make_with: MakeWith, clock: Clock
) -> None:
    changes = LADDER | {"ladders": {"default": {"steps": [{"notify": ["ben", "carol"]}]}}}
    hours = {"ben": {"quiet_hours": await away(5)}, "carol": {"quiet_hours": await away(3)}}
    rt = await team(**changes, **hours)
    number = (await make_with(rt).asked(ASK, actor=person(rt, "anna"))).number
    await sweep(rt, 2)
    assert await sent(rt, number) == []
    await clock.forward(3 * HOUR + 60)
    await sweep(rt, 2)
    assert await sent(rt, number) == ["U0CAROL"]


async def test_a_critical_question_interrupts_and_has_its_own_ladder(
    team: TeamRuntime, make_with: MakeWith
) -> None:
    steps = {"steps": [{"notify": ["ben"]}]}
    ladders = {"ladders": {"default": {"steps": STEPS}, "urgent": steps}}
    choice = {"questions": {"ladders": {"input": "default", "critical": "urgent"}}}
    rt = await team(**ladders, **choice, ben={"quiet_hours": await away(5)})
    spec = ASK.model_copy(update={"critical": True})
    number = (await make_with(rt).asked(spec, actor=person(rt, "anna"))).number
    await sweep(rt)
    assert await sent(rt, number) == ["U0BEN"]
    assert (await rt.questions.get(number, 1)).critical
    (item,) = await claim(rt, "slack")
    assert item.target == "U0BEN"


async def test_an_answer_an_acknowledgment_and_a_snooze_stop_or_delay_the_steps(
    team: TeamRuntime, make_with: MakeWith, clock: Clock
) -> None:
    rt = await team(**LADDER)
    make = make_with(rt)
    anna = person(rt, "anna")
    answered, held, snoozed = [(await make.asked(ASK, actor=anna)).number for _ in range(3)]
    await sweep(rt)
    await make.answer(answered, "red")
    await rt.acknowledgments.acknowledge(held, 1, person(rt, "carol"), 5 * HOUR)
    await rt.acknowledgments.snooze(snoozed, 1, person(rt, "ben"), 5 * HOUR)
    await clock.forward(HOUR + 1)
    await sweep(rt, 3)
    assert await sent(rt, answered) == ["U0ANNA"]
    assert await sent(rt, held) == ["U0ANNA"]
    assert await sent(rt, snoozed) == ["U0ANNA", "U0CAROL", "C0TEAM"], "the next step at once"
    attention = (await rt.acknowledgments.attention([held]))[held, 1]
    assert (attention.acknowledged_by, attention.next_step) == ("carol", ("ben",))
    await clock.forward(4 * HOUR)
    await sweep(rt, 3)
    assert await sent(rt, held) == ["U0ANNA", "U0BEN"]


async def test_a_step_escalates_to_people_who_may_answer_from_then_on(
    team: TeamRuntime, make_with: MakeWith
) -> None:
    steps = [{"notify": ["dave", "leads"], "escalate": True}]
    rt = await team(**LADDER | {"ladders": {"default": {"steps": steps}}})
    make = make_with(rt)
    number = (await make.asked(ASK, actor=person(rt, "anna"))).number
    with pytest.raises(NotPermitted):
        await rt.acknowledgments.acknowledge(number, 1, person(rt, "dave"), 60)
    await sweep(rt)
    assert (await rt.questions.get(number, 1)).approvers == ["dave", "leads"]
    why = await rt.read_model.why(number)
    assert "needs an answer (dave, leads may answer, too): " in why.text
    assert await sent(rt, number) == ["U0DAVE", "U0CAROL"]
    verdict = await make.answer(number, "red", person(rt, "dave"))
    assert verdict.accepted


async def test_the_requester_of_an_approval_and_responders_are_not_notified_of_it(
    team: TeamRuntime, make_with: MakeWith
) -> None:
    step = {"notify": ["@asker", "anna", "ben", "erin"]}
    rt = await team(
        ladders={"default": {"steps": [step]}}, questions={"ladders": {"approval": "default"}}
    )
    gate = GATE.model_copy(update={"approvers": ("ben", "carol")})
    number = (await make_with(rt).asked(gate, actor=person(rt, "carol"))).number
    assert await sweep(rt) == 1
    assert await sent(rt, number) == ["U0BEN"], "carol requested it, erin is a responder only"
    attention = (await rt.acknowledgments.attention([number]))[number, 1]
    assert {n.recipient: str(n.outcome) for n in attention.notifications} == {
        "carol": "not_allowed",
        "anna": "not_allowed",
        "ben": "sent",
        "erin": "not_allowed",
    }


async def test_the_profile_of_a_repository_chooses_the_ladder(
    team: TeamRuntime, make_with: MakeWith
) -> None:
    own = {"owners": {"steps": [{"notify": ["@owners", "carol"]}]}}
    rt = await team(**LADDER | {"ladders": LADDER["ladders"] | own})
    pay = Repo.at(parse_url("https://example.org/acme/pay.git"))
    await rt.repos.add(pay, profile({"ladders": {"input": "owners"}}), make_with(rt).owner)
    work = await make_with(rt).running(
        actor=person(rt, "anna"), repo="https://example.org/acme/pay.git"
    )
    await rt.asking.ask(work.lease, ASK, owners=["ben"])
    await sweep(rt)
    assert await sent(rt, work.number) == ["U0BEN", "U0CAROL"]


async def test_a_delegate_is_notified_and_the_targets_get_one_notice(
    team: TeamRuntime, make_with: MakeWith, clock: Clock
) -> None:
    rt = await team(**LADDER)
    make = make_with(rt)
    number = (await make.asked(ASK, actor=person(rt, "anna"), notify=("slack:C0WORK",))).number
    await sweep(rt)
    ben = person(rt, "ben")
    for _ in range(2):
        await rt.acknowledgments.delegate(number, 1, ben, "carol", HOUR)
    assert await sent(rt, number) == ["C0WORK", "U0CAROL"]
    notices = [d.kind for d in await deliveries_of(rt, number)].count(DeliveryKind.NOTICE)
    assert notices == 1, "that of the first delegation"
    await clock.forward(HOUR - 60)
    assert await sweep(rt) == 0, "the ladder waits"
    attention = (await rt.acknowledgments.attention([number]))[number, 1]
    assert (attention.delegated_to, attention.delegated_by) == ("carol", "ben")
    with pytest.raises(UsageError, match="unknown person 'zoe'; people: anna, ben"):
        await rt.acknowledgments.delegate(number, 1, ben, "zoe", HOUR)
    with pytest.raises(NotPermitted, match="dave"):
        await rt.acknowledgments.delegate(number, 1, ben, "dave", HOUR)
    with pytest.raises(NotPermitted, match="may not answer"):
        await rt.acknowledgments.delegate(number, 1, person(rt, "dave"), "carol", HOUR)
    gate = (await make.asked(GATE)).number
    with pytest.raises(NotPermitted, match="ben may not"):
        await rt.acknowledgments.delegate(gate, 1, person(rt, "carol"), "ben", HOUR)


async def test_a_message_that_waits_for_the_former_delegate_is_not_sent(
    team: TeamRuntime, make_with: MakeWith
) -> None:
    rt = await team(carol={"quiet_hours": await away(2)})
    channel = RecordingChannel()
    anna = person(rt, "anna")
    number = (await make_with(rt).asked(ASK, actor=anna, notify=("slack:C0WORK",))).number
    for delegate in ("carol", "ben"):
        await rt.acknowledgments.delegate(number, 1, anna, delegate, HOUR)
        await _send(rt, channel)
    shown = {(str(d.kind), d.target): str(d.status) for d in await deliveries_of(rt, number)}
    assert shown["question", "U0CAROL"] == "superseded"
    assert shown["question", "U0BEN"] == "sent"
    edited = [item for item in channel.messages if item.edits and item.question is not None]
    assert [item.delegation and item.delegation.person for item in edited][-1] == "ben"


async def test_a_delegate_who_has_the_question_gets_a_notice_below_it(
    team: TeamRuntime, make_with: MakeWith
) -> None:
    rt = await team(**LADDER)
    number = (await make_with(rt).asked(ASK, actor=person(rt, "anna"))).number
    await sweep(rt)
    assert await sent(rt, number) == ["U0ANNA"]
    for _ in range(2):
        await rt.acknowledgments.delegate(number, 1, person(rt, "ben"), "anna", HOUR)
    to_anna = [d for d in await deliveries_of(rt, number) if d.target == "U0ANNA"]
    assert [d.kind for d in to_anna] == [DeliveryKind.QUESTION, DeliveryKind.NOTICE]
    notified = (await rt.acknowledgments.attention([number]))[number, 1].notifications
    assert [item.outcome for item in notified if item.recipient == "anna"] == ["sent", "sent"]


class RecordingChannel:
    """A Slack that keeps the messages that it sends."""

    name = "slack"

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def served(self) -> list[str] | None:
        """Return None: all targets."""
        return None

    def limits(self, message: Message) -> list[RateLimit]:
        return []

    async def send(self, message: Message) -> SendResult:
        self.messages.append(message)
        return Receipt(message.marker)

    edit = send


async def _send(rt: Runtime, channel: RecordingChannel) -> list[DeliveryOutcome]:
    """Send all deliveries that are due; return the outcomes."""
    outcomes: list[DeliveryOutcome] = []
    while items := await claim(rt, "slack"):
        for item in items:
            outcome = await rt.delivery_sender.send(item, cast(Any, channel))
            await rt.delivery_sender.record(item, outcome)
            outcomes.append(outcome)
    return outcomes


async def test_a_message_to_a_person_alone_waits_for_their_hours(
    team: TeamRuntime, make_with: MakeWith, clock: Clock
) -> None:
    rt = await team(ben={"quiet_hours": await away(2)})
    channel = RecordingChannel()
    await make_with(rt).asked(ASK, actor=person(rt, "anna"), notify=("slack:U0BEN",))
    *_, outcome = await _send(rt, channel)
    assert isinstance(outcome, Deferred)
    assert "ben is not to be interrupted until" in (outcome.reason or "")
    assert 1.9 * HOUR < outcome.seconds <= 2 * HOUR + 60
    assert [message.kind for message in channel.messages] == [DeliveryKind.STATUS]
    await clock.forward(2 * HOUR + 61)
    await _send(rt, channel)
    assert channel.messages[-1].kind is DeliveryKind.QUESTION


@pytest.mark.parametrize(
    ("changes", "critical", "mentioned"),
    [
        ({}, False, ["carol"]),
        ({}, True, ["ben", "carol"]),
        (LADDER | {"questions": {"ladders": {"approval": "default"}}}, False, ["carol"]),
        (LADDER | {"questions": {"ladders": {"approval": "default"}}}, True, ["carol"]),
    ],
)
async def test_a_message_in_a_channel_mentions_people_in_their_hours_or_only_the_asker(
    team: TeamRuntime,
    make_with: MakeWith,
    changes: dict[str, Any],
    critical: bool,
    mentioned: list[str],
) -> None:
    rt = await team(**changes, ben={"quiet_hours": await away(2)})
    channel = RecordingChannel()
    rt.policy.self_approval = True
    gate = GATE.model_copy(update={"approvers": ("ben", "carol"), "critical": critical})
    await make_with(rt).asked(gate, actor=person(rt, "carol"), notify=("slack:C0WORK",))
    await _send(rt, channel)
    message = channel.messages[-1]
    assert [person.name for person in message.mentions] == ["ben", "carol"]
    assert [person.name for person in message.mentions if person.ids] == mentioned


async def test_no_message_asks_a_person_who_has_approved(
    team: TeamRuntime, make_with: MakeWith, clock: Clock
) -> None:
    steps = {"steps": [{"notify": ["leads"], "after": HOUR}]}
    with_ladder = {"ladders": {"default": steps}, "questions": {"ladders": {"approval": "default"}}}
    gate = GATE.model_copy(update={"approvers": ("carol", "dave"), "quorum": 2, "expires_in": DAY})
    alone = ("slack:U0CAROL", "slack:U0DAVE")
    for changes, hours, targets in ((with_ladder, 1, ()), ({}, 12, alone)):
        rt = await team(**changes)
        make, channel = make_with(rt), RecordingChannel()
        work = await make.asked(gate, actor=person(rt, "anna"), notify=("slack:C0WORK", *targets))
        await make.decide(work.number, True, person(rt, "carol"))
        await _send(rt, channel)
        before = len(channel.messages)
        await clock.forward(hours * HOUR + 61)
        await sweep(rt)
        await rt.sweeps.run("remind", LeaderTerm())
        await _send(rt, channel)
        asked = [message.target for message in channel.messages[before:]]
        assert "U0DAVE" in asked, asked
        assert "U0CAROL" not in asked, asked
        for message in channel.messages[before:]:
            assert "carol" not in [one.name for one in message.mentions if one.ids]
