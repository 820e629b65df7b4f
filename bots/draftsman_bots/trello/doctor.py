"""Checks of the Trello account and its boards for `doctor` and `boards`; read-only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import AmbiguousName, ConfigError, Failure, NotFound, UsageError
from draftsman.formats.times import span
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman_bots.process.checks import Check
from draftsman_bots.trello import credentials
from draftsman_bots.trello.boards import board_fields, board_setup, webhooks
from draftsman_bots.trello.context import BotContext
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.settings import TrelloSettings
from draftsman_bots.trello.transport.api_errors import ACCOUNT
from draftsman_bots.trello.transport.api_errors import TIMEOUT as TIMED_OUT
from draftsman_bots.trello.transport.cards import TYPES
from draftsman_bots.trello.transport.client import connect

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings
    from draftsman_bots.trello.boards.board_setup import BoardLayout
    from draftsman_bots.trello.records.board import BoardConfig

TIMEOUT: Final = 10.0
"""Seconds for each API call."""
LATE: Final = 120.0
"""Seconds, in addition to four poll intervals, after which a board counts as not polled."""
STATUS_OPTIONS: Final = tuple(status.replace("_", " ") for status in Status)
"""Options of a list for the status."""
CHANGE: Final = "draftsman boards set {0} …, with the replacement"


@asynccontextmanager
async def open_context(rt: Runtime, trello: TrelloSettings) -> AsyncIterator[BotContext]:
    """Open the Trello client for a command; raises ConfigError if a secret is missing."""
    async with connect(trello, credentials.read(trello), timeout=TIMEOUT) as account:
        yield BotContext(rt, trello, account)


def failure_line(error: Failure, trello: TrelloSettings) -> str:
    """Describe a failed call in a line, with the remedy if the account is the cause."""
    if error.code == ACCOUNT:
        return (
            f"Trello rejected the bot's credentials: {error}; check [trello] key and token, and"
            " that the token was not revoked (draftsman help --page trello)"
        )
    if error.code == TIMED_OUT:
        return (
            f"Trello did not respond within {TIMEOUT:g} s: {error}; check whether {trello.api_url}"
            " is slow elsewhere too, and whether a proxy or firewall drops requests from this"
            " machine"
        )
    if error.http_status is None and error.origin == "trello":
        return (
            f"cannot reach Trello: {error}; check that {trello.api_url} is reachable from this"
            " machine"
        )
    return f"Trello returned an error: {error}"


async def checks(settings: Settings, rt: Runtime | None) -> AsyncIterator[Check]:
    """Yield the checks of the account and of every board; failed calls become checks."""
    trello = TrelloSettings.of(settings)
    if trello is None or rt is None:
        return
    try:
        async with open_context(rt, trello) as context:
            boards = await boards_of(rt).all()
            account = Account(context)
            async for check in _account(account, boards):
                yield check
            for board in boards:
                for check in await check_board(account, board):
                    yield check
    except ConfigError as error:
        yield Check("fail", str(error), "where to find each value: draftsman help --page trello")
    except Failure as error:
        yield Check("fail", failure_line(error, trello))


class Account:
    """The account of the bot, and what all boards share of it, which is read once."""

    def __init__(self, context: BotContext) -> None:
        self.context = context
        self._rights: Any = None
        self._webhooks: list[webhooks.Webhook] | None = None

    async def may_write(self, board: str) -> bool:
        """Return whether the token permits changes of a board; raises Failure."""
        self._rights = self._rights or await self.context.trello.token(fields="permissions")
        return _writes(self._rights, board)

    async def webhooks(self) -> list[webhooks.Webhook]:
        """Return all webhooks of the token; raises Failure."""
        if self._webhooks is None:
            self._webhooks = await webhooks.list_webhooks(self.context)
        return self._webhooks


async def check_identity(context: BotContext) -> Check:
    """Check that the token's account is not a linked person's; set `me`. Raises Failure."""
    member = await context.trello.get("/members/me", fields="username,fullName")
    if not isinstance(member, dict) or not is_id(member.get("id")):
        return Check("fail", "Trello returned no account for the token")
    context.me.id = member["id"]
    context.me.username = str(member.get("username") or "")
    actor = await context.rt.people.actor(Actor("trello", context.me.id, context.me.id))
    text = f"the bot is @{context.me.username} ({context.me.id})"
    if actor.person is not None:
        then = "create a separate Trello account for the bot and use its token"
        problem = f"the account of {actor.person}: the bot cannot tell its comments from theirs"
        return Check("fail", f"{text}, {problem}", then)
    return Check("ok", text)


async def check_board(
    account: Account, board: BoardConfig, layout: BoardLayout | None = None
) -> list[Check]:
    """Check a board's configuration, after `check_identity`; raises Failure.

    Without its `layout` the board is read.
    """
    context = account.context
    try:
        layout = layout or await board_setup.fetch_layout(context.trello, board.board_id)
    except NotFound as error:
        then = f"invite the bot to the board again, or: draftsman boards remove {board.board_id}"
        return [Check("fail", f"board {board.name}: {error}", then)]
    results = [
        *await _rights(account, board),
        *_mappings(context, board, layout),
        *_fields(board, layout),
        *await _digest_card(context, board),
        *[check async for check in _templates(context, board)],
        *await _webhook(account, board),
        *await _polled(context, board),
    ]
    problems = [check for check in results if check.status != "ok"]
    text = f"board {board.name}: {len(board.labels)} label(s) create jobs"
    return problems or [Check("ok", text)]


async def _account(account: Account, boards: Sequence[BoardConfig]) -> AsyncIterator[Check]:
    context = account.context
    yield await check_identity(context)
    if not boards:
        then = "draftsman boards add https://trello.com/b/…"
        yield Check("warn", "no board is watched, so no card creates a job", then)
    if context.settings.is_open:
        names = ", ".join(board.name for board in boards) or "none yet"
        rule = 'every member may start and cancel jobs ([trello] members = "may_submit")'
        text = f"boards that are open, where {rule}: {names}"
        yield Check("warn", text, "remove members to allow only people of the directory")
    if context.settings.callback_url is None:
        text = f"boards are polled every {context.settings.poll:g} s; callback_url is not set"
        if context.settings.is_open:
            yield Check("ok", text)
            return
        text += ": polls do not say who added a label, so no label starts a job"
        then = 'set [trello] callback_url, or members = "may_submit" (draftsman help --page trello)'
        yield Check("warn", text, then)
        return
    watched = {board.board_id for board in boards}
    for hook in await account.webhooks():
        if (
            hook.get("idModel") not in watched
            and hook.get("callbackURL") == context.settings.callback_url
        ):
            text = f"webhook {hook.get('id')} is for {hook.get('idModel')}, which is not watched"
            yield Check("warn", text, f"draftsman boards webhook remove {hook.get('id')}")


async def _rights(account: Account, board: BoardConfig) -> list[Check]:
    """Check that the bot may comment on a board's cards, move them and swap their labels."""
    name = f"board {board.name}"
    context = account.context
    if not await account.may_write(board.board_id):
        then = "create a token with the scopes read,write (draftsman help --page trello)"
        return [Check("fail", f"{name}: the token is read-only", then)]
    members = await context.trello.get(f"/boards/{board.board_id}/memberships")
    own_memberships = [
        member
        for member in (members if isinstance(members, list) else [])
        if isinstance(member, dict) and member.get("idMember") == context.me.id
    ]
    if not own_memberships:
        then = f"invite @{context.me.username} to the board"
        return [Check("fail", f"{name}: the bot is not a member", then)]
    if own_memberships[0].get("memberType") == "observer":
        then = "make the bot a normal member"
        return [Check("fail", f"{name}: the bot is an observer and cannot make changes", then)]
    return []


def _writes(token: Any, board: str) -> bool:
    rights = token.get("permissions") if isinstance(token, dict) else None
    return any(
        isinstance(right, dict)
        and right.get("modelType") == "Board"
        and right.get("idModel") in ("*", board)
        and right.get("write") is True
        for right in (rights if isinstance(rights, list) else [])
    )


def _mappings(context: BotContext, board: BoardConfig, layout: BoardLayout) -> Iterator[Check]:
    """Yield configured labels, lists and agents that no longer exist."""
    name = f"board {board.name}"
    then = CHANGE.format(board.board_id)
    for id, rule in board.labels.items():
        if id not in layout.labels:
            yield Check("fail", f"{name} no longer has the label {rule.name!r} ({id})", then)
        if rule.agent is not None and rule.agent not in context.rt.settings.agents:
            text = f"{name}: label {rule.name!r} uses agent {rule.agent!r}, which is not configured"
            yield Check("fail", text, f"add [agents.{rule.agent}], or: {then}")
    if not board.labels:
        yield Check("warn", f"{name}: no label creates jobs", then)
    if board.queued_label_id not in (None, *layout.labels):
        text = f"{name} no longer has the label for queued cards ({board.queued_label_id})"
        yield Check("fail", text, then)
    lists = {
        **dict.fromkeys(board.ignored_list_ids, "an ignored list"),
        **{move.to: f"the list for {status}" for status, move in board.moves.items()},
    }
    for id, purpose in lists.items():
        if id not in layout.lists:
            yield Check("warn", f"{name}: {purpose} ({id}) is archived or deleted", then)


def _fields(board: BoardConfig, layout: BoardLayout) -> Iterator[Check]:
    """Yield configured custom fields that cannot be written; they are skipped meanwhile."""
    then = f"draftsman boards set {board.board_id} --field auto, or --field none"
    for use, id in board.custom_fields.items():
        field = next((field for field in layout.fields if field.id == id), None)
        start = f"board {board.name}: custom field {field.name if field else id!r} for the {use}"
        if field is None:
            text = f"{start} is missing: it was deleted, or the Power-Up Custom Fields is off"
            yield Check("warn", text, then)
        elif field.type not in TYPES[use]:
            yield Check("warn", f"{start} has the type {field.type}", then)
        elif field.type == "list" and not any(field.option(status) for status in STATUS_OPTIONS):
            text = f"{start} has no option with the name of a status, such as running or completed"
            yield Check("warn", text, "add options with these names in Trello")


async def _digest_card(context: BotContext, board: BoardConfig) -> list[Check]:
    """Check that the card for digests is on the board."""
    if board.digest_card_id is None:
        return []
    try:
        await board_fields.digest_card(context.trello, board.board_id, board.digest_card_id)
    except (NotFound, UsageError) as error:
        text = f"board {board.name}: {error}"
        then = f"draftsman boards set {board.board_id} --digest-card URL, or none"
        return [Check("warn", text, then)]
    return []


async def _templates(context: BotContext, board: BoardConfig) -> AsyncIterator[Check]:
    """Yield labels without their template or type, or with a name that both have."""
    for rule in board.labels.values():
        if rule.template is None:
            continue
        try:
            await context.rt.job_forms.find(rule.template)
        except (AmbiguousName, NotFound) as error:
            text = f"board {board.name}: label {rule.name!r}: {error.reason}"
            yield Check("fail", text, f"draftsman boards unbind {board.board_id} {rule.name!r}")


async def _webhook(account: Account, board: BoardConfig) -> list[Check]:
    """Compare the webhook in Trello with the configuration."""
    context = account.context
    name = f"board {board.name}"
    repair = f"draftsman boards webhook repair {board.board_id}"
    hook = webhooks.of_board(await account.webhooks(), context, board)
    callback = context.settings.callback_url
    if callback is None:
        if hook is None:
            return []
        text = f"{name}: a webhook calls {hook.get('callbackURL')}, but callback_url is not set"
        then = f"draftsman boards webhook remove {board.board_id}, or set [trello] callback_url"
        return [Check("warn", text, then)]
    if hook is None:
        return [Check("warn", f"{name} has no webhook; polling is used instead", repair)]
    if hook.get("callbackURL") != callback:
        text = (
            f"{name}: the webhook calls {hook.get('callbackURL')}, but callback_url is {callback}"
        )
        return [Check("fail", text, repair)]
    if not webhooks.is_active(hook):
        return [Check("fail", f"{name}: Trello disabled the webhook", repair)]
    if (trouble := webhooks.failure_warning(hook)) is not None:
        then = "check that draftsman bots is running and the proxy keeps body and URL unchanged"
        return [Check("warn", f"{name}: {trouble}", then)]
    return []


async def _polled(context: BotContext, board: BoardConfig) -> list[Check]:
    cursor = await boards_of(context.rt).cursor(board.board_id)
    if cursor is None:
        return [Check("warn", f"board {board.name} was never polled", "draftsman up")]
    if cursor.age <= LATE + 4 * context.settings.poll:
        return []
    text = f"board {board.name} was last polled {span(cursor.age)} ago"
    return [Check("warn", text, "draftsman up, or draftsman bots")]
