"""Actions on Trello boards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from draftsman.actions.action import About, ActionResult, Call, Surface, action
from draftsman.people.policy import Verb
from draftsman_bots.trello.records.service import TrelloBoards

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_bots.trello.records.board import BoardConfig

DeleteWebhook = Callable[["Runtime", "BoardConfig"], Awaitable[str | None]]
"""Deletes the webhook of a board at Trello; returns a warning if that failed."""


@action(About.BOARD, right=Verb.BOARDS, surfaces={Surface.COMMANDS}, undo="unwatch")
async def watch(call: Call, board: BoardConfig, says: str = "watched") -> ActionResult[BoardConfig]:
    """Watch a board, or change its configuration."""
    await TrelloBoards(call.rt.db, call.rt.policy).save(board, call.actor)
    return ActionResult(says, board, data=board.model_dump(mode="json"))


@action(
    About.BOARD,
    right=Verb.BOARDS,
    question="Stop watching {}?",
    consequence="Deletes its webhook. Its jobs and the comments on its cards are kept.",
    destroys=True,
    guarded=True,
)
async def unwatch(
    call: Call, board: BoardConfig, delete_webhook: DeleteWebhook
) -> ActionResult[BoardConfig]:
    """Stop watching a board; its jobs and comments are kept."""
    await TrelloBoards(call.rt.db, call.rt.policy).remove(board.board_id, call.actor)
    warning = await delete_webhook(call.rt, board)
    data: dict[str, Any] = {"board_id": board.board_id, "removed": True}
    data |= {"webhook_warning": warning}
    warnings = () if warning is None else (warning,)
    return ActionResult("is not watched any more", board, data=data, warnings=warnings)
