"""What follows from what Trello tells, by webhook or because it was asked. Twice is once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.errors import Failure
from draftsman_bots.trello.parsers.actions import ActionKind
from draftsman_bots.trello.usecases import answers, edit_notices, label_jobs

if TYPE_CHECKING:
    from draftsman.domain.trello.board import BoardConfig, Episode
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.parsers.actions import Action

IGNORED: Final = "ignored"
RATE_LIMITED: Final = 429
COMMENTS: Final = {ActionKind.COMMENT, ActionKind.COMMENT_EDITED, ActionKind.COMMENT_DELETED}
StartedEpisodes = list[tuple["BoardConfig", "Episode", Actor | None]]


async def on_webhook(desk: BotContext, action: Action, begun: StartedEpisodes) -> str:
    """Take note of what a webhook tells; return what it was.

    Episodes with which something is to be done are added to `begun`: they are kept, and who does it
    need not be us. What arrives late or in another order says only that there is something to look
    at. Raises Failure, DraftsmanError where it is to come again.
    """
    board = await _board(desk, action)
    if board is None:
        return IGNORED
    if action.kind in COMMENTS:
        return await answers.on_comment(desk, action)
    match action.kind:
        case ActionKind.LABEL_ADDED | ActionKind.LABEL_REMOVED if action.label in board.labels:
            if action.kind is ActionKind.LABEL_REMOVED and action.date is not None:
                await desk.rt.boards.end_removed_episode(action.card, action.label, action.date)
            return await _look(desk, board, action, begun)
        case ActionKind.CARD_CHANGED if action.moved or action.type != "updateCard":
            if await desk.rt.boards.cursor(board.board_id) is not None:
                desk.scans.request(desk, board, action.card)
                return "scan"
        case ActionKind.CARD_CHANGED if action.edited:
            return await edit_notices.notify_request_edited(desk, action) or IGNORED
        case ActionKind.CARD_REMOVED:
            return await _gone(desk, board, action)
        case ActionKind.LABEL_DELETED if action.label in {*board.labels, board.queued_label_id}:
            report_missing_label(desk, board, action.label)
            return "broken"
    return IGNORED


async def on_poll(desk: BotContext, board: BoardConfig, action: Action) -> str:
    """Take note of one of the actions that a board lists; labels are found in another way."""
    if action.kind is ActionKind.COMMENT:
        return await answers.on_comment(desk, action)
    if action.kind is ActionKind.CARD_REMOVED:
        await label_jobs.cancel_removed_card(desk, board, action.card, action.name)
        return "gone"
    if action.kind is ActionKind.CARD_CHANGED and action.edited:
        return await edit_notices.notify_request_edited(desk, action) or IGNORED
    return IGNORED


def report_missing_label(desk: BotContext, board: BoardConfig, label: str) -> None:
    """Say that a label is no more that the configuration names."""
    rule = board.labels.get(label)
    name = repr(rule.name) if rule else "of queued cards"
    text = f"board {board.name} has no label {name} ({label}) any more: see draftsman boards"
    desk.health.problem(f"label:{label}", text)


async def _board(desk: BotContext, action: Action) -> BoardConfig | None:
    if action.kind is ActionKind.OTHER or not action.board:
        return None
    board = await desk.rt.boards.of(action.board)
    if board is None:
        text = f"board {action.board} is not watched: what happens there is ignored"
        desk.health.rate_limited_warning(f"board:{action.board}", text)
    return board


async def _look(
    desk: BotContext, board: BoardConfig, action: Action, begun: StartedEpisodes
) -> str:
    """Read the card of a label; at the rate limit, leave it to a scan of the board."""
    by = None
    if action.kind is ActionKind.LABEL_ADDED and action.member:
        by = await desk.rt.people.actor(
            Actor(Source.TRELLO, action.member, action.name or action.member)
        )
    try:
        new = await label_jobs.check_card(desk, board, action.card)
    except Failure as error:
        if error.http_status != RATE_LIMITED:
            raise
        desk.scans.request(desk, board, action.card, action.label, by)
        return "scan"
    begun += [(board, one, by if one.label == action.label else None) for one in new]
    return "label" if new else "seen"


async def _gone(desk: BotContext, board: BoardConfig, action: Action) -> str:
    """Cancel the work on a card; at the rate limit, leave it to the poll, which lists it too."""
    try:
        await label_jobs.cancel_removed_card(desk, board, action.card, action.name)
    except Failure as error:
        if error.http_status != RATE_LIMITED:
            raise
        return "poll"
    return "gone"
