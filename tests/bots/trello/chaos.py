"""Chaos board: a fake Trello with seeded random faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from draftsman_bots.trello.deliveries.markdown import marker_of
from draftsman_testing.trello import FakeTrello, Fault, Limits
from tests.core.deliveries.outbox.chaos import VisibleMessage

RATES: Final = {
    Fault.RATE_LIMIT: 0.02,
    Fault.DROP_BEFORE: 0.05,
    Fault.DROP_AFTER: 0.1,
    Fault.HTML_503: 0.05,
    Fault.HTML_AFTER: 0.05,
    Fault.HTML_200: 0.04,
    Fault.CUT_AFTER: 0.04,
    Fault.CREATED_201: 0.04,
}
SHORT: Final = Limits(key=300, token=100, window=0.2, told=True)
"""Trello's limits, fifty times as fast."""


class TrelloBackend:
    """A board whose server fails; each card is the target of a single job."""

    def __init__(self, seed: int) -> None:
        self.known = {fault.name for fault in RATES}
        self.fault_counts: Counter[str] = Counter()
        self._trello = FakeTrello(SHORT)
        self._seed = seed
        self._cards: list[str] = []

    async def open(self, stack: AsyncExitStack) -> Sequence[str]:
        """Start the server."""
        trello = await stack.enter_async_context(self._trello)
        self._board = trello.board("Work")
        self._list = trello.list(self._board, "To do")
        trello.faults.random(self._seed, RATES)
        self.fault_counts = trello.faults.seen
        return "tests.bots.trello.dispatch", trello.api_url, trello.key, trello.token

    def target(self, n: int) -> str:
        """Return a new card."""
        self._cards.append(self._trello.card(self._board, self._list, f"card {n}"))
        return f"trello:{self._cards[-1]}"

    async def reach(self, count: int) -> None:
        """Wait until there are this many comments."""
        while len(self.seen()) < count:
            await self._trello.wait_for_call()

    def seen(self) -> list[VisibleMessage]:
        """Return the comments of every card."""
        return [
            VisibleMessage(card, marker_of(comment.text) or "", comment.text)
            for card in self._cards
            for comment in self._trello.comments(card)
        ]
