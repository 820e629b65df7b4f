"""Webhooks: one for each board, made where it is missing, and made again where it is off."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from draftsman.errors import Failure
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.intake import GONE

if TYPE_CHECKING:
    from draftsman.domain.board import BoardConfig
    from draftsman_bots.trello.desk import Desk

_log = logging.getLogger(__name__)
Hook = dict[str, Any]


async def ensure(desk: Desk, board: BoardConfig) -> None:
    """See that Trello tells us of a board; meanwhile polling finds out. Raises Failure."""
    callback = desk.settings.callback_url
    if callback is None:
        return
    hook = await find(desk, board)
    if hook is not None and hook.get("callbackURL") != callback:
        await _remove(desk, hook)
        hook = None
    if hook is None or hook.get("active") is not True:
        await _make(desk, board, callback, hook)
        return
    failures = hook.get("consecutiveFailures")
    if isinstance(failures, int) and failures > 0:
        since = hook.get("firstConsecutiveFailDate")
        text = f"board {board.name}: its webhook failed {failures} times in a row since {since}"
        desk.health.note(_key(board), text)
    else:
        desk.health.clear(_key(board))


async def find(desk: Desk, board: BoardConfig) -> Hook | None:
    """Return the webhook of a board as Trello has it, None where there is none."""
    if board.webhook_id is None:
        return None
    try:
        found = await desk.trello.get(f"/webhooks/{board.webhook_id}")
    except Failure as error:
        if error.http_status in GONE:
            return None
        raise
    return found if isinstance(found, dict) else None


async def remove(desk: Desk, board: BoardConfig) -> None:
    """Let Trello tell us no more of a board; raises Failure."""
    if (hook := await find(desk, board)) is not None:
        await _remove(desk, hook)
    await desk.rt.boards.webhook(board.board_id, None)


async def _make(desk: Desk, board: BoardConfig, callback: str, old: Hook | None) -> None:
    """Make a webhook, or make one that was switched off active again."""
    try:
        if old is not None:
            hook = await desk.trello.put(f"/webhooks/{board.webhook_id}", active="true")
        else:
            hook = await desk.trello.post(
                "/webhooks",
                idModel=board.board_id,
                callbackURL=callback,
                description="draftsman",
            )
    except Failure as error:
        if error.retry_after is not None:
            raise
        text = f"board {board.name}: no webhook: {error}; it is polled meanwhile"
        desk.health.note(_key(board), text)
        return
    if isinstance(hook, dict) and is_id(hook.get("id")):
        await desk.rt.boards.webhook(board.board_id, hook["id"])
    _log.info("board %s: its webhook is %s", board.name, "active again" if old else "made")
    desk.health.clear(_key(board))


async def _remove(desk: Desk, hook: Hook) -> None:
    try:
        await desk.trello.delete(f"/webhooks/{hook['id']}")
    except Failure as error:
        if error.http_status not in GONE:
            raise


def _key(board: BoardConfig) -> str:
    return f"webhook:{board.board_id}"
