"""A job with a Slack thread and a card: an answer in either closes the question in both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from draftsman.formats.times import spelled_time
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_bots.slack.deliveries.channel import SlackChannel
from draftsman_bots.slack.deliveries.mrkdwn import local_time
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.outbox import run_dispatcher, wait_until_delivered
from draftsman_testing.people import People
from draftsman_testing.slack import FakeSlack
from draftsman_testing.trello import FakeTrello
from tests.bots.slack.channel_fixtures import actionable, shown, slack_channel
from tests.bots.trello.channel_fixtures import CardHarness, trello_channel

SOURCES = ["slack", "trello", Source.CLI]


class Both:
    """A channel of a workspace, and a card."""

    def __init__(
        self, rt: Runtime, slack: FakeSlack, trello: FakeTrello, channel: TrelloChannel
    ) -> None:
        self.rt = rt
        self.slack = slack
        self.wall = CardHarness(trello)
        self.room = slack.channel("ops")
        self.channels: tuple[SlackChannel, TrelloChannel] = (slack_channel(slack), channel)
        self.notify = (f"slack:{self.room}", f"trello:{self.wall.card}")

    async def copies(self, job: int) -> list[str]:
        """Return the texts of the question's copies, which have no controls any more."""
        texts = await self.shown(job)
        (card,) = self.slack.messages(self.room)
        assert actionable(self.slack.messages(self.room, card["ts"])[0]) == []
        assert "To answer, comment" not in texts[1]
        return texts

    async def shown(self, job: int) -> list[str]:
        """Return the texts of the question's copies."""
        await wait_until_delivered(self.rt, job, *self.channels)
        (card,) = self.slack.messages(self.room)
        asked = self.slack.messages(self.room, card["ts"])[0]
        return [shown(asked), self.wall.comments[1]]


@pytest.fixture
async def both(rt: Runtime) -> AsyncIterator[Both]:
    async with FakeSlack() as slack, FakeTrello() as trello, trello_channel(trello) as channel:
        both = Both(rt, slack, trello, channel)
        async with run_dispatcher(rt, *both.channels):
            yield both


async def test_first_answer_is_shown_in_both_channels(
    both: Both, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.asked(QUESTION, notify=both.notify)
    await wait_until_delivered(rt, work.number, *both.channels)
    ben = people.ben
    voters = [Actor(source, f"{source}-1", "Ben", ben.person, ben.roles) for source in SOURCES]
    values = ("red", "blue", "red")
    verdicts = await asyncio.gather(
        *(make.answer(work.number, *item) for item in zip(values, voters, strict=True))
    )
    (won,) = [value for value, verdict in zip(values, verdicts, strict=True) if verdict.accepted]
    copies = await both.copies(work.number)
    assert all(f"was answered by ben: {won}" in copy for copy in copies), copies
    events = await rt.read_model.job_events(work.number)
    assert [item.to_status for item in events].count(Status.RESUMED) == 1


async def test_a_later_expiry_is_shown_in_both_channels(
    both: Both, make: Factory, people: People, rt: Runtime
) -> None:
    spec = GATE.model_copy(update={"expires_in": 3600.0})
    work = await make.asked(spec, notify=both.notify)
    await wait_until_delivered(rt, work.number, *both.channels)
    extended = await rt.questions.extend(work.number, 1, 86_400.0, people.olga)
    assert extended is not None
    asked, comment = await both.shown(work.number)
    assert f"Expires at {spelled_time(extended)}." in comment
    assert f"expires {local_time(extended)}" in asked
    assert await rt.questions.extend(work.number, 1, None, people.olga) is None
    assert all("xpires" not in text for text in await both.shown(work.number))


async def test_messages_follow_the_delegate_of_a_question(
    both: Both, make: Factory, people: People, rt: Runtime
) -> None:
    accounts = {name: both.slack.user(name) for name in ("carol", "dave", "erin")}
    rt.policy.people = {**rt.policy.people} | {
        name: replace(rt.policy.people[name], ids={Source.CLI: name, "slack": id})
        for name, id in accounts.items()
    }
    spec = GATE.model_copy(update={"approvers": ("carol", "dave", "erin")})
    work = await make.asked(spec, notify=both.notify)

    async def delegate(name: str) -> None:
        await rt.acknowledgments.delegate(work.number, 1, people.carol, name, 3600.0)
        await wait_until_delivered(rt, work.number, *both.channels)

    def received(name: str) -> tuple[list[str], list[str]]:
        """Return the copies of a person, and the other messages."""
        texts = [shown(item) for item in both.slack.messages(both.slack.direct(accounts[name]))]
        notices = [text for text in texts if "asked you" in text]
        return [text for text in texts if text not in notices], notices

    async def copies(name: str) -> list[str]:
        """Return the copies of a person, and those that all people see."""
        return [*received(name)[0], *await both.shown(work.number)]

    await delegate("dave")
    assert all("carol asked dave to answer, until" in text for text in await copies("dave"))
    await delegate("erin")
    for name in ("dave", "erin"):
        texts = await copies(name)
        assert len(texts) == 3
        assert all("carol asked erin to answer, until" in text for text in texts)
        assert not any("asked dave" in text for text in texts)
    notices = [f"{work.name}/1: carol asked {name} to answer" for name in ("dave", "erin")]
    notices[0] += "; then carol asked erin"
    assert [text.splitlines()[0] for text in both.wall.comments[2:]] == notices
    (card,) = both.slack.messages(both.room)
    thread = both.slack.messages(both.room, card["ts"])
    assert [shown(message) for message in thread[1:]] == notices
    await delegate("dave")
    assert len(await copies("dave")) == 3
    (again,) = received("dave")[1]
    assert again.startswith(f"{work.name}/1: carol asked you to answer")
    assert all("carol asked dave to answer, until" in text for text in await copies("dave"))
    await make.decide(work.number, True, people.on(Source.CLI, "dave"))
    await both.copies(work.number)
    assert all("was approved by dave" in text for text in await copies("dave"))
