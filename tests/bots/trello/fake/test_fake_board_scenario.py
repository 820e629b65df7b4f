"""The board scenario, run by a model of the app: the same jobs in every sync mode.

`tests.bots.trello.test_board_scenario` runs it with the bot.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from trello import TrelloClient

from draftsman_testing.trello import FakeTrello
from draftsman_testing.trello.entities import Json
from tests.bots.trello.board_scenario import STEPS, BoardScenario, SyncMode
from tests.bots.trello.http_adapters import RequestsAdapter
from tests.bots.trello.webhook_receiver import WebhookReceiver

READ = ("createCard", "copyCard", "moveCardToBoard")


@dataclass
class Model:
    """Compares the labels of cards, and starts at most a job at a time for each card."""

    day: BoardScenario
    forgetful: bool = False
    """Whether every action creates a job, without a comparison."""
    known: dict[str, set[str]] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    started: list[str] = field(default_factory=list)
    baseline: bool = True

    async def poll(self) -> None:
        """Compare the labels of the open cards of both boards with the recorded labels."""
        for board in (self.day.work, self.day.other):
            for card in self.day.trello.world.cards.values():
                if card.board == board and not card.closed:
                    self.compare(card.id)
        self.baseline = False

    def compare(self, id: str) -> None:
        """Compare the labels of a card."""
        card = self.day.trello.world.cards.get(id)
        if card is None or card.closed or card.board == self.day.attic:
            return
        before = self.known.get(id, set())
        now = {label for label in card.labels if label in (self.day.fix, self.day.other_fix)}
        if card.column in self.day.ignored:
            now = set()
        self.known[id] = now
        if (now - before) and not self.baseline:
            self.start(id)

    def start(self, id: str) -> None:
        """Start a job, unless the card has a live job."""
        if id not in self.live or self.forgetful:
            self.live.add(id)
            self.started.append(self.day.name(id))

    async def on_webhook(self, action: Json) -> None:
        """Compare the labels of the card of a webhook."""
        card = action["data"].get("card", {}).get("id")
        if action["type"] in (*READ, "addLabelToCard", "removeLabelFromCard"):
            if self.forgetful:
                self.known.pop(card, None)
            self.compare(card)

    async def settle(self) -> None:
        """Do nothing: the model has no background work."""

    async def finish(self, card: str) -> None:
        """End the job of a card."""
        self.live.discard(card)


async def run_scenario(
    trello: FakeTrello, receiver: WebhookReceiver, way: SyncMode, *, forgetful: bool = False
) -> Model:
    """Run the scenario."""
    day = BoardScenario.begin(trello)
    model = Model(day, forgetful)
    await model.poll()
    client = TrelloClient(trello.key, trello.token, http_service=RequestsAdapter(trello.api_url))
    for board in (day.work, day.other):
        await asyncio.to_thread(client.create_hook, receiver.url, board)
    receiver.listen(model.on_webhook)
    await day.live(way, model, seed=5)
    return model


@pytest.mark.parametrize("way", SyncMode)
async def test_model_creates_the_same_jobs_in_every_sync_mode(
    trello: FakeTrello, receiver: WebhookReceiver, way: SyncMode
) -> None:
    model = await run_scenario(trello, receiver, way)
    assert model.started == model.day.jobs()
    assert (receiver.received == []) == (way is SyncMode.POLLING)
    assert not trello.world.pending


async def test_storm_delivers_every_webhook_repeatedly(
    trello: FakeTrello, receiver: WebhookReceiver
) -> None:
    await run_scenario(trello, receiver, SyncMode.STORM)
    ids = [webhook.action["id"] for webhook in receiver.received]
    assert all(ids.count(id) >= 3 for id in ids)
    assert ids != sorted(ids)


@pytest.mark.parametrize("way", [SyncMode.WEBHOOK, SyncMode.BOTH, SyncMode.STORM])
async def test_model_without_memory_creates_other_jobs(
    trello: FakeTrello, receiver: WebhookReceiver, way: SyncMode
) -> None:
    model = await run_scenario(trello, receiver, way, forgetful=True)
    assert model.started != model.day.jobs()


def test_board_scenario_is_deterministic() -> None:
    def action_types() -> list[str]:
        day = BoardScenario.begin(FakeTrello())
        for step in STEPS:
            step.deed(day)
        return [action["type"] for action in day.trello.all_actions]

    assert action_types() == action_types()
