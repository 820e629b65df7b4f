"""Polling: existing labels, actions between polls, and boards with many cards."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.database.database import Connection
from draftsman.errors import ConfigError
from draftsman.processes.lifecycle import StopSignal
from draftsman_bots.trello import identity
from draftsman_bots.trello.boards.poller import BoardSync, Poller
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests import label_jobs
from draftsman_bots.trello.transport.api_errors import PAUSES
from draftsman_testing.trello import FakeTrello, Fault
from draftsman_testing.waits import background, until
from tests.bots.trello.inbound.conftest import TrelloBotHarness, join
from tests.support.races import hold_commits


async def test_first_poll_ignores_existing_labels(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    board, _ = await _another(bench, trello)
    old = trello.card(board, trello.list(board, "Old"), "old", labels=[bench.label])
    await bench.poll()
    await bench.poll()
    assert await bench.jobs() == []
    trello.remove_label(old, bench.label)
    await bench.poll()
    trello.add_label(old, bench.label)
    await bench.poll()
    assert await bench.keys() == [bench.key(old)]


async def test_first_poll_takes_existing_labels_on_request(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    board, trello_list = await _another(bench, trello, include_existing=True)
    cards = [trello.card(board, trello_list, "old", labels=[bench.label]) for _ in range(2)]
    await bench.poll()
    assert await bench.keys() == sorted(map(bench.key, cards))


async def test_poll_after_downtime_catches_up(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    question = await bench.ask_question(asked := bench.card())
    trello.later(3 * 86_400)
    card = bench.card(labels=[bench.label])
    trello.comment(asked, bench.ben, "2")
    for number in range(1100):
        trello.comment(card, bench.mallory, f"talk {number}")
    bench.poller = Poller(bench.context, 15.0)
    await bench.poll()
    assert bench.key(card) in await bench.keys()
    assert (await bench.answer_state(question))[1] == "blue"


@pytest.mark.parametrize("at_once", [False, True])
async def test_more_than_1000_cards_are_paged(
    bench: TrelloBotHarness, trello: FakeTrello, at_once: bool
) -> None:
    if at_once:
        second = trello.list(bench.board, "Second")
        for number in range(1050):
            bench.card(f"card {number}", place=bench.todo if number % 2 else second)
    else:
        trello.cards(bench.board, bench.todo, 1050)
    await bench.poll()
    first = next(iter(trello.world.cards))
    trello.add_label(first, bench.label)
    await bench.poll()
    assert await bench.keys() == [bench.key(first)]


async def test_actions_in_the_same_second_are_read_once(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card()
    other = bench.card()
    first = await bench.ask_question(card)
    second = await bench.ask_question(other)
    trello.comment(card, bench.ben, "1")
    await bench.poll()
    trello.comment(other, bench.ben, "2")
    await bench.poll()
    assert [(await bench.answer_state(question))[1] for question in (first, second)] == [
        "red",
        "blue",
    ]
    bench.poller = Poller(bench.context, 15.0)
    await bench.poll()
    assert len(await bench.job_events(first, "answer_received")) == 1


async def test_unreadable_board_does_not_block_other_boards(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    config = await bench.watch()
    await _another(bench, trello)
    await boards_of(bench.rt).save(config, bench.people.olga)
    trello.faults.next("GET", "/boards/{id}/cards", Fault.HTML_503, times=2)
    await bench.poll()
    [problem] = bench.context.health.problems.values()
    assert "cannot be read" in problem
    reads = [call.url for call in trello.calls if call.path == "/boards/{id}/cards"]
    assert len({url.partition("/cards")[0] for url in reads}) == 2
    await bench.poll()
    assert bench.context.health.ready


async def test_a_board_that_meets_the_limit_each_time_leaves_out_no_other(
    bench: TrelloBotHarness, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = await bench.watch()
    await _another(bench, trello)
    await boards_of(bench.rt).save(config, bench.people.olga)
    boards = [board.board_id for board in await boards_of(bench.rt).all()]
    polled = []

    async def limited_at_first(self: Poller, board: BoardConfig) -> float:
        polled.append(board.board_id)
        return 60.0 if board.board_id == boards[0] else 0.0

    monkeypatch.setattr(Poller, "_poll", limited_at_first)
    assert [await bench.poller.poll_once() for _ in range(3)] == [60.0] * 3
    first, second = boards
    assert polled == [first, second, first, second, first]


async def test_rejected_token_stops_requests(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    trello.revoke()
    assert [await bench.poller.poll_once() for _ in PAUSES] == list(PAUSES)
    [problem] = bench.context.health.problems.values()
    assert "Trello rejected the bot's credentials" in problem
    trello.revoke(False)
    assert await bench.poller.poll_once() == 0
    assert bench.context.health.ready


async def test_one_process_polls_and_another_takes_over(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    first = Poller(bench.context, 0.05)
    second = Poller(bench.context, 0.05)

    async def holds(one: Poller) -> bool:
        term = await boards_of(bench.rt).acquire(one._owner, 1)
        return term is None

    async with background(first.run()) as one:
        await until(lambda: holds(first), "the lease")
        async with background(second.run()) as two:
            card = bench.card(labels=[bench.label])

            async def has_job() -> bool:
                return await bench.keys() == [bench.key(card)]

            await until(has_job, "the job")
            first.stop.set()
            await one
            other = bench.card(labels=[bench.label])

            async def both() -> bool:
                return await bench.keys() == sorted(map(bench.key, (card, other)))

            await until(both, "the job of the second poller")
            second.stop.set()
            await two


async def test_two_sessions_create_one_job_for_a_label(
    bench: TrelloBotHarness, conn: Connection
) -> None:
    """The first began the episode without a commit; the second waits and finds it."""
    card = bench.card(labels=[bench.label])
    [config] = await boards_of(bench.rt).all()
    began = await boards_of(bench.rt).clock()
    async with hold_commits(bench.rt) as first:
        seen = boards_of(first.rt).observe(
            card, bench.label, bench.board, present=True, began=began
        )
        async with first.doing(seen) as one:
            episodes = await first.then(label_jobs.check_card(bench.context, config, card), conn)
        assert (one.result() is not None, episodes) == (True, [])
    [episode] = await boards_of(bench.rt).due(bench.board)
    assert episode.episode == 1
    await asyncio.gather(
        label_jobs.process_episode(bench.context, config, episode),
        BoardSync(bench.context).continue_episodes(config),
    )
    assert await bench.keys() == [bench.key(card)]


async def test_token_of_a_linked_person_is_refused(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await identity.resolve_identity(bench.context, StopSignal())
    assert bench.context.health.ready
    await join(bench.rt, trello.bot_member, bench.people.carol)
    with pytest.raises(ConfigError, match="belongs to carol"):
        await identity.resolve_identity(bench.context, StopSignal())


async def _another(
    bench: TrelloBotHarness, trello: FakeTrello, **changes: object
) -> tuple[str, str]:
    """Watch another board, not polled yet; return it and a list of it."""
    board = trello.board("Another", [bench.anna])
    trello_list = trello.list(board, "To do")
    bench.label = trello.label(board, "draftsman")
    config = await bench.watch()
    fields = {"board_id": board, "name": "Another", "queued_label_id": None, **changes}
    await boards_of(bench.rt).save(config.model_copy(update=fields), bench.people.olga)
    await boards_of(bench.rt).remove(bench.board, bench.people.olga)
    return board, trello_list
