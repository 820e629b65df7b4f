"""What follows from what Trello tells, by webhook or because it was asked. Twice is once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.domain.actor import Actor
from draftsman.domain.job import Source
from draftsman.errors import Failure
from draftsman_bots.trello import answers, edits, intake
from draftsman_bots.trello.inbound import Kind

if TYPE_CHECKING:
    from draftsman.domain.board import BoardConfig, Episode
    from draftsman_bots.trello.desk import Desk
    from draftsman_bots.trello.inbound import Action

IGNORED: Final = "ignored"
LIMITED: Final = 429
COMMENTS: Final = {Kind.COMMENT, Kind.COMMENT_EDITED, Kind.COMMENT_DELETED}
Begun = list[tuple["BoardConfig", "Episode", Actor | None]]


async def told(desk: Desk, action: Action, begun: Begun) -> str:
    """Take note of what a webhook tells; return what it was.

    Episodes with which something is to be done are added to `begun`: they are kept, and who does it
    need not be us. What arrives late or in another order says only that there is something to look
    at. Raises Failure, DraftsmanError where it is to come again.
    """
    board = await _board(desk, action)
    if board is None:
        return IGNORED
    if action.kind in COMMENTS:
        return await answers.commented(desk, action)
    match action.kind:
        case Kind.LABEL_ON | Kind.LABEL_OFF if action.label in board.labels:
            if action.kind is Kind.LABEL_OFF and action.date is not None:
                await desk.rt.boards.taken_off(action.card, action.label, action.date)
            return await _look(desk, board, action, begun)
        case Kind.CARD_HERE if action.moved or action.type != "updateCard":
            if await desk.rt.boards.cursor(board.board_id) is not None:
                desk.scans.request(desk, board, action.card)
                return "scan"
        case Kind.CARD_HERE if action.edited:
            return await edits.request(desk, action) or IGNORED
        case Kind.CARD_GONE:
            return await _gone(desk, board, action)
        case Kind.LABEL_GONE if action.label in {*board.labels, board.queued_label_id}:
            missing(desk, board, action.label)
            return "broken"
    return IGNORED


async def found(desk: Desk, board: BoardConfig, action: Action) -> str:
    """Take note of one of the actions that a board lists; labels are found in another way."""
    if action.kind is Kind.COMMENT:
        return await answers.commented(desk, action)
    if action.kind is Kind.CARD_GONE:
        await intake.left_board(desk, board, action.card, action.name)
        return "gone"
    if action.kind is Kind.CARD_HERE and action.edited:
        return await edits.request(desk, action) or IGNORED
    return IGNORED


def missing(desk: Desk, board: BoardConfig, label: str) -> None:
    """Say that a label is no more that the configuration names."""
    rule = board.labels.get(label)
    name = repr(rule.name) if rule else "of queued cards"
    text = f"board {board.name} has no label {name} ({label}) any more: see draftsman boards"
    desk.health.problem(f"label:{label}", text)


async def _board(desk: Desk, action: Action) -> BoardConfig | None:
    if action.kind is Kind.OTHER or not action.board:
        return None
    board = await desk.rt.boards.of(action.board)
    if board is None:
        text = f"board {action.board} is not watched: what happens there is ignored"
        desk.health.seldom(f"board:{action.board}", text)
    return board


async def _look(desk: Desk, board: BoardConfig, action: Action, begun: Begun) -> str:
    """Read the card of a label; at the rate limit, leave it to a scan of the board."""
    by = None
    if action.kind is Kind.LABEL_ON and action.member:
        by = await desk.rt.people.actor(
            Actor(Source.TRELLO, action.member, action.name or action.member)
        )
    try:
        new = await intake.look(desk, board, action.card)
    except Failure as error:
        if error.http_status != LIMITED:
            raise
        desk.scans.request(desk, board, action.card, action.label, by)
        return "scan"
    begun += [(board, one, by if one.label == action.label else None) for one in new]
    return "label" if new else "seen"


async def _gone(desk: Desk, board: BoardConfig, action: Action) -> str:
    """Cancel the work on a card; at the rate limit, leave it to the poll, which lists it too."""
    try:
        await intake.left_board(desk, board, action.card, action.name)
    except Failure as error:
        if error.http_status != LIMITED:
            raise
        return "poll"
    return "gone"
