"""Watched Trello boards and the label episodes of their cards."""

from __future__ import annotations

from collections.abc import Sequence
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
from draftsman.trello.board import (
    BoardConfig,
    BoardCursor,
    Episode,
    EpisodeStage,
    LabelSighting,
)

_Q = load("trello_boards")
MAX_BOARDS: Final = 1000
"""Maximum number of boards listed."""


async def listed(conn: Connection) -> list[BoardConfig]:
    """Return the watched boards, by name."""
    return await fetch_all(conn, _Q["listed"], {"limit": MAX_BOARDS}, BoardConfig)


async def of(conn: Connection, board: str) -> BoardConfig | None:
    """Return a board, None where it is not watched."""
    return await fetch_one(conn, _Q["of"], {"board": board}, BoardConfig)


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
    return await fetch_all(conn, _Q["begin_episodes"], params, Episode)


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
