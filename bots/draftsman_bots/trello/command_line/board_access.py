"""Trello client and board lookup for commands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from draftsman.errors import ConfigError, DraftsmanError, Failure, NotFound, UsageError
from draftsman_bots.trello.command_line.board_rows import BOARDS
from draftsman_bots.trello.records.service import boards_of
from draftsman_tui.terminal.extras import of_channel, require

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.records.board import BoardConfig
    from draftsman_bots.trello.settings import TrelloSettings

NO_BOARDS = f"{BOARDS.empty}; {BOARDS.hint}"


class TrelloRefused(DraftsmanError):
    """Trello rejected the request."""


@asynccontextmanager
async def trello(rt: Runtime) -> AsyncIterator[BotContext]:
    """Open a Trello client; raises ConfigError without [trello], TrelloRefused for failures."""
    settings = configured(rt)
    require(of_channel("trello"))
    from draftsman_bots.trello.doctor import failure_line, open_context

    async with open_context(rt, settings) as context:
        try:
            yield context
        except Failure as error:
            raise TrelloRefused(failure_line(error, settings)) from None


def configured(rt: Runtime) -> TrelloSettings:
    """Return the [trello] settings; raises ConfigError if they are missing."""
    from draftsman_bots.trello.settings import TrelloSettings

    settings = TrelloSettings.of(rt.settings)
    if settings is None:
        raise ConfigError(
            "Trello is not configured; add [trello] with key and token"
            " (draftsman help --page trello)"
        )
    return settings


async def find_board(rt: Runtime, board: str) -> BoardConfig:
    """Find a configured board by name, id or URL; raises NotFound, UsageError (ambiguous)."""
    boards = await boards_of(rt).all()
    name = board.strip().rstrip("/").casefold()
    matching = [config for config in boards if name in (config.board_id, config.name.casefold())]
    matching = matching or [config for config in boards if name in _urls(config)]
    if not boards:
        raise NotFound(NO_BOARDS)
    if not matching:
        names = ", ".join(repr(config.name) for config in boards)
        raise NotFound(f"unknown board {board[:80]!r}; configured boards: {names}")
    if len(matching) > 1:
        ids = ", ".join(config.board_id for config in matching)
        raise UsageError(f"{len(matching)} boards are named {board[:80]!r}; use an id: {ids}")
    return matching[0]


def _urls(board: BoardConfig) -> list[str]:
    """Return the forms of a board's URL: full, without the board's name, short link only."""
    segments = board.url.casefold().rstrip("/").split("/")
    if "b" not in segments[:-1]:
        return []
    end = segments.index("b") + 2
    return ["/".join(segments), "/".join(segments[:end]), segments[end - 1]]


async def remove_webhook(rt: Runtime, config: BoardConfig) -> str | None:
    """Remove the webhook of a board; returns a warning if that failed."""
    from draftsman_bots.trello.settings import TrelloSettings

    if TrelloSettings.of(rt.settings) is None:
        return None if config.webhook_id is None else _warning(config, "[trello] is not configured")
    try:
        async with trello(rt) as context:
            from draftsman_bots.trello.boards import webhooks

            await webhooks.remove(context, config)
    except DraftsmanError as error:
        return _warning(config, str(error))
    return None


def _warning(config: BoardConfig, reason: str) -> str:
    name = f" {config.webhook_id}" if config.webhook_id else " (if it exists)"
    return f"the webhook{name} was not removed: {reason}; its events are ignored"
