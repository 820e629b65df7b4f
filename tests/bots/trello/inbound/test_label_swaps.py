"""The swap of a label: cut short, done by two at once, and what people do meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from draftsman.domain.outcome import Done
from draftsman.errors import DatabaseUnreachable
from draftsman_bots.trello.usecases import label_jobs
from tests.bots.trello.inbound.conftest import TrelloBotHarness
from tests.factories import Factory
from tests.support.trello import FakeTrello


@pytest.mark.parametrize("over", [True, False])
async def test_a_label_that_a_crash_made_doubtful_is_not_taken_off_in_silence(
    bench: TrelloBotHarness,
    make: Factory,
    trello: FakeTrello,
    monkeypatch: pytest.MonkeyPatch,
    over: bool,
) -> None:
    """Nothing tells whether it is the same label: the job is not made twice, and the card says so.

    While the job lives no label makes another, and this one goes without a word.
    """

    async def crash(episode: object) -> bool:
        raise DatabaseUnreachable("cut short")

    card = bench.card(labels=[bench.label])
    with monkeypatch.context() as broken:
        broken.setattr(bench.rt.boards, "end_swapped_episode", crash)
        with pytest.raises(DatabaseUnreachable):
            await bench.poll()
    assert bench.labels(card) == ["draftsman: queued"]
    if over:
        await bench.rt.settlement.outcome(await make.running(1), Done({}))
    trello.add_label(card, bench.label)
    await bench.poll()
    assert bench.labels(card) == ["draftsman: queued"]
    assert await bench.keys() == [bench.key(card)]
    told = [one for one in await bench.told(card) if "was removed from this card" in one]
    assert len(told) == over
    trello.add_label(card, bench.label)
    await bench.poll()
    assert await bench.keys() == [bench.key(card), *([bench.key(card, 2)] if over else [])]


async def test_two_who_swap_at_once_leave_the_next_label_on(
    bench: TrelloBotHarness, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The webhook's and the poller's: who comes second finds that it is done."""
    card = bench.card(labels=[bench.label])
    [config] = await bench.rt.boards.all()
    [episode] = await label_jobs.check_card(bench.desk, config, card)
    begun, go = asyncio.Event(), asyncio.Event()
    write, removed = bench.desk.trello.write, []

    async def slowly(method: Any, label: Any) -> Any:
        if method.__name__ == "remove_label":
            removed.append(label)
            begun.set()
            await go.wait()
        return await write(method, label)

    monkeypatch.setattr(bench.desk.trello, "write", slowly)
    first = asyncio.create_task(label_jobs.process_episode(bench.desk, config, episode))
    await begun.wait()
    second = asyncio.create_task(label_jobs.process_episode(bench.desk, config, episode))
    go.set()
    await first
    trello.add_label(card, bench.label)
    await second
    assert len(removed) == 1
    assert bench.labels(card) == ["draftsman", "draftsman: queued"]
    await bench.poll()
    [said] = await bench.told(card)
    assert "D-1 is still queued. A card can have only one job at a time" in said
    assert await bench.keys() == [bench.key(card)]
