"""Labels on cards: each appearance is an episode, however many processes observe it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest

from draftsman.errors import NotFound, NotPermitted
from draftsman.ids import new_id
from draftsman.jobs.job import Mode
from draftsman.runtime import Runtime
from draftsman_bots.trello.records.board import (
    BoardConfig,
    Episode,
    EpisodeStage,
    LabelRule,
    LabelSighting,
)
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.people import People

BOARD, CARD, LABEL, OTHER = (sign * 24 for sign in "bcad")
CONFIG: Final = BoardConfig(
    board_id=BOARD,
    name="Work",
    labels={LABEL: LabelRule(name="do", mode=Mode.INVESTIGATE, agent="tidy")},
    ignored_list_ids=(OTHER,),
    transition_rules={"failed": OTHER},
)


async def observe(rt: Runtime, present: bool = True) -> Episode | None:
    """Poll, and record the labels."""
    began = await boards_of(rt).clock()
    return await boards_of(rt).observe(CARD, LABEL, BOARD, present=present, began=began)


async def test_a_board_is_stored_unchanged(rt: Runtime, people: People) -> None:
    await boards_of(rt).save(CONFIG, people.olga)
    assert await boards_of(rt).of(BOARD) == CONFIG
    changed = CONFIG.model_copy(update={"name": "Play", "queued_label_id": OTHER})
    await boards_of(rt).save(changed, people.olga)
    assert await boards_of(rt).all() == [changed]
    assert await boards_of(rt).webhook(BOARD, "e" * 24)
    assert not await boards_of(rt).webhook(BOARD, "e" * 24)
    await boards_of(rt).remove(BOARD, people.olga)
    assert await boards_of(rt).of(BOARD) is None
    with pytest.raises(NotFound, match="is not watched"):
        await boards_of(rt).remove(BOARD, people.olga)


async def test_only_operators_can_change_boards(rt: Runtime, people: People) -> None:
    with pytest.raises(NotPermitted, match="needs the role operator"):
        await boards_of(rt).save(CONFIG, people.anna)
    await boards_of(rt).save(CONFIG, people.olga)
    with pytest.raises(NotPermitted):
        await boards_of(rt).remove(BOARD, people.anna)


async def test_an_episode_begins_when_a_label_is_seen_after_it_was_seen_absent(
    rt: Runtime,
) -> None:
    first = await observe(rt)
    assert first is not None
    assert (first.episode, first.stage) == (1, EpisodeStage.PENDING)
    assert first.key == f"trello:lbl:{CARD}:{LABEL}:1"
    assert await observe(rt) is None
    await observe(rt, present=False)
    await observe(rt, present=False)
    second = await observe(rt)
    assert second is not None
    assert second.episode == 2
    assert await boards_of(rt).present(BOARD) == {(CARD, LABEL)}
    assert await boards_of(rt).due(BOARD) == await boards_of(rt).due_on(CARD) == [second]


async def test_a_later_observation_wins(rt: Runtime) -> None:
    """A poll that began before a label was added and ended after it did not see the label."""
    early = await boards_of(rt).clock()
    assert await observe(rt) is not None
    assert await boards_of(rt).end_episodes([LabelSighting(CARD, LABEL)], early) == 0
    before = await boards_of(rt).clock()
    await observe(rt, present=False)
    assert await boards_of(rt).begin_episodes(BOARD, [LabelSighting(CARD, LABEL)], before) == []
    assert await boards_of(rt).present(BOARD) == set()


async def test_an_action_of_the_past_counts_without_a_newer_observation(rt: Runtime) -> None:
    began = await boards_of(rt).clock()
    at = began + timedelta(seconds=30)
    await boards_of(rt).begin_episodes(BOARD, [LabelSighting(CARD, LABEL, at)], began)
    assert not await boards_of(rt).end_removed_episode(CARD, LABEL, at)
    assert not await boards_of(rt).end_removed_episode(CARD, LABEL, began)
    assert await boards_of(rt).end_removed_episode(CARD, LABEL, at + timedelta(milliseconds=1))
    second_episode = await observe(rt)
    assert second_episode is not None
    assert second_episode.episode == 2


async def test_labels_before_the_first_poll_create_no_job(rt: Runtime, people: People) -> None:
    await boards_of(rt).save(CONFIG, people.olga)
    assert await boards_of(rt).cursor(BOARD) is None
    now = await boards_of(rt).clock()
    sightings = [LabelSighting(CARD, LABEL)]
    assert await boards_of(rt).baseline(BOARD, sightings, now, now)
    assert not await boards_of(rt).baseline(BOARD, sightings, now, now)
    assert (await boards_of(rt).due(BOARD), await observe(rt)) == ([], None)
    await observe(rt, present=False)
    first = await observe(rt)
    assert first is not None
    assert first.episode == 1


async def test_a_cursor_never_moves_back(rt: Runtime, people: People) -> None:
    await boards_of(rt).save(CONFIG, people.olga)
    now = await boards_of(rt).clock()
    await boards_of(rt).baseline(BOARD, [], now, now)
    later = now + timedelta(minutes=1)
    for until in (later, now, None):
        await boards_of(rt).advance(BOARD, until)
        cursor = await boards_of(rt).cursor(BOARD)
        assert cursor is not None
        assert cursor.actions_until == later
    await boards_of(rt).remove(BOARD, people.olga)
    assert await boards_of(rt).cursor(BOARD) is None


async def test_an_episode_is_settled_once_and_only_while_it_is_open(rt: Runtime) -> None:
    first = await observe(rt)
    assert first is not None
    assert await boards_of(rt).settle(first, EpisodeStage.SUBMITTED)
    [episode] = await boards_of(rt).due(BOARD)
    assert episode.stage is EpisodeStage.SUBMITTED
    assert await boards_of(rt).end_swapped_episode(first)
    assert not await boards_of(rt).end_swapped_episode(first)
    assert await boards_of(rt).due(BOARD) == []
    second = await observe(rt)
    assert second is not None
    assert second.episode == 2
    assert not await boards_of(rt).settle(first, EpisodeStage.DONE)
    assert not await boards_of(rt).end_swapped_episode(first)


async def test_a_label_removed_in_time_creates_no_job(rt: Runtime) -> None:
    first = await observe(rt)
    assert first is not None
    await observe(rt, present=False)
    assert await boards_of(rt).due(BOARD) == []
    assert not await boards_of(rt).settle(first, EpisodeStage.SUBMITTED)


async def test_a_thousand_labels_are_recorded_at_once(rt: Runtime) -> None:
    sightings = [LabelSighting(f"{number:024x}", LABEL) for number in range(1200)]
    episodes = await boards_of(rt).begin_episodes(
        BOARD, [*sightings, *sightings], await boards_of(rt).clock()
    )
    assert len(episodes) == len(await boards_of(rt).present(BOARD)) == 1200
    assert await boards_of(rt).end_episodes(sightings, await boards_of(rt).clock()) == 1200
    assert await boards_of(rt).present_on([sightings[0].card]) == set()


async def test_one_process_has_the_pollers_lease(rt: Runtime) -> None:
    anna = new_id()
    ben = new_id()
    term = await boards_of(rt).acquire(anna, 60)
    assert term is not None
    assert await boards_of(rt).acquire(ben, 60) is None
    assert await boards_of(rt).renew(anna, term, 60)
    await boards_of(rt).resign(anna, term)
    assert not await boards_of(rt).renew(anna, term, 60)
    assert await boards_of(rt).acquire(ben, 60) is not None
