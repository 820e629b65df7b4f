"""The intake makes the same jobs of one board's day, in whichever way it gets to know of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from draftsman.domain.people.actor import Actor
from draftsman.domain.trello.board import BoardConfig, LabelRule, card_subject_key
from draftsman.runtime import Runtime
from draftsman.settings import SecretSettings, TrelloSettings
from draftsman.store.postgres.database import Connection
from draftsman_bots.http import Server, bind
from draftsman_bots.trello.context import BotContext
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.identity import resolve_identity
from draftsman_bots.trello.listeners.http_app import application
from draftsman_bots.trello.listeners.poller import Poller
from draftsman_bots.trello.transport.client import connect
from tests.bots.trello.board_scenario import BoardScenario, SyncMode
from tests.support.trello import FakeTrello, Limits

PLENTY = Limits(key=100_000, token=100_000, members=100_000)


@dataclass
class Bot:
    """The poller and the webhook of one process, moved by hand."""

    desk: BotContext
    poller: Poller
    conn: Connection
    owner: Actor

    async def poll(self) -> None:
        """Look at the boards once."""
        assert await self.poller.poll_once() == 0

    async def settle(self) -> None:
        """Do what was begun beside."""
        await self.desk.background.idle()

    async def finish(self, card: str) -> None:
        """Cancel the job of a card."""
        query = (
            "SELECT number FROM jobs WHERE subject_key = %s AND status = 'queued'"
            " ORDER BY number DESC LIMIT 1"
        )
        row = await (await self.conn.execute(query, [card_subject_key(card)])).fetchone()
        assert row is not None, "there is no job to end"
        await self.desk.rt.job_control.cancel(row[0], self.owner, "over")

    async def jobs(self, day: BoardScenario) -> list[str]:
        """Return the cards of all jobs, in order, by the names that they have in the day."""
        names = {card_subject_key(card): name for name, card in day.cards.items()}
        found = await self.conn.execute("SELECT subject_key FROM jobs ORDER BY number")
        return [names[row[0]] for row in await found.fetchall()]


@asynccontextmanager
async def working(
    trello: FakeTrello, rt: Runtime, conn: Connection, owner: Actor, *, webhook: bool
) -> AsyncIterator[Bot]:
    """Run the bot's HTTP side, and hand out its poller."""
    listening = bind(("127.0.0.1", 0), "trello")
    place, secret = SecretSettings(env="NOWHERE"), trello.secret
    port = listening.getsockname()[1]
    settings = TrelloSettings(
        key=place,
        token=place,
        secret=place,
        api_url=trello.api_url,
        listen=f"127.0.0.1:{port}",
        callback_url=f"http://127.0.0.1:{port}/trello" if webhook else None,
    )
    tokens = Credentials(trello.key, trello.token, secret)
    async with connect(settings, tokens, timeout=10) as client:
        desk = BotContext(rt, settings, client)
        server = Server(application(desk, secret))
        serving = asyncio.create_task(server.serve([listening]))
        poller = Poller(desk, settings.poll)
        try:
            await resolve_identity(desk, poller.stop)
            yield Bot(desk, poller, conn, owner)
            await desk.background.idle()
        finally:
            server.end()
            await serving


async def configure(rt: Runtime, day: BoardScenario, owner: Actor) -> None:
    """Watch both boards; the label of the one is swapped for another, that of the other is not."""
    queued = day.trello.label(day.work, "draftsman: queued", "black")
    for board, name, label in (
        (day.work, "Work", day.fix),
        (day.other, "Other", day.other_fix),
    ):
        config = BoardConfig(
            board_id=board,
            name=name,
            labels={label: LabelRule(name="draftsman")},
            ignored_list_ids=tuple(day.ignored) if board == day.work else (),
            queued_label_id=queued if board == day.work else None,
        )
        await rt.boards.save(config, owner)


@pytest.mark.parametrize("way", [SyncMode.WEBHOOK, SyncMode.POLLING, SyncMode.STORM])
async def test_the_day_makes_the_same_jobs_in_every_way(
    way: SyncMode, rt: Runtime, conn: Connection, owner: Actor
) -> None:
    """Both ways at once, undisturbed, are in the soak, and the storm in other orders."""
    await live(way, rt, conn, owner, seed=11)


async def live(way: SyncMode, rt: Runtime, conn: Connection, owner: Actor, seed: int) -> None:
    """Live the day in one way, and see that it makes the jobs that it says."""
    async with FakeTrello(PLENTY) as trello:
        day = BoardScenario.begin(trello)
        await configure(rt, day, owner)
        async with working(trello, rt, conn, owner, webhook=way is not SyncMode.POLLING) as bot:
            await bot.poll()
            assert len(trello.webhooks) == (0 if way is SyncMode.POLLING else 2)
            await day.live(way, bot, seed=seed)
            assert await bot.jobs(day) == day.jobs()
        assert not [call for call in trello.calls if call.outcome == "429"]
