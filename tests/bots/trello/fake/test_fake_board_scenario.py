"""The day makes the same jobs in every way, for one who looks as one has to; not for others.

The one who looks is a model of fifty lines. What the real intake makes of the day is its own test.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from trello import TrelloClient

from tests.bots.trello.board_scenario import STEPS, BoardScenario, SyncMode
from tests.bots.trello.http_adapters import RequestsAdapter
from tests.bots.trello.webhook_receiver import WebhookReceiver
from tests.support.trello import FakeTrello
from tests.support.trello.entities import Json

READ = ("createCard", "copyCard", "moveCardToBoard")


@dataclass
class Model:
    """Sees labels come and go by card, and starts one job at a time for each."""

    day: BoardScenario
    forgetful: bool = False
    """Whether a job is made of every action, whatever was seen before."""
    known: dict[str, set[str]] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    started: list[str] = field(default_factory=list)
    baseline: bool = True

    async def poll(self) -> None:
        """Compare the labels of the open cards of both boards with what was seen."""
        for board in (self.day.work, self.day.other):
            for card in self.day.trello.world.cards.values():
                if card.board == board and not card.closed:
                    self.look(card.id)
        self.baseline = False

    def look(self, id: str) -> None:
        """Compare the labels of one card."""
        card = self.day.trello.world.cards.get(id)
        if card is None or card.closed or card.board == self.day.attic:
            return
        before = self.known.get(id, set())
        now = {one for one in card.labels if one in (self.day.fix, self.day.other_fix)}
        if card.column in self.day.ignored:
            now = set()
        self.known[id] = now
        if (now - before) and not self.baseline:
            self.start(id)

    def start(self, id: str) -> None:
        """Start a job, unless one lives."""
        if id not in self.live or self.forgetful:
            self.live.add(id)
            self.started.append(self.day.name(id))

    async def hear(self, action: Json) -> None:
        """Look at a card when a webhook says that something may be new on it."""
        card = action["data"].get("card", {}).get("id")
        if action["type"] in (*READ, "addLabelToCard", "removeLabelFromCard"):
            if self.forgetful:
                self.known.pop(card, None)
            self.look(card)

    async def settle(self) -> None:
        """Do nothing: it is done at once."""

    async def finish(self, card: str) -> None:
        """End the job of a card."""
        self.live.discard(card)


async def lived(
    trello: FakeTrello, ears: WebhookReceiver, way: SyncMode, *, forgetful: bool = False
) -> Model:
    """Live the day."""
    day = BoardScenario.begin(trello)
    model = Model(day, forgetful)
    await model.poll()
    client = TrelloClient(trello.key, trello.token, http_service=RequestsAdapter(trello.api_url))
    for board in (day.work, day.other):
        await asyncio.to_thread(client.create_hook, ears.url, board)
    ears.listen(model.hear)
    await day.live(way, model, seed=5)
    return model


@pytest.mark.parametrize("way", SyncMode)
async def test_the_same_jobs_come_of_it_in_every_way(
    trello: FakeTrello, ears: WebhookReceiver, way: SyncMode
) -> None:
    model = await lived(trello, ears, way)
    assert model.started == model.day.jobs()
    assert (ears.heard == []) == (way is SyncMode.POLLING)
    assert not trello.world.pending


async def test_a_storm_brings_everything_more_than_once(
    trello: FakeTrello, ears: WebhookReceiver
) -> None:
    await lived(trello, ears, SyncMode.STORM)
    ids = [one.action["id"] for one in ears.heard]
    assert all(ids.count(id) >= 4 for id in ids)
    assert ids != sorted(ids)


@pytest.mark.parametrize("way", [SyncMode.WEBHOOK, SyncMode.BOTH, SyncMode.STORM])
async def test_who_forgets_what_he_saw_makes_other_jobs(
    trello: FakeTrello, ears: WebhookReceiver, way: SyncMode
) -> None:
    model = await lived(trello, ears, way, forgetful=True)
    assert model.started != model.day.jobs()


def test_the_day_is_the_same_every_day() -> None:
    def played() -> list[str]:
        day = BoardScenario.begin(FakeTrello())
        for step in STEPS:
            step.deed(day)
        return [action["type"] for action in day.trello.all_actions]

    assert played() == played()
