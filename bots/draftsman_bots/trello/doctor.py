"""What `doctor` and `boards` find out about Trello; nothing is changed there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.errors import ConfigError, Failure, NotFound
from draftsman_bots.checks import Check
from draftsman_bots.trello import credentials
from draftsman_bots.trello.context import BotContext
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.transport.api_errors import ACCOUNT
from draftsman_bots.trello.transport.api_errors import TIMEOUT as TIMED_OUT
from draftsman_bots.trello.transport.client import connect
from draftsman_bots.trello.usecases import board_setup, webhooks
from draftsman_bots.trello.usecases.board_reader import listed

if TYPE_CHECKING:
    from draftsman.domain.trello.board import BoardConfig
    from draftsman.runtime import Runtime
    from draftsman.settings import TrelloSettings
    from draftsman_bots.trello.usecases.board_setup import BoardLayout

TIMEOUT: Final = 10.0
"""Seconds of one call."""
LATE: Final = 120.0
"""Seconds without a look, besides four of those that are due, after which nobody polls."""
CHANGE: Final = "draftsman boards set {0} …, with what takes its place"


@asynccontextmanager
async def open_context(rt: Runtime, trello: TrelloSettings) -> AsyncIterator[BotContext]:
    """Give what a command needs of Trello; raises ConfigError where a secret is not there."""
    async with connect(trello, credentials.read(trello), timeout=TIMEOUT) as account:
        yield BotContext(rt, trello, account)


def failure_line(error: Failure, trello: TrelloSettings) -> str:
    """Return a line about a call that went wrong: what to do, where that is the account."""
    if error.code == ACCOUNT:
        return (
            f"Trello refuses the bot: {error}; are [trello] key and token right, and is the token"
            " not revoked? docs/trello.md says where both are found"
        )
    if error.code == TIMED_OUT:
        return (
            f"Trello does not answer within {TIMEOUT:g} s: {error}; see whether {trello.api_url}"
            " is slow for others too, and whether a proxy or firewall swallows requests from here"
        )
    if error.http_status is None and error.origin == "trello":
        return f"Trello cannot be asked: {error}; is {trello.api_url} reached from here?"
    return f"Trello says: {error}"


async def checks(rt: Runtime, trello: TrelloSettings) -> AsyncIterator[Check]:
    """Yield what was found of the account and of every board; raises nothing of Trello's."""
    try:
        async with open_context(rt, trello) as desk:
            async for one in _account(desk):
                yield one
            for board in await rt.boards.all():
                for one in await check_board(desk, board):
                    yield one
    except ConfigError as error:
        yield Check("fail", str(error), "docs/trello.md says where each is found")
    except Failure as error:
        yield Check("fail", failure_line(error, trello))


async def check_identity(desk: BotContext) -> Check:
    """Find out whose the token is, and that it is nobody's who answers. Raises Failure."""
    found = await desk.trello.get("/members/me", fields="username,fullName")
    if not isinstance(found, dict) or not is_id(found.get("id")):
        return Check("fail", "Trello does not say whose the token is")
    desk.me.id, desk.me.username = found["id"], str(found.get("username") or "")
    actor = await desk.rt.people.actor(Actor(Source.TRELLO, desk.me.id, desk.me.id))
    text = f"the bot is @{desk.me.username} ({desk.me.id})"
    if actor.person is not None:
        then = "make the bot a Trello account of its own, and a token of that"
        more = f"which is {actor.person}: their comments could not be told from the bot's"
        return Check("fail", f"{text}, {more}", then)
    return Check("ok", text)


async def check_board(desk: BotContext, board: BoardConfig) -> list[Check]:
    """Look at a board as it is configured, `who` having been asked; raises Failure."""
    try:
        there = await board_setup.fetch_layout(desk.trello, board.board_id)
    except NotFound as error:
        then = f"invite the bot to it again, or: draftsman boards remove {board.board_id}"
        return [Check("fail", f"board {board.name}: {error}", then)]
    found = [
        *await _rights(desk, board),
        *_mappings(desk, board, there),
        *await _webhook(desk, board),
        *await _polled(desk, board),
    ]
    wrong = [one for one in found if one.status != "ok"]
    return wrong or [Check("ok", f"board {board.name}: {len(board.labels)} label(s) make jobs")]


async def _account(desk: BotContext) -> AsyncIterator[Check]:
    yield await check_identity(desk)
    if not await desk.rt.boards.all():
        then = "draftsman boards add https://trello.com/b/…"
        yield Check("warn", "no board is watched, so no card makes a job", then)
    if desk.settings.callback_url is None:
        yield Check("ok", f"boards are polled every {desk.settings.poll:g} s; no webhook is wanted")
        return
    boards = {board.board_id for board in await desk.rt.boards.all()}
    for hook in await webhooks.list_webhooks(desk):
        if (
            hook.get("idModel") not in boards
            and hook.get("callbackURL") == desk.settings.callback_url
        ):
            text = f"webhook {hook.get('id')} tells of {hook.get('idModel')}, which is not watched"
            yield Check("warn", text, f"draftsman boards webhook remove {hook.get('id')}")


async def _rights(desk: BotContext, board: BoardConfig) -> list[Check]:
    """See that the bot may comment on cards of a board, move them and swap their labels."""
    name = f"board {board.name}"
    rights = await desk.trello.token(fields="permissions")
    if not _writes(rights, board.board_id):
        then = "make a token with the scopes read,write: docs/trello.md"
        return [Check("fail", f"{name}: the token may read, and write nothing", then)]
    members = await listed(desk.trello, f"/boards/{board.board_id}/memberships")
    mine = [one for one in members if one.get("idMember") == desk.me.id]
    if not mine:
        then = f"invite @{desk.me.username} to it"
        return [Check("fail", f"{name}: the bot may see it, and is no member", then)]
    if mine[0].get("memberType") == "observer":
        then = "make it a normal member"
        return [Check("fail", f"{name}: the bot is an observer and may change nothing", then)]
    return []


def _writes(token: Any, board: str) -> bool:
    rights = token.get("permissions") if isinstance(token, dict) else None
    return any(
        isinstance(one, dict)
        and one.get("modelType") == "Board"
        and one.get("idModel") in ("*", board)
        and one.get("write") is True
        for one in (rights if isinstance(rights, list) else [])
    )


def _mappings(desk: BotContext, board: BoardConfig, there: BoardLayout) -> Iterator[Check]:
    """Yield what the configuration names and the board has no more."""
    name, then = f"board {board.name}", CHANGE.format(board.board_id)
    for id, rule in board.labels.items():
        if id not in there.labels:
            yield Check("fail", f"{name} has no label {rule.name!r} ({id}) any more", then)
        if rule.agent is not None and rule.agent not in desk.rt.settings.agents:
            text = f"{name}: label {rule.name!r} is for the agent {rule.agent!r}, which is unknown"
            yield Check("fail", text, f"add [agents.{rule.agent}], or: {then}")
    if not board.labels:
        yield Check("warn", f"{name}: no label makes jobs", then)
    if board.queued_label_id not in (None, *there.labels):
        text = f"{name} has no label for queued cards ({board.queued_label_id}) any more"
        yield Check("fail", text, then)
    places = {
        **dict.fromkeys(board.ignored_list_ids, "an ignored list"),
        **{move.to: f"the list for {status}" for status, move in board.moves.items()},
    }
    for id, what in places.items():
        if id not in there.lists:
            yield Check("warn", f"{name}: {what} ({id}) is archived or gone", then)


async def _webhook(desk: BotContext, board: BoardConfig) -> list[Check]:
    """Compare the webhook that Trello has with the one that is configured."""
    name, mend = f"board {board.name}", f"draftsman boards webhook repair {board.board_id}"
    hook, callback = await webhooks.find(desk, board), desk.settings.callback_url
    if callback is None:
        if hook is None:
            return []
        text = f"{name}: a webhook tells {hook.get('callbackURL')}, and no callback_url is set"
        then = f"draftsman boards webhook remove {board.board_id}, or set [trello] callback_url"
        return [Check("warn", text, then)]
    if hook is None:
        return [Check("warn", f"{name} has no webhook; it is polled meanwhile", mend)]
    if hook.get("callbackURL") != callback:
        text = f"{name}: its webhook tells {hook.get('callbackURL')}, callback_url is {callback}"
        return [Check("fail", text, mend)]
    if not webhooks.is_active(hook):
        return [Check("fail", f"{name}: Trello switched its webhook off", mend)]
    if (trouble := webhooks.failure_warning(hook)) is not None:
        then = "is draftsman bots running, and does the proxy leave body and address as they are?"
        return [Check("warn", f"{name}: {trouble}", then)]
    return []


async def _polled(desk: BotContext, board: BoardConfig) -> list[Check]:
    cursor = await desk.rt.boards.cursor(board.board_id)
    if cursor is None:
        return [Check("warn", f"board {board.name} was never looked at", "draftsman up")]
    if cursor.age <= LATE + 4 * desk.settings.poll:
        return []
    text = f"board {board.name} was last looked at {cursor.age / 60:.0f} min ago: nobody polls"
    return [Check("warn", text, "draftsman up, or draftsman bots")]
