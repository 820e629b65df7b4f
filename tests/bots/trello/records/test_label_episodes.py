"""Episodes compared with a model: any observations, at any delay, by any number of processes."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftsman.runtime import Runtime
from draftsman_bots.trello.records.board import Episode, EpisodeStage
from draftsman_bots.trello.records.service import boards_of

BOARD: Final = "b" * 24
CARDS: Final = count(1)
OPS: Final = ("there", "gone", "late there", "late gone", "off", "long off", "take", "swap")


class Model:
    """A label on a card: the expected episodes."""

    def __init__(self) -> None:
        self.there = False
        self.episode = 0
        self.taken = False

    def do(self, op: str) -> None:
        """Apply an observation or an action."""
        if op == "there" and not self.there:
            self.there = True
            self.episode = self.episode + 1
            self.taken = False
        elif op in ("gone", "off") or (op == "swap" and self.taken):
            self.there = False
        elif op == "take" and self.there:
            self.taken = True


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ops=st.lists(st.sampled_from(OPS), max_size=14))
async def test_an_episode_begins_only_after_a_recorded_absence(rt: Runtime, ops: list[str]) -> None:
    model = Model()
    card = f"{next(CARDS):024x}"
    label = "a" * 24
    episodes: list[Episode] = []
    start = await boards_of(rt).clock()
    for op in ops:
        model.do(op)
        await _apply(rt, op, card, label, start, episodes)
        present = (card, label) in await boards_of(rt).present_on([card])
        assert (present, len(episodes)) == (model.there, model.episode)
    assert [item.episode for item in episodes] == list(range(1, model.episode + 1))
    assert len({item.key for item in episodes}) == len(episodes)
    due = [(item.episode, item.stage) for item in await boards_of(rt).due_on(card)]
    stage = EpisodeStage.SUBMITTED if model.taken else EpisodeStage.PENDING
    assert due == ([(model.episode, stage)] if model.there else [])


async def _apply(
    rt: Runtime, op: str, card: str, label: str, start: datetime, episodes: list[Episode]
) -> None:
    """Take a step; a `late` poll began before the newer observations of others."""
    boards = boards_of(rt)
    match op.rsplit(" ", 1):
        case ["off"]:
            await boards.end_removed_episode(card, label, await boards.clock())
        case ["long", "off"]:
            await boards.end_removed_episode(card, label, start - timedelta(days=90))
        case ["take" | "swap"]:
            for episode in episodes[-1:]:
                if op == "take":
                    await boards.settle(episode, EpisodeStage.SUBMITTED)
                elif EpisodeStage.SUBMITTED in [item.stage for item in await boards.due_on(card)]:
                    await boards.end_swapped_episode(episode)
        case [*late, what]:
            began = start if late and episodes else await boards.clock()
            if late and not episodes:
                return
            observed = await boards.observe(
                card, label, BOARD, present=what == "there", began=began
            )
            episodes += [observed] if observed else []
