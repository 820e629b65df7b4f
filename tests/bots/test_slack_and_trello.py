"""A job with a Slack thread and a card: an answer in either closes the question in both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from draftsman.domain.job import Source, Status
from draftsman.domain.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_bots.slack.outbound.channel import SlackChannel
from draftsman_bots.trello.outbound.channel import TrelloChannel
from tests.bots.bot_contract import run_dispatcher, wait_until_delivered
from tests.bots.slack.channel_fixtures import actionable, shown, slack_channel
from tests.bots.trello.channel_fixtures import CardHarness, trello_channel
from tests.factories import QUESTION, Factory
from tests.support.people import People
from tests.support.slack import FakeSlack
from tests.support.trello import FakeTrello

SOURCES = [Source.SLACK, Source.TRELLO, Source.CLI]


class Both:
    """A channel of a workspace, and a card."""

    def __init__(
        self, rt: Runtime, slack: FakeSlack, trello: FakeTrello, channel: TrelloChannel
    ) -> None:
        self.rt = rt
        self.slack, self.wall = slack, CardHarness(trello)
        self.room = slack.channel("ops")
        self.channels: tuple[SlackChannel, TrelloChannel] = (slack_channel(slack), channel)
        self.notify = (f"slack:{self.room}", f"trello:{self.wall.card}")

    async def copies(self, job: int) -> list[str]:
        """Return the texts of the question's copies, which have no controls any more."""
        await wait_until_delivered(self.rt, job, *self.channels)
        (card,) = self.slack.messages(self.room)
        asked = self.slack.messages(self.room, card["ts"])[0]
        comment = self.wall.comments[1]
        assert actionable(asked) == []
        assert "To answer, comment" not in comment
        return [shown(asked), comment]


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
