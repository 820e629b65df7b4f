"""label -> episode. Whoever sees a label, and however often: one episode, one job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from draftsman.domain.people.actor import Actor
from draftsman.domain.people.policy import Policy, Verb
from draftsman.domain.trello.board import (
    BoardConfig,
    BoardCursor,
    Episode,
    EpisodeStage,
    LabelSighting,
)
from draftsman.errors import CommandHint, NotFound
from draftsman.store import checkpoints, workers
from draftsman.store import trello_boards as store
from draftsman.store.postgres.database import Connection, Database

POLLER: Final = "trello"
"""The lease under which boards are polled."""
BATCH_SIZE: Final = 500
"""Labels that one statement tells of."""
_Work = Callable[[Connection], Awaitable[int]]


class TrelloBoards:
    """Keeps which boards are watched, what was seen there, and who looks."""

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy

    async def all(self) -> list[BoardConfig]:
        """Return the boards that are watched, by name."""
        async with self._db.connection() as conn:
            return await store.listed(conn)

    async def of(self, board: str) -> BoardConfig | None:
        """Return one board, None where it is not watched."""
        async with self._db.connection() as conn:
            return await store.of(conn, board)

    async def save(self, config: BoardConfig, actor: Actor) -> None:
        """Watch a board, or change how; raises NotPermitted."""
        self._policy.check(self._policy.resolve(actor), Verb.BOARDS)
        async with self._db.connection() as conn:
            await store.save(conn, config)

    async def remove(self, board: str, actor: Actor) -> None:
        """Watch a board no more; raises NotFound, NotPermitted."""
        self._policy.check(self._policy.resolve(actor), Verb.BOARDS)
        async with self._db.connection() as conn:
            if not await store.remove(conn, board):
                raise NotFound(f"board {board!r} is not watched", hint=CommandHint("boards"))

    async def webhook(self, board: str, webhook: str | None) -> bool:
        """Note which webhook tells of a board; False where that is known, or it is not watched."""
        async with self._db.connection() as conn:
            return await store.webhook(conn, board, webhook)

    async def clock(self) -> datetime:
        """Return the time before a look at Trello: what others saw later than that stands."""
        async with self._db.connection() as conn:
            return await checkpoints.now(conn)

    async def present(self, board: str) -> set[tuple[str, str]]:
        """Return card and label of what was there on a board."""
        async with self._db.connection() as conn:
            return await store.present(conn, board)

    async def present_on(self, cards: Sequence[str]) -> set[tuple[str, str]]:
        """Return card and label of what was there on these cards, on whichever board."""
        async with self._db.connection() as conn:
            return await store.present_on(conn, cards)

    async def begin_episodes(
        self, board: str, seen: Sequence[LabelSighting], began: datetime
    ) -> list[Episode]:
        """Take note of labels that are there; return the episodes that begin with it.

        `began` is `clock()` before the look. A label that was there before begins none, nor does
        one of which somebody learned after `began`: the next look tells.
        """
        found: list[Episode] = []
        for some in _some(seen):
            async with self._db.connection() as conn:
                found += await store.begin_episodes(conn, board, some, began)
        return found

    async def end_episodes(self, seen: Sequence[LabelSighting], began: datetime) -> int:
        """Take note of labels that are not there; return how many episodes end with it."""
        count = 0
        for some in _some(seen):
            count += await self._db.run_transaction(_vanish(some, began))
        return count

    async def observe(
        self, card: str, label: str, board: str, *, present: bool, began: datetime
    ) -> Episode | None:
        """Take note of one label; return the episode that begins with it, if one does."""
        seen = [LabelSighting(card, label)]
        if not present:
            await self.end_episodes(seen, began)
            return None
        begun = await self.begin_episodes(board, seen, began)
        return begun[0] if begun else None

    async def end_removed_episode(self, card: str, label: str, at: datetime) -> bool:
        """Take Trello's word that a label was taken off then; False where newer things are known.

        It may be there again: what is there now, a look tells.
        """
        async with self._db.connection() as conn:
            return await store.end_removed_episode(conn, card, label, at)

    async def baseline(
        self, board: str, seen: Sequence[LabelSighting], began: datetime, until: datetime
    ) -> bool:
        """Begin to read a board, whose labels so far make no jobs; False where it has begun."""
        return await self._db.run_transaction(
            lambda conn: store.baseline(conn, board, seen, began, until)
        )

    async def cursor(self, board: str) -> BoardCursor | None:
        """Return how far a board was read, None before the first look."""
        async with self._db.connection() as conn:
            return await store.cursor(conn, board)

    async def advance(self, board: str, until: datetime | None = None) -> None:
        """Note that a board was looked at, and its actions read up to there."""
        async with self._db.connection() as conn:
            await store.advance(conn, board, until)

    async def due(self, board: str, limit: int = 50) -> list[Episode]:
        """Return the episodes of a board with which something is to be done, the oldest first."""
        async with self._db.connection() as conn:
            return await store.due(conn, board, limit)

    async def due_on(self, card: str) -> list[Episode]:
        """Return the episodes of a card with which something is to be done."""
        async with self._db.connection() as conn:
            return await store.due_on(conn, card)

    async def settle(self, episode: Episode, stage: EpisodeStage, job: int | None = None) -> bool:
        """Note what became of an episode; False where it ended meanwhile."""
        async with self._db.connection() as conn:
            return await store.settle(conn, episode, stage, job)

    async def end_swapped_episode(self, episode: Episode) -> bool:
        """Note that we took the label off; False where the episode ended before."""
        async with self._db.connection() as conn:
            return await store.end_swapped_episode(conn, episode)

    async def acquire(self, owner: UUID, seconds: float, lock: int | None = None) -> int | None:
        """Take the poller's lease where it is free; return its term, None where it is held.

        `lock` is the number of the session lock of this process: the lease is free with that.
        """
        async with self._db.connection() as conn:
            return await workers.acquire(conn, POLLER, owner, seconds, lock_id=lock)

    async def renew(self, owner: UUID, term: int, seconds: float, lock: int | None = None) -> bool:
        """Lengthen the lease of this term; False when it is over."""
        async with self._db.connection() as conn:
            return await workers.renew(conn, POLLER, owner, term, seconds, lock)

    async def resign(self, owner: UUID, term: int) -> None:
        """Give the lease back."""
        async with self._db.connection() as conn:
            await workers.resign(conn, POLLER, owner, term)


def _some(seen: Sequence[LabelSighting]) -> list[Sequence[LabelSighting]]:
    ordered = sorted(set(seen), key=lambda one: (one.card, one.label))
    return [ordered[at : at + BATCH_SIZE] for at in range(0, len(ordered), BATCH_SIZE)]


def _vanish(seen: Sequence[LabelSighting], began: datetime) -> _Work:
    return lambda conn: store.end_episodes(conn, seen, began)
