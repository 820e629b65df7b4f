"""Dispatch of Trello actions from webhooks and polls; handling an action twice is safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.errors import Failure
from draftsman_bots.trello.actions import ActionKind
from draftsman_bots.trello.boards import board_scans
from draftsman_bots.trello.questions import answers, checked_items, due_changes
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests import attachments, edit_notices, label_jobs, requesters

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.trello.actions import Action
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.records.board import BoardConfig, Episode

IGNORED: Final = "ignored"
SCAN_REQUESTED: Final = "scan_requested"
LEFT_TO_POLL: Final = "left_to_poll"
RATE_LIMITED: Final = 429
COMMENTS: Final = {ActionKind.COMMENT, ActionKind.COMMENT_EDITED, ActionKind.COMMENT_DELETED}
StartedEpisodes = list[tuple["BoardConfig", "Episode", "Actor | None"]]


async def on_webhook(context: BotContext, action: Action, started: StartedEpisodes) -> str:
    """Handle an action from a webhook; return its outcome.

    New episodes are recorded and added to `started`; any process may continue them. Webhooks may
    arrive late or out of order, so an action only triggers a read of the card. Raises Failure or
    DraftsmanError if Trello should send the webhook again.
    """
    board = await _board(context, action)
    if board is None:
        return IGNORED
    try:
        outcome = await _of_person(context, board, action)
    except Failure as error:
        if error.http_status != RATE_LIMITED:
            raise
        return LEFT_TO_POLL
    if outcome is not None:
        return outcome
    return await _of_board(context, board, action, started)


async def _of_board(
    context: BotContext, board: BoardConfig, action: Action, started: StartedEpisodes
) -> str:
    """Handle a label, a move, an edit or a removal of a card from a webhook."""
    match action.kind:
        case ActionKind.LABEL_ADDED | ActionKind.LABEL_REMOVED if action.label in board.labels:
            if action.kind is ActionKind.LABEL_REMOVED and action.date is not None:
                boards = boards_of(context.rt)
                await boards.end_removed_episode(action.card, action.label, action.date)
            return await _check_card(context, board, action, started)
        case ActionKind.CARD_CHANGED if action.moved or action.type != "updateCard":
            if await boards_of(context.rt).cursor(board.board_id) is not None:
                board_scans.request_scan(context, board, action.card)
                return SCAN_REQUESTED
        case ActionKind.CARD_CHANGED if action.edited:
            return await edit_notices.notify_request_edited(context, action) or IGNORED
        case ActionKind.CARD_REMOVED:
            return await _cancel_jobs(context, board, action)
        case ActionKind.LABEL_DELETED if action.label in {*board.labels, board.queued_label_id}:
            report_missing_label(context, board, action.label)
            return "missing_label"
    return IGNORED


async def on_poll(context: BotContext, board: BoardConfig, action: Action) -> str:
    """Handle an action from a poll; return its outcome. Labels come from the cards instead."""
    if (outcome := await _of_person(context, board, action)) is not None:
        return outcome
    if action.kind is ActionKind.CARD_REMOVED:
        return await label_jobs.cancel_removed_card(context, board, action)
    if action.kind is ActionKind.CARD_CHANGED and action.edited:
        return await edit_notices.notify_request_edited(context, action) or IGNORED
    return IGNORED


async def _of_person(context: BotContext, board: BoardConfig, action: Action) -> str | None:
    """Handle a comment, item, file or due date of a person; None for any other action."""
    if action.kind in COMMENTS:
        return await answers.on_comment(context, action)
    if action.kind is ActionKind.ITEM_CHECKED:
        return await checked_items.on_item(context, action)
    if action.kind is ActionKind.FILE_ATTACHED:
        return await attachments.on_attached(context, action)
    if action.kind is ActionKind.CARD_CHANGED and action.rescheduled and board.due_dates:
        return await due_changes.on_rescheduled(context, board, action)
    return None


def report_missing_label(context: BotContext, board: BoardConfig, label: str) -> None:
    """Report that a configured label was deleted."""
    rule = board.labels.get(label)
    name = repr(rule.name) if rule else "for queued cards"
    text = f"board {board.name} no longer has the label {name} ({label}): see draftsman boards"
    context.health.problem(f"label:{label}", text)


async def _board(context: BotContext, action: Action) -> BoardConfig | None:
    if action.kind is ActionKind.OTHER or not action.board:
        return None
    board = await boards_of(context.rt).of(action.board)
    if board is None:
        text = f"board {action.board} is not watched; its actions are ignored"
        context.health.rate_limited_warning(f"board:{action.board}", text)
    return board


async def _check_card(
    context: BotContext, board: BoardConfig, action: Action, started: StartedEpisodes
) -> str:
    """Compare the labels of a card; at the rate limit, request a scan of the board instead."""
    added = {}
    if action.kind is ActionKind.LABEL_ADDED and action.member not in ("", context.me.id):
        by = await requesters.member_actor(context, action.member, action.name)
        added[action.label] = by
    try:
        new = await label_jobs.check_card(context, board, action.card, added)
    except Failure as error:
        if error.http_status != RATE_LIMITED:
            raise
        board_scans.request_scan(context, board, action.card, added)
        return SCAN_REQUESTED
    started += [(board, episode, added.get(episode.label)) for episode in new]
    return "episode_started" if new else "unchanged"


async def _cancel_jobs(context: BotContext, board: BoardConfig, action: Action) -> str:
    """Cancel the jobs of a removed card; at the rate limit, leave that to the next poll."""
    try:
        return await label_jobs.cancel_removed_card(context, board, action)
    except Failure as error:
        if error.http_status != RATE_LIMITED:
            raise
        return LEFT_TO_POLL
