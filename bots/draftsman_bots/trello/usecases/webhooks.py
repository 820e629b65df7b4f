"""Webhooks: one for each board, made where it is missing, and made again where it is off."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from draftsman.errors import Failure
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.usecases.label_jobs import GONE_STATUSES

if TYPE_CHECKING:
    from draftsman.domain.trello.board import BoardConfig
    from draftsman_bots.trello.context import BotContext

_log = logging.getLogger(__name__)
Webhook = dict[str, Any]


async def ensure(desk: BotContext, board: BoardConfig) -> None:
    """See that Trello tells us of a board; meanwhile polling finds out. Raises Failure."""
    if desk.settings.callback_url is None:
        return
    hook = await _fitting(desk, board)
    if not is_active(hook):
        try:
            hook = await _make(desk, board, hook)
        except Failure as error:
            if error.retry_after is not None:
                raise
            text = f"board {board.name}: no webhook: {error}; it is polled meanwhile"
            desk.health.note(_key(board), text)
            return
    if (trouble := failure_warning(hook)) is not None:
        desk.health.note(_key(board), f"board {board.name}: {trouble}")
    else:
        desk.health.clear(_key(board))


async def register(desk: BotContext, board: BoardConfig) -> tuple[Webhook, str]:
    """See that there is a webhook; return it, and what was done about it. Raises Failure."""
    hook = await _fitting(desk, board)
    if hook is not None and is_active(hook):
        return hook, "there"
    return await _make(desk, board, hook), "made" if hook is None else "active again"


def is_active(hook: Webhook | None) -> bool:
    """Return whether Trello calls a webhook."""
    return hook is not None and hook.get("active") is True


def failure_warning(hook: Webhook | None) -> str | None:
    """Return what is to be said of a webhook that failed lately, None of one that did not."""
    failures = None if hook is None else hook.get("consecutiveFailures")
    if not isinstance(failures, int) or failures <= 0:
        return None
    since = hook.get("firstConsecutiveFailDate") if hook else None
    return f"its webhook failed {failures} times in a row since {since}"


async def list_webhooks(desk: BotContext) -> list[Webhook]:
    """Return all webhooks of the bot's token, ours or not; raises Failure."""
    found = await desk.trello.token("/webhooks")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


async def find(desk: BotContext, board: BoardConfig) -> Webhook | None:
    """Return the webhook of a board as Trello has it, None where there is none. Raises Failure.

    One of this board and our address is ours though nobody noted it: its reply was lost.
    """
    if board.webhook_id is not None:
        try:
            found = await desk.trello.get(f"/webhooks/{board.webhook_id}")
        except Failure as error:
            if error.http_status not in GONE_STATUSES:
                raise
        else:
            return found if isinstance(found, dict) else None
    mine = (board.board_id, desk.settings.callback_url)
    for one in await list_webhooks(desk):
        if (one.get("idModel"), one.get("callbackURL")) == mine:
            return one
    return None


async def remove(desk: BotContext, board: BoardConfig) -> bool:
    """Let Trello tell us no more of a board; return whether it did. Raises Failure."""
    hook = await find(desk, board)
    if hook is not None:
        await delete(desk, str(hook["id"]))
    await desk.rt.boards.webhook(board.board_id, None)
    return hook is not None


async def delete(desk: BotContext, hook: str) -> None:
    """Remove a webhook, if it is there; raises Failure."""
    try:
        await desk.trello.delete(f"/webhooks/{hook}")
    except Failure as error:
        if error.http_status not in GONE_STATUSES:
            raise


async def _fitting(desk: BotContext, board: BoardConfig) -> Webhook | None:
    """Return the webhook of a board; one that calls another address is removed."""
    hook = await find(desk, board)
    if hook is not None and hook.get("callbackURL") != desk.settings.callback_url:
        await delete(desk, str(hook["id"]))
        return None
    if hook is not None and hook["id"] != board.webhook_id:
        await desk.rt.boards.webhook(board.board_id, hook["id"])
    return hook


async def _make(desk: BotContext, board: BoardConfig, old: Webhook | None) -> Webhook:
    """Make a webhook, or make one that was switched off active again. Raises Failure."""
    if old is not None:
        hook = await desk.trello.put(f"/webhooks/{old['id']}", active="true")
    else:
        hook = await desk.trello.post(
            "/webhooks",
            idModel=board.board_id,
            callbackURL=desk.settings.callback_url,
            description="draftsman",
        )
    if not isinstance(hook, dict) or not is_id(hook.get("id")):
        raise Failure("Trello made a webhook and did not say which", origin="trello")
    await desk.rt.boards.webhook(board.board_id, hook["id"])
    _log.info("board %s: its webhook is %s", board.name, "active again" if old else "made")
    return hook


def _key(board: BoardConfig) -> str:
    return f"webhook:{board.board_id}"
