"""Many cards at once: every webhook is acknowledged, and no rate limit is reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from draftsman.jobs.job import Status
from draftsman_bots.trello.boards import board_scans
from draftsman_testing.trello import FakeTrello, Fault
from draftsman_testing.trello.limits import Limits
from tests.bots.trello.conftest import SCAN_INTERVAL
from tests.bots.trello.inbound.conftest import TrelloBotHarness

MOVED = 260
READ = ("GET", "/cards/{id}")


def _calls(trello: FakeTrello) -> Counter[tuple[str, str]]:
    return Counter((call.method, call.path) for call in trello.calls)


async def test_260_cards_moved_at_once_cost_a_few_requests_and_delay_no_label(
    bench: TrelloBotHarness, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_scans, "INTERVAL", SCAN_INTERVAL)
    await bench.serve_webhook()
    cards = [bench.card(f"card {n}") for n in range(MOVED)]
    labeled = bench.card("labeled")
    trello.world.pending.clear()
    doing = trello.list(bench.board, "Doing")
    trello.world.pending.clear()
    trello.calls.clear()
    for n, card in enumerate(cards):
        trello.move(card, doing)
        if n == MOVED // 2:
            trello.add_label(labeled, bench.label, bench.anna)
    acks = await bench.deliver_webhooks(together=True)
    assert len(acks) == MOVED + 1
    assert {(ack.status, ack.attempts) for ack in acks} == {(200, 1)}
    [hook] = trello.webhooks
    assert hook["consecutiveFailures"] == 0
    [job] = await bench.jobs()
    assert (job.title, job.invoker_id) == ("labeled", "anna")
    calls = _calls(trello)
    assert calls["GET", "/boards/{id}/cards"] <= 10, "one in two seconds, however slow this is"
    assert calls[READ] <= 4, "the labeled card alone is read"
    assert trello.meter.refused == 0
    assert sum(calls.values()) < Limits().token // 3


async def test_labeled_cards_moved_together_each_create_a_job(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    cards = [bench.card(f"card {n}", place=bench.ice, labels=[bench.label]) for n in range(5)]
    await bench.deliver_webhooks()
    await bench.poll()
    assert await bench.jobs() == []
    for card in cards:
        trello.move(card, bench.todo)
    assert {ack.status for ack in await bench.deliver_webhooks(together=True)} == {200}
    assert await bench.keys() == sorted(bench.key(card) for card in cards)


async def test_archived_cards_without_jobs_are_not_read(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    cards = [bench.card(f"card {n}") for n in range(20)]
    trello.world.pending.clear()
    trello.calls.clear()
    for card in cards:
        trello.archive(card)
    assert {ack.status for ack in await bench.deliver_webhooks(together=True)} == {200}
    assert _calls(trello)[READ] == 0


class TestAtTheRateLimit:
    """Trello refuses further requests for a moment."""

    @pytest.fixture
    async def trello(self) -> AsyncIterator[FakeTrello]:
        """Give a Trello with a short rate limit window."""
        async with FakeTrello(Limits(window=0.3, told=True)) as fake:
            yield fake

    async def test_a_label_is_acknowledged_and_found_by_a_scan(
        self, bench: TrelloBotHarness, trello: FakeTrello
    ) -> None:
        await bench.serve_webhook()
        card = bench.card()
        await bench.deliver_webhooks()
        trello.add_label(card, bench.label, bench.anna)
        trello.faults.next(*READ, Fault.RATE_LIMIT)
        [ack] = await bench.deliver_webhooks()
        assert (ack.status, ack.body) == (200, "scan_requested\n")
        [job] = await bench.jobs()
        assert job.invoker_id == "anna"

    async def test_an_archived_card_is_left_to_the_poll(
        self, bench: TrelloBotHarness, trello: FakeTrello
    ) -> None:
        await bench.serve_webhook()
        card = bench.card(labels=[bench.label])
        await bench.deliver_webhooks()
        await bench.deliver_webhooks()
        trello.archive(card)
        trello.faults.next(*READ, Fault.RATE_LIMIT)
        assert [(ack.status, ack.body) for ack in await bench.deliver_webhooks()] == [
            (200, "left_to_poll\n")
        ]
        await bench.poll()
        [job] = await bench.jobs()
        assert job.status is Status.CANCELED
