"""Webhooks of boards: created where missing, reactivated where disabled."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from draftsman.errors import Failure
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests.label_jobs import GONE_STATUSES

if TYPE_CHECKING:
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.records.board import BoardConfig

_log = logging.getLogger(__name__)
Webhook = dict[str, Any]


async def ensure(context: BotContext, board: BoardConfig) -> None:
    """Ensure that a board has an active webhook; polling covers the gap. Raises Failure."""
    if context.settings.callback_url is None:
        return
    hook = await _find_current(context, board)
    if not is_active(hook):
        try:
            hook = await _create(context, board, hook)
        except Failure as error:
            if error.retry_after is not None:
                raise
            text = f"board {board.name}: cannot create a webhook: {error}; polling is used instead"
            context.health.note(_key(board), text)
            return
    if (warning := failure_warning(hook)) is not None:
        context.health.note(_key(board), f"board {board.name}: {warning}")
    else:
        context.health.clear(_key(board))


async def register(context: BotContext, board: BoardConfig) -> tuple[Webhook, str]:
    """Ensure that the webhook exists; return it and `unchanged`, `created` or `enabled`.

    Raises Failure.
    """
    hook = await _find_current(context, board)
    if hook is not None and is_active(hook):
        return hook, "unchanged"
    return await _create(context, board, hook), "created" if hook is None else "enabled"


def is_active(hook: Webhook | None) -> bool:
    """Return whether Trello sends requests to a webhook."""
    return hook is not None and hook.get("active") is True


def failure_warning(hook: Webhook | None) -> str | None:
    """Return a warning if the last calls of a webhook failed, else None."""
    failures = None if hook is None else hook.get("consecutiveFailures")
    if not isinstance(failures, int) or failures <= 0:
        return None
    since = hook.get("firstConsecutiveFailDate") if hook else None
    return f"the webhook failed {failures} times in a row since {since}"


async def list_webhooks(context: BotContext) -> list[Webhook]:
    """Return all webhooks of the bot's token, of any application; raises Failure."""
    hooks = await context.trello.token("/webhooks")
    return [hook for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []


async def find(context: BotContext, board: BoardConfig) -> Webhook | None:
    """Return the webhook of a board from Trello, or None. Raises Failure."""
    if board.webhook_id is not None:
        try:
            hook = await context.trello.get(f"/webhooks/{board.webhook_id}")
        except Failure as error:
            if error.http_status not in GONE_STATUSES:
                raise
        else:
            return hook if isinstance(hook, dict) else None
    return of_board(await list_webhooks(context), context, board)


def of_board(hooks: Sequence[Webhook], context: BotContext, board: BoardConfig) -> Webhook | None:
    """Return the webhook of a board among those of the token, or None.

    A webhook with this board and our callback URL is ours even if its creation was not recorded:
    the reply may have been lost.
    """
    expected = (board.board_id, context.settings.callback_url)
    return next((hook for hook in hooks if hook.get("id") == board.webhook_id), None) or next(
        (hook for hook in hooks if (hook.get("idModel"), hook.get("callbackURL")) == expected), None
    )


async def remove(context: BotContext, board: BoardConfig) -> bool:
    """Remove the webhook of a board; return whether it existed. Raises Failure."""
    hook = await find(context, board)
    if hook is not None:
        await delete(context, str(hook["id"]))
    await boards_of(context.rt).webhook(board.board_id, None)
    return hook is not None


async def delete(context: BotContext, hook: str) -> None:
    """Delete a webhook if it exists; raises Failure."""
    try:
        await context.trello.delete(f"/webhooks/{hook}")
    except Failure as error:
        if error.http_status not in GONE_STATUSES:
            raise


async def _find_current(context: BotContext, board: BoardConfig) -> Webhook | None:
    """Return the webhook of a board; delete it if it calls another URL."""
    hook = await find(context, board)
    if hook is not None and hook.get("callbackURL") != context.settings.callback_url:
        await delete(context, str(hook["id"]))
        return None
    if hook is not None and hook["id"] != board.webhook_id:
        await boards_of(context.rt).webhook(board.board_id, hook["id"])
    return hook


async def _create(context: BotContext, board: BoardConfig, old: Webhook | None) -> Webhook:
    """Create a webhook, or reactivate a disabled webhook. Raises Failure."""
    if old is not None:
        hook = await context.trello.put(f"/webhooks/{old['id']}", active="true")
    else:
        hook = await context.trello.post(
            "/webhooks",
            idModel=board.board_id,
            callbackURL=context.settings.callback_url,
            description="draftsman",
        )
    if not isinstance(hook, dict) or not is_id(hook.get("id")):
        raise Failure("Trello created a webhook but returned no id", origin="trello")
    await boards_of(context.rt).webhook(board.board_id, hook["id"])
    _log.info("board %s: webhook %s", board.name, "reactivated" if old else "created")
    return hook


def _key(board: BoardConfig) -> str:
    return f"webhook:{board.board_id}"
