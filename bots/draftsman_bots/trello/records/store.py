"""Boards, their labels, and checklists and due dates of cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from psycopg.types.json import Jsonb

from draftsman.database.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    rows,
    scalar,
)
from draftsman.database.named_queries import load
from draftsman_bots.trello.records.board import (
    BoardConfig,
    BoardCursor,
    Episode,
    EpisodeStage,
    LabelSighting,
)
from draftsman_bots.trello.records.cards import CardChecklist, CardDueDate, ExpiringQuestion

_Q = load(__name__)

MAX_BOARDS: Final = 1000
"""Maximum number of boards listed."""


async def clock(conn: Connection) -> datetime:
    """Return the database's time."""
    return await scalar(conn, _Q["clock"])  # type: ignore[no-any-return]


async def boards(conn: Connection) -> list[BoardConfig]:
    """Return the watched boards, by name."""
    return await fetch_all(conn, _Q["boards"], {"limit": MAX_BOARDS}, BoardConfig)


async def board(conn: Connection, board: str) -> BoardConfig | None:
    """Return a board, None where it is not watched."""
    return await fetch_one(conn, _Q["board"], {"board": board}, BoardConfig)


async def save(conn: Connection, config: BoardConfig) -> None:
    """Insert or replace a board."""
    params = config.model_dump(mode="json")
    for name in ("labels", "transition_rules", "custom_fields"):
        params[name] = Jsonb(params[name])
    await execute(conn, _Q["save"], params)


async def remove(conn: Connection, board: str) -> bool:
    """Delete a board; False where it does not exist."""
    return await execute(conn, _Q["remove"], {"board": board}) > 0


async def webhook(conn: Connection, board: str, webhook: str | None) -> bool:
    """Store the webhook id of a board; False where it is unchanged or unwatched."""
    return await execute(conn, _Q["webhook"], {"board": board, "webhook": webhook}) > 0


async def present(conn: Connection, board: str) -> set[tuple[str, str]]:
    """Return (card, label) of the labels present on a board."""
    return {(row[0], row[1]) for row in await rows(conn, _Q["present"], {"board": board})}


async def present_on(conn: Connection, cards: Sequence[str]) -> set[tuple[str, str]]:
    """Return (card, label) of the labels present on these cards, on any board."""
    records = await rows(conn, _Q["present_on"], {"cards": list(cards)})
    return {(row[0], row[1]) for row in records}


async def begin_episodes(
    conn: Connection, board: str, sightings: Sequence[LabelSighting], began: datetime
) -> list[Episode]:
    """Begin episodes of present labels; return those that began."""
    params = _arrays(sightings) | {"board": board, "began": began}
    params["bys"] = [sighting.by or None for sighting in sightings]
    return await fetch_all(conn, _Q["begin_episodes"], params, Episode)


async def name_member(conn: Connection, card: str, label: str, member: str) -> Episode | None:
    """Record who added a label; None where its episode has a member, or is none."""
    params = {"card": card, "label": label, "member": member}
    return await fetch_one(conn, _Q["name_member"], params, Episode)


async def end_episodes(
    conn: Connection, sightings: Sequence[LabelSighting], began: datetime
) -> int:
    """End the episodes of absent labels; return their number."""
    return await execute(conn, _Q["end_episodes"], _arrays(sightings) | {"began": began})


async def end_removed_episode(conn: Connection, card: str, label: str, at: datetime) -> bool:
    """End an episode that a Trello action ended; False where newer observations exist.

    The label may be present again: only a poll shows the current state.
    """
    params = {"card": card, "label": label, "at": at}
    return await execute(conn, _Q["end_removed_episode"], params) > 0


async def baseline(
    conn: Connection,
    board: str,
    sightings: Sequence[LabelSighting],
    began: datetime,
    until: datetime,
) -> bool:
    """Start to read a board; False where it has started."""
    params = _arrays(sightings) | {"board": board, "began": began, "until": until}
    return bool(await scalar(conn, _Q["baseline"], params))


async def cursor(conn: Connection, board: str) -> BoardCursor | None:
    """Return the read position of a board, None before the first poll."""
    return await fetch_one(conn, _Q["cursor"], {"board": board}, BoardCursor)


async def advance(conn: Connection, board: str, until: datetime | None = None) -> bool:
    """Record a poll of a board, and the time up to which its actions were read."""
    return await execute(conn, _Q["advance"], {"board": board, "until": until}) > 0


async def due(conn: Connection, board: str, limit: int = 50) -> list[Episode]:
    """Return the unfinished episodes of a board, oldest first."""
    return await fetch_all(conn, _Q["due"], {"board": board, "limit": limit}, Episode)


async def due_on(conn: Connection, card: str) -> list[Episode]:
    """Return the unfinished episodes of a card."""
    return await fetch_all(conn, _Q["due_on"], {"card": card}, Episode)


async def settle(
    conn: Connection, episode: Episode, stage: EpisodeStage, job: int | None = None
) -> bool:
    """Record the stage of an episode; False where it has ended."""
    params = _key_params(episode) | {"stage": stage, "job": job}
    return await execute(conn, _Q["settle"], params) > 0


async def end_swapped_episode(conn: Connection, episode: Episode) -> bool:
    """End an episode whose label draftsman removed; False where it had ended."""
    return await execute(conn, _Q["end_swapped_episode"], _key_params(episode)) > 0


def _key_params(episode: Episode) -> dict[str, Any]:
    return {"card": episode.card, "label": episode.label, "episode": episode.episode}


def _arrays(sightings: Sequence[LabelSighting]) -> dict[str, Any]:
    return {
        "cards": [sighting.card for sighting in sightings],
        "labels": [sighting.label for sighting in sightings],
        "ats": [sighting.at for sighting in sightings],
    }


# Checklists and due dates of cards.


MAX_JOBS: Final = 100
"""Jobs of a card whose questions are read."""


async def checklist(conn: Connection, card: str, job: int, question: int) -> CardChecklist | None:
    """Return the checklist of a question on a card."""
    params = {"card": card, "job": job, "question": question}
    return await fetch_one(conn, _Q["checklist"], params, CardChecklist)


async def find_checklist(conn: Connection, checklist: str) -> CardChecklist | None:
    """Return a checklist of a question by its id in Trello."""
    return await fetch_one(conn, _Q["find_checklist"], {"checklist": checklist}, CardChecklist)


async def save_checklist(conn: Connection, checklist: CardChecklist) -> bool:
    """Insert a checklist; False where the question has one on this card."""
    params = asdict(checklist) | {"items": Jsonb(checklist.items)}
    return await execute(conn, _Q["save_checklist"], params) > 0


async def close_checklist(conn: Connection, card: str, job: int, question: int) -> bool:
    """Record that a checklist takes no more answers; False where it was closed."""
    params = {"card": card, "job": job, "question": question}
    return await execute(conn, _Q["close_checklist"], params) > 0


async def expiring(conn: Connection, card: str) -> list[ExpiringQuestion]:
    """Return the open questions of a card that expire, the first to expire first."""
    params = {"card": card, "limit": MAX_JOBS}
    return await fetch_all(conn, _Q["expiring"], params, ExpiringQuestion)


async def due_date(conn: Connection, card: str) -> CardDueDate | None:
    """Return the due date that draftsman shows on a card."""
    return await fetch_one(conn, _Q["due_date"], {"card": card}, CardDueDate)


async def stale_due_dates(conn: Connection, board: str, limit: int = 20) -> list[str]:
    """Return the cards of a board whose due date is not the expiry of their questions."""
    params = {"board": board, "limit": limit}
    return [row[0] for row in await rows(conn, _Q["stale_due_dates"], params)]


async def add_due_date(conn: Connection, new: CardDueDate) -> bool:
    """Insert a due date; False where another process inserted it since it was read."""
    return await execute(conn, _Q["add_due_date"], asdict(new)) > 0


async def change_due_date(conn: Connection, old: CardDueDate, new: CardDueDate) -> bool:
    """Update a due date; False where another process changed it since it was read."""
    params = asdict(new) | {
        "old_shown": old.shown,
        "old_replaced": old.replaced,
        "old_changed": old.changed,
    }
    return await execute(conn, _Q["change_due_date"], params) > 0


async def remove_due_date(conn: Connection, old: CardDueDate) -> bool:
    """Forget a due date; False where another process changed it since `old` was read."""
    return await execute(conn, _Q["remove_due_date"], asdict(old)) > 0


async def digest_cards(conn: Connection, jobs: Sequence[int]) -> dict[int, str]:
    """Return the card for digests of these jobs, of those that have any."""
    return dict(await rows(conn, _Q["digest_cards"], {"jobs": list(jobs)}))
