"""The bot creates the same jobs from the board scenario in every sync mode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.settings.secret import SecretSettings
from draftsman_bots.process.http import HttpServer, bind
from draftsman_bots.trello.boards.poller import Poller
from draftsman_bots.trello.context import BotContext
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.identity import resolve_identity
from draftsman_bots.trello.records.board import BoardConfig, LabelRule, card_subject_key
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.settings import BoardMembers, TrelloSettings
from draftsman_bots.trello.transport.client import connect
from draftsman_bots.trello.transport.http_app import application
from draftsman_testing.trello import FakeTrello, Limits
from tests.bots.trello.board_scenario import BoardScenario, SyncMode
from tests.support.slow import slow_except

PLENTY = Limits(key=100_000, token=100_000, members=100_000, told=True)


@dataclass
class Bot:
    """The poller and the webhook of a process, driven by the test."""

    context: BotContext
    poller: Poller
    conn: Connection
    owner: Actor

    async def poll(self) -> None:
        """Poll the boards once."""
        assert await self.poller.poll_once() == 0

    async def settle(self) -> None:
        """Wait for the background tasks."""
        await self.context.background.idle()

    async def finish(self, card: str) -> None:
        """Cancel the job of a card."""
        query = (
            "SELECT number FROM draftsman.jobs WHERE subject_key = %s AND status = 'queued'"
            " ORDER BY number DESC LIMIT 1"
        )
        row = await (await self.conn.execute(query, [card_subject_key(card)])).fetchone()
        assert row is not None, "there is no job to end"
        await self.context.rt.job_control.cancel(row[0], self.owner, "over")

    async def jobs(self, day: BoardScenario) -> list[str]:
        """Return the names of the cards of all jobs, in order."""
        names = {card_subject_key(card): name for name, card in day.cards.items()}
        cursor = await self.conn.execute("SELECT subject_key FROM draftsman.jobs ORDER BY number")
        return [names[row[0]] for row in await cursor.fetchall()]


@asynccontextmanager
async def working(
    trello: FakeTrello, rt: Runtime, conn: Connection, owner: Actor, *, webhook: bool
) -> AsyncIterator[Bot]:
    """Serve the bot's webhook; yield the bot."""
    listening = bind(("127.0.0.1", 0), "trello")
    unset = SecretSettings(env="NOWHERE")
    secret = trello.secret
    port = listening.getsockname()[1]
    settings = TrelloSettings(
        key=unset,
        token=unset,
        secret=unset,
        api_url=trello.api_url,
        members=BoardMembers.MAY_SUBMIT,
        listen=f"127.0.0.1:{port}",
        callback_url=f"http://127.0.0.1:{port}/trello" if webhook else None,
    )
    tokens = Credentials(trello.key, trello.token, secret)
    async with connect(settings, tokens, timeout=10) as client:
        context = BotContext(rt, settings, client)
        server = HttpServer(application(context, secret), listening)
        serving = asyncio.create_task(server.run())
        poller = Poller(context, settings.poll)
        try:
            await resolve_identity(context, poller.stop)
            yield Bot(context, poller, conn, owner)
            await context.background.idle()
        finally:
            server.stop.set()
            await serving


async def configure(rt: Runtime, day: BoardScenario, owner: Actor) -> None:
    """Watch both boards; only the label of `work` is swapped for a queued label."""
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
        await boards_of(rt).save(config, owner)


@pytest.mark.parametrize(
    "way",
    slow_except(
        [SyncMode.WEBHOOK, SyncMode.POLLING],
        [SyncMode.WEBHOOK, SyncMode.POLLING, SyncMode.STORM],
    ),
)
async def test_bot_creates_the_same_jobs_in_every_sync_mode(
    way: SyncMode, rt: Runtime, conn: Connection, owner: Actor
) -> None:
    """`SyncMode.BOTH` and storms in other orders are in the soak test."""
    await live(way, rt, conn, owner, seed=11)


async def live(way: SyncMode, rt: Runtime, conn: Connection, owner: Actor, seed: int) -> None:
    """Run the scenario in a sync mode, and check its jobs."""
    async with FakeTrello(PLENTY) as trello:
        day = BoardScenario.begin(trello)
        await configure(rt, day, owner)
        async with working(trello, rt, conn, owner, webhook=way is not SyncMode.POLLING) as bot:
            await bot.poll()
            assert len(trello.webhooks) == (0 if way is SyncMode.POLLING else 2)
            await day.live(way, bot, seed=seed)
            assert await bot.jobs(day) == day.jobs()
        assert not [call for call in trello.calls if call.outcome == "429"]
