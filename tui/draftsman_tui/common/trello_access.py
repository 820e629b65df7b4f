"""What the commands of `boards` share: Trello itself, and which board is meant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from draftsman.errors import ConfigError, DraftsmanError, Failure, NotFound, UsageError
from draftsman_tui.common.extras import require

if TYPE_CHECKING:
    from draftsman.domain.trello.board import BoardConfig
    from draftsman.runtime import Runtime
    from draftsman.settings import TrelloSettings
    from draftsman_bots.trello.context import BotContext

NOBODY = "no board is watched; watch one so: draftsman boards add https://trello.com/b/…"


class TrelloRefused(DraftsmanError):
    """Trello does not do that."""


@asynccontextmanager
async def trello(rt: Runtime) -> AsyncIterator[BotContext]:
    """Give Trello; raises ConfigError without [trello], and one line for what it refuses."""
    settings = configured(rt)
    require("trello")
    from draftsman_bots.trello.doctor import failure_line, open_context

    async with open_context(rt, settings) as desk:
        try:
            yield desk
        except Failure as error:
            raise TrelloRefused(failure_line(error, settings)) from None


def configured(rt: Runtime) -> TrelloSettings:
    """Return [trello]; raises ConfigError where there is none."""
    if rt.settings.trello is None:
        raise ConfigError(
            "Trello is not configured; add [trello] with key and token: see docs/trello.md"
        )
    return rt.settings.trello


async def find_board(rt: Runtime, board: str) -> BoardConfig:
    """Return the watched board of that name, id or address; raises NotFound, UsageError."""
    boards = await rt.boards.all()
    wanted = board.strip().rstrip("/").casefold()
    found = [one for one in boards if wanted in (one.board_id, one.name.casefold())]
    found = found or [one for one in boards if wanted in _addresses(one)]
    if not boards:
        raise NotFound(NOBODY)
    if not found:
        names = ", ".join(repr(one.name) for one in boards)
        raise NotFound(f"no board {board[:80]!r} is watched; watched are: {names}")
    if len(found) > 1:
        ids = ", ".join(one.board_id for one in found)
        raise UsageError(f"{len(found)} boards are called {board[:80]!r}; give one's id: {ids}")
    return found[0]


def _addresses(board: BoardConfig) -> list[str]:
    """Return how a board is addressed: whole, without its name, and by its short link alone."""
    parts = board.url.casefold().rstrip("/").split("/")
    if "b" not in parts[:-1]:
        return []
    end = parts.index("b") + 2
    return ["/".join(parts), "/".join(parts[:end]), parts[end - 1]]


async def remove_webhook(rt: Runtime, config: BoardConfig) -> str | None:
    """Remove a board's webhook; return what is to be said where that did not work."""
    if rt.settings.trello is None:
        return None if config.webhook_id is None else _left(config, "[trello] is not configured")
    try:
        async with trello(rt) as desk:
            from draftsman_bots.trello.usecases import webhooks

            await webhooks.remove(desk, config)
    except DraftsmanError as error:
        return _left(config, str(error))
    return None


def _left(config: BoardConfig, why: str) -> str:
    name = config.webhook_id or "if it has one"
    return f"its webhook, {name}, stays: {why}; what it tells is ignored"
