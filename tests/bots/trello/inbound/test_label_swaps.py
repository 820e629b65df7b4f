"""Label swaps: interrupted, concurrent, and with changes by people meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from draftsman.errors import DatabaseUnreachable
from draftsman.jobs.runs.outcome import Done
from draftsman_bots.trello.records.service import TrelloBoards, boards_of
from draftsman_bots.trello.requests import label_jobs
from draftsman_testing.factories import Factory
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.inbound.conftest import TrelloBotHarness


@pytest.mark.parametrize("over", [True, False])
async def test_removal_of_a_label_after_a_crash_is_reported(
    bench: TrelloBotHarness,
    make: Factory,
    trello: FakeTrello,
    monkeypatch: pytest.MonkeyPatch,
    over: bool,
) -> None:
    """Nothing tells whether it is the same label: the job is not made twice, and the card says so.

    While the job is live, no label creates another job, and this label is removed without a notice.
    """

    async def crash(_boards: TrelloBoards, episode: object) -> bool:
        raise DatabaseUnreachable("cut short")

    card = bench.card(labels=[bench.label])
    with monkeypatch.context() as broken:
        broken.setattr(TrelloBoards, "end_swapped_episode", crash)
        with pytest.raises(DatabaseUnreachable):
            await bench.poll()
    assert bench.labels(card) == ["draftsman: queued"]
    if over:
        await bench.rt.settlement.outcome(await make.running(1), Done({}))
    trello.add_label(card, bench.label)
    await bench.poll()
    assert bench.labels(card) == ["draftsman: queued"]
    assert await bench.keys() == [bench.key(card)]
    notices = [
        notice for notice in await bench.notices(card) if "was removed from this card" in notice
    ]
    assert len(notices) == over
    trello.add_label(card, bench.label)
    await bench.poll()
    assert await bench.keys() == [bench.key(card), *([bench.key(card, 2)] if over else [])]


async def test_concurrent_label_swaps_keep_the_next_label(
    bench: TrelloBotHarness, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of webhook and poller, the second finds the swap done."""
    card = bench.card(labels=[bench.label])
    [config] = await boards_of(bench.rt).all()
    [episode] = await label_jobs.check_card(bench.context, config, card)
    started = asyncio.Event()
    go = asyncio.Event()
    write = bench.context.trello.write
    removed = []

    async def slowly(method: Any, label: Any) -> Any:
        if method.__name__ == "remove_label":
            removed.append(label)
            started.set()
            await go.wait()
        return await write(method, label)

    monkeypatch.setattr(bench.context.trello, "write", slowly)
    first = asyncio.create_task(label_jobs.process_episode(bench.context, config, episode))
    await started.wait()
    second = asyncio.create_task(label_jobs.process_episode(bench.context, config, episode))
    go.set()
    await first
    trello.add_label(card, bench.label)
    await second
    assert len(removed) == 1
    assert bench.labels(card) == ["draftsman", "draftsman: queued"]
    await bench.poll()
    [notice] = await bench.notices(card)
    assert "D-1 is still queued. A card can have only one job at a time" in notice
    assert await bench.keys() == [bench.key(card)]
