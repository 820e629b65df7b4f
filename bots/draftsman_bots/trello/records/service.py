"""Trello boards, their labels, and the checklists and due dates of cards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.database.database import Connection, Database, on_connection
from draftsman.errors import CommandHint, NotFound
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.worker.registry.service import NamedLease
from draftsman_bots.trello.records import store
from draftsman_bots.trello.records.board import (
    BoardConfig,
    Episode,
    LabelSighting,
)
from draftsman_bots.trello.records.cards import CardDueDate

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

BATCH_SIZE: Final = 500
"""Labels in one statement."""
_Work = Callable[[Connection], Awaitable[int]]


class TrelloBoards(NamedLease):
    """Watched boards, their label episodes, and the lease of the poller."""

    lease_name = "trello"

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy
        self.cards = TrelloCards(db)

    all = on_connection(store.boards)
    of = on_connection(store.board)

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

    webhook = on_connection(store.webhook)
    clock = on_connection(store.clock)
    """The database's time, to be read before a poll: newer observations take precedence over it."""

    present = on_connection(store.present)
    present_on = on_connection(store.present_on)

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

    name_member = on_connection(store.name_member)

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

    end_removed_episode = on_connection(store.end_removed_episode)

    async def baseline(
        self, board: str, sightings: Sequence[LabelSighting], began: datetime, until: datetime
    ) -> bool:
        """Start to read a board without jobs for its current labels; False where it has started."""
        return await self._db.run_transaction(
            lambda conn: store.baseline(conn, board, sightings, began, until)
        )

    cursor = on_connection(store.cursor)
    advance = on_connection(store.advance)
    due = on_connection(store.due)
    due_on = on_connection(store.due_on)
    settle = on_connection(store.settle)
    end_swapped_episode = on_connection(store.end_swapped_episode)


def boards_of(rt: Runtime) -> TrelloBoards:
    """Return the boards of a process."""
    return TrelloBoards(rt.db, rt.policy)


def _batches(sightings: Sequence[LabelSighting]) -> list[Sequence[LabelSighting]]:
    ordered = sorted(set(sightings), key=lambda sighting: (sighting.card, sighting.label))
    return [ordered[start : start + BATCH_SIZE] for start in range(0, len(ordered), BATCH_SIZE)]


def _end_batch(sightings: Sequence[LabelSighting], began: datetime) -> _Work:
    return lambda conn: store.end_episodes(conn, sightings, began)


class TrelloCards:
    """Checklists and due dates of cards, stored so that any process can continue a change."""

    def __init__(self, db: Database) -> None:
        self._db = db

    checklist = on_connection(store.checklist)
    find_checklist = on_connection(store.find_checklist)
    save_checklist = on_connection(store.save_checklist)
    close_checklist = on_connection(store.close_checklist)
    expiring = on_connection(store.expiring)
    due_date = on_connection(store.due_date)
    stale_due_dates = on_connection(store.stale_due_dates)

    async def change_due_date(self, old: CardDueDate | None, new: CardDueDate) -> bool:
        """Store a due date; False where another process changed it since `old` was read."""
        async with self._db.connection() as conn:
            if old is None:
                return await store.add_due_date(conn, new)
            return await store.change_due_date(conn, old, new)

    remove_due_date = on_connection(store.remove_due_date)
