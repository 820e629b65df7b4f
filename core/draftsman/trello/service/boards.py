"""Trello boards: labels on cards become episodes, each of which creates at most one job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from draftsman.database.database import Connection, Database
from draftsman.errors import CommandHint, NotFound
from draftsman.jobs.runs.store import checkpoints
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.trello.board import (
    BoardConfig,
    BoardCursor,
    Episode,
    EpisodeStage,
    LabelSighting,
)
from draftsman.trello.service.cards import TrelloCards
from draftsman.trello.store import boards as store
from draftsman.worker.registry import store as workers

POLLER: Final = "trello"
"""Name of the lease under which boards are polled."""
BATCH_SIZE: Final = 500
"""Labels in one statement."""
_Work = Callable[[Connection], Awaitable[int]]


class TrelloBoards:
    """Watched boards, their label episodes, and the lease of the poller."""

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy
        self.cards = TrelloCards(db)

    async def all(self) -> list[BoardConfig]:
        """Return the watched boards, by name."""
        async with self._db.connection() as conn:
            return await store.listed(conn)

    async def of(self, board: str) -> BoardConfig | None:
        """Return a board, None where it is not watched."""
        async with self._db.connection() as conn:
            return await store.of(conn, board)

    async def save(self, config: BoardConfig, actor: Actor) -> None:
        """Watch a board, or change its configuration; raises NotPermitted."""
        self._policy.check(self._policy.resolve(actor), Verb.BOARDS)
        async with self._db.connection() as conn:
            await store.save(conn, config)

    async def remove(self, board: str, actor: Actor) -> None:
        """Stop watching a board; raises NotFound, NotPermitted."""
        self._policy.check(self._policy.resolve(actor), Verb.BOARDS)
        async with self._db.connection() as conn:
            if not await store.remove(conn, board):
                raise NotFound(f"board {board!r} is not watched", hint=CommandHint("boards"))

    async def webhook(self, board: str, webhook: str | None) -> bool:
        """Store the webhook id of a board; False where it is unchanged or unwatched."""
        async with self._db.connection() as conn:
            return await store.webhook(conn, board, webhook)

    async def clock(self) -> datetime:
        """Return the database's time, to be read before a poll of Trello.

        Newer observations of other processes take precedence over the poll.
        """
        async with self._db.connection() as conn:
            return await checkpoints.now(conn)

    async def present(self, board: str) -> set[tuple[str, str]]:
        """Return (card, label) of the labels present on a board."""
        async with self._db.connection() as conn:
            return await store.present(conn, board)

    async def present_on(self, cards: Sequence[str]) -> set[tuple[str, str]]:
        """Return (card, label) of the labels present on these cards, on any board."""
        async with self._db.connection() as conn:
            return await store.present_on(conn, cards)

    async def begin_episodes(
        self, board: str, sightings: Sequence[LabelSighting], began: datetime
    ) -> list[Episode]:
        """Record that labels are present; return the episodes that begin.

        `began` is `clock()` before the poll. Labels that were present before begin no episode, and
        labels observed after `began` are left to the next poll.
        """
        episodes: list[Episode] = []
        for batch in _batches(sightings):
            async with self._db.connection() as conn:
                episodes += await store.begin_episodes(conn, board, batch, began)
        return episodes

    async def end_episodes(self, sightings: Sequence[LabelSighting], began: datetime) -> int:
        """Record that labels are absent; return the number of episodes that end."""
        count = 0
        for batch in _batches(sightings):
            count += await self._db.run_transaction(_end_batch(batch, began))
        return count

    async def observe(
        self, card: str, label: str, board: str, *, present: bool, began: datetime
    ) -> Episode | None:
        """Record the state of a label; return the episode that begins, if any."""
        sightings = [LabelSighting(card, label)]
        if not present:
            await self.end_episodes(sightings, began)
            return None
        episodes = await self.begin_episodes(board, sightings, began)
        return episodes[0] if episodes else None

    async def end_removed_episode(self, card: str, label: str, at: datetime) -> bool:
        """End an episode that a Trello action ended; False where newer observations exist.

        The label may be present again: only a poll shows the current state.
        """
        async with self._db.connection() as conn:
            return await store.end_removed_episode(conn, card, label, at)

    async def baseline(
        self, board: str, sightings: Sequence[LabelSighting], began: datetime, until: datetime
    ) -> bool:
        """Start to read a board without jobs for its current labels; False where it has started."""
        return await self._db.run_transaction(
            lambda conn: store.baseline(conn, board, sightings, began, until)
        )

    async def cursor(self, board: str) -> BoardCursor | None:
        """Return the read position of a board, None before the first poll."""
        async with self._db.connection() as conn:
            return await store.cursor(conn, board)

    async def advance(self, board: str, until: datetime | None = None) -> None:
        """Record a poll of a board, and the time up to which its actions were read."""
        async with self._db.connection() as conn:
            await store.advance(conn, board, until)

    async def due(self, board: str, limit: int = 50) -> list[Episode]:
        """Return the unfinished episodes of a board, oldest first."""
        async with self._db.connection() as conn:
            return await store.due(conn, board, limit)

    async def due_on(self, card: str) -> list[Episode]:
        """Return the unfinished episodes of a card."""
        async with self._db.connection() as conn:
            return await store.due_on(conn, card)

    async def settle(self, episode: Episode, stage: EpisodeStage, job: int | None = None) -> bool:
        """Record the stage of an episode; False where it has ended."""
        async with self._db.connection() as conn:
            return await store.settle(conn, episode, stage, job)

    async def end_swapped_episode(self, episode: Episode) -> bool:
        """End an episode whose label draftsman removed; False where it had ended."""
        async with self._db.connection() as conn:
            return await store.end_swapped_episode(conn, episode)

    async def acquire(self, owner: UUID, seconds: float, lock: int | None = None) -> int | None:
        """Acquire the poller's lease; return its term, None where it is held.

        `lock` is the number of this process's session lock: the lease ends with it.
        """
        async with self._db.connection() as conn:
            return await workers.acquire(conn, POLLER, owner, seconds, lock_id=lock)

    async def renew(self, owner: UUID, term: int, seconds: float, lock: int | None = None) -> bool:
        """Renew the lease of this term; False when it has expired."""
        async with self._db.connection() as conn:
            return await workers.renew(
                conn, POLLER, owner=owner, term=term, ttl=seconds, lock_id=lock
            )

    async def resign(self, owner: UUID, term: int) -> None:
        """Release the lease."""
        async with self._db.connection() as conn:
            await workers.resign(conn, POLLER, owner, term)


def _batches(sightings: Sequence[LabelSighting]) -> list[Sequence[LabelSighting]]:
    ordered = sorted(set(sightings), key=lambda sighting: (sighting.card, sighting.label))
    return [ordered[start : start + BATCH_SIZE] for start in range(0, len(ordered), BATCH_SIZE)]


def _end_batch(sightings: Sequence[LabelSighting], began: datetime) -> _Work:
    return lambda conn: store.end_episodes(conn, sightings, began)
