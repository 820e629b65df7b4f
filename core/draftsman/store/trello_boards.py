"""Rows of Trello's boards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from psycopg.types.json import Jsonb

from draftsman.domain.trello.board import (
    BoardConfig,
    BoardCursor,
    Episode,
    EpisodeStage,
    LabelSighting,
)
from draftsman.store.postgres.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    rows,
    scalar,
)
from draftsman.store.queries import load

_Q = load("trello_boards")
MAX_BOARDS: Final = 1000
"""Boards that are listed."""


async def listed(conn: Connection) -> list[BoardConfig]:
    """Return the boards that are watched, by name."""
    return await fetch_all(conn, _Q["listed"], {"limit": MAX_BOARDS}, BoardConfig)


async def of(conn: Connection, board: str) -> BoardConfig | None:
    """Return one board, None where it is not watched."""
    return await fetch_one(conn, _Q["of"], {"board": board}, BoardConfig)


async def save(conn: Connection, config: BoardConfig) -> None:
    """Insert or replace a board."""
    params = config.model_dump(mode="json")
    for name in ("labels", "transition_rules"):
        params[name] = Jsonb(params[name])
    await execute(conn, _Q["save"], params)


async def remove(conn: Connection, board: str) -> bool:
    """Delete a board; False where there is none."""
    return await execute(conn, _Q["remove"], {"board": board}) > 0


async def webhook(conn: Connection, board: str, webhook: str | None) -> bool:
    """Note which webhook tells of a board; False where that changes nothing."""
    return await execute(conn, _Q["webhook"], {"board": board, "webhook": webhook}) > 0


async def present(conn: Connection, board: str) -> set[tuple[str, str]]:
    """Return card and label of what was there on a board."""
    return {(row[0], row[1]) for row in await rows(conn, _Q["present"], {"board": board})}


async def present_on(conn: Connection, cards: Sequence[str]) -> set[tuple[str, str]]:
    """Return card and label of what was there on these cards."""
    found = await rows(conn, _Q["present_on"], {"cards": list(cards)})
    return {(row[0], row[1]) for row in found}


async def begin_episodes(
    conn: Connection, board: str, seen: Sequence[LabelSighting], began: datetime
) -> list[Episode]:
    """Begin the episodes of labels that are there now; return those that began."""
    params = _arrays(seen) | {"board": board, "began": began}
    return await fetch_all(conn, _Q["begin_episodes"], params, Episode)


async def end_episodes(conn: Connection, seen: Sequence[LabelSighting], began: datetime) -> int:
    """End the episodes of labels that are not there now; return how many."""
    return await execute(conn, _Q["end_episodes"], _arrays(seen) | {"began": began})


async def end_removed_episode(conn: Connection, card: str, label: str, at: datetime) -> bool:
    """End an episode that was there before Trello says that it ended."""
    params = {"card": card, "label": label, "at": at}
    return await execute(conn, _Q["end_removed_episode"], params) > 0


async def baseline(
    conn: Connection, board: str, seen: Sequence[LabelSighting], began: datetime, until: datetime
) -> bool:
    """Begin to read a board; False where that was done before."""
    params = _arrays(seen) | {"board": board, "began": began, "until": until}
    return bool(await scalar(conn, _Q["baseline"], params))


async def cursor(conn: Connection, board: str) -> BoardCursor | None:
    """Return how far a board was read, None before the first look."""
    return await fetch_one(conn, _Q["cursor"], {"board": board}, BoardCursor)


async def advance(conn: Connection, board: str, until: datetime | None) -> bool:
    """Note that a board was read up to there."""
    return await execute(conn, _Q["advance"], {"board": board, "until": until}) > 0


async def due(conn: Connection, board: str, limit: int) -> list[Episode]:
    """Return what is left to do on a board, the oldest first."""
    return await fetch_all(conn, _Q["due"], {"board": board, "limit": limit}, Episode)


async def due_on(conn: Connection, card: str) -> list[Episode]:
    """Return what is left to do on a card."""
    return await fetch_all(conn, _Q["due_on"], {"card": card}, Episode)


async def settle(conn: Connection, episode: Episode, stage: EpisodeStage, job: int | None) -> bool:
    """Note what became of an episode; False where it ended meanwhile."""
    params = _name(episode) | {"stage": stage, "job": job}
    return await execute(conn, _Q["settle"], params) > 0


async def end_swapped_episode(conn: Connection, episode: Episode) -> bool:
    """End an episode whose label we took off; False where it ended before."""
    return await execute(conn, _Q["end_swapped_episode"], _name(episode)) > 0


def _name(episode: Episode) -> dict[str, Any]:
    return {"card": episode.card, "label": episode.label, "episode": episode.episode}


def _arrays(seen: Sequence[LabelSighting]) -> dict[str, Any]:
    return {
        "cards": [one.card for one in seen],
        "labels": [one.label for one in seen],
        "ats": [one.at for one in seen],
    }
