"""`boards webhook`: what Trello tells by itself, and whether it still does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import ConfigError, Failure, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, Group, command, example_lines
from draftsman_tui.common import params
from draftsman_tui.common.trello_access import (
    NO_BOARDS,
    TrelloRefused,
    configured,
    find_board,
    trello,
)

if TYPE_CHECKING:
    from draftsman.domain.trello.board import BoardConfig
    from draftsman.runtime import Runtime
    from draftsman_bots.trello.context import BotContext


@click.group(
    "webhook",
    cls=Group,
    epilog=example_lines(("draftsman boards webhook list", "draftsman boards webhook repair Work")),
)
def webhook() -> None:
    """Show and mend the webhooks by which Trello tells of boards.

    The bot makes and mends them by itself every five minutes where [trello] has a callback_url, and
    polls all the same.
    """


@command("list", examples=("draftsman boards webhook list",))
async def list_webhooks(app: App) -> None:
    """List the webhooks of the bot's token, and compare them with callback_url."""
    async with app.runtime(read_only=True) as rt, trello(rt) as desk:
        from draftsman_bots.trello.usecases import webhooks

        boards = {board.board_id: board for board in await rt.boards.all()}
        callback = configured(rt).callback_url
        rows = [_row(one, boards, callback) for one in await webhooks.list_webhooks(desk)]
    there = {row["board_id"] for row in rows if row["state"] != "other address"}
    missing = [board.name for id, board in boards.items() if callback and id not in there]
    if app.json:
        app.out.document({"callback_url": callback, "webhooks": rows, "missing": missing})
        return
    if rows:
        heads = ("ID", "BOARD", "STATE", "FAILED", "ADDRESS")
        cells = [
            (
                one["id"],
                one["board"] or one["board_id"],
                one["state"],
                str(one["failures"]),
                one["url"],
            )
            for one in rows
        ]
        app.out.table(heads, cells, flexible=4, right=(3,))
    else:
        app.out.info("the token has no webhook")
    if callback is None:
        app.out.info("[trello] callback_url is not set: boards are polled")
    for name in missing:
        app.out.info(f"{name} has none that calls {callback}: draftsman boards webhook repair")


@command("add", examples=("draftsman boards webhook add Work",))
@click.argument("board", type=params.TEXT)
async def add(app: App, board: str) -> None:
    """Let Trello tell of a board at once, at callback_url.

    Trello looks there first, with HEAD, so `draftsman bots` has to be running.
    """
    async with app.runtime() as rt:
        await _register(app, rt, [await find_board(rt, board)])


@command(
    "repair", examples=("draftsman boards webhook repair", "draftsman boards webhook repair Work")
)
@click.argument("board", type=params.TEXT, required=False)
async def repair(app: App, board: str | None) -> None:
    """Make what is missing, switch on what is off, replace what calls another address.

    Of one board, or of all.
    """
    async with app.runtime() as rt:
        boards = await rt.boards.all() if board is None else [await find_board(rt, board)]
        await _register(app, rt, boards)


@command("remove", examples=("draftsman boards webhook remove Work",))
@click.argument("board", metavar="BOARD|ID", type=params.TEXT)
@click.option("--yes", is_flag=True, help="Do not ask.")
async def remove(app: App, board: str, yes: bool) -> None:
    """Remove the webhook of a board, or one that webhook list shows, by its id.

    Where callback_url is set the bot makes that of a watched board again.
    """
    async with app.runtime() as rt, trello(rt) as desk:
        from draftsman_bots.trello.usecases import webhooks

        await _permitted(rt)
        known = {str(one.get("id")) for one in await webhooks.list_webhooks(desk)}
        config = None if board in known else await find_board(rt, board)
        if not yes:
            if not app.out.interactive:
                raise UsageError("nobody is here to be asked; remove the webhook with --yes")
            prompts.confirm(f"remove the webhook of {config.name if config else board}?")
        if config is None:
            await webhooks.delete(desk, board)
        removed = True if config is None else await webhooks.remove(desk, config)
        callback = configured(rt).callback_url
    if app.json:
        app.out.document({"board": board, "removed": removed})
        return
    app.out.print("it is removed" if removed else f"{board} had no webhook")
    if config is not None and callback is not None:
        app.out.info("the bot makes it again: callback_url is set; without it boards are polled")


async def _register(app: App, rt: Runtime, boards: list[BoardConfig]) -> None:
    settings = configured(rt)
    if settings.callback_url is None:
        raise ConfigError(
            "[trello] has no callback_url, where Trello could tell anything: see docs/trello.md"
        )
    await _permitted(rt)
    done = []
    async with trello(rt) as desk:
        for board in boards:
            hook, how = await _registered(desk, board)
            done.append({"board": board.name, "webhook": hook["id"], "how": how})
    if app.json:
        app.out.document(done)
        return
    for one in done:
        app.out.print(f"{one['board']}: its webhook {one['webhook']} is {one['how']}")
    if not done:
        app.out.info(NO_BOARDS)


async def _registered(desk: BotContext, board: BoardConfig) -> tuple[dict[str, Any], str]:
    from draftsman_bots.trello.usecases import webhooks

    try:
        return await webhooks.register(desk, board)
    except Failure as error:
        if error.http_status != 400:
            raise
        raise TrelloRefused(
            f"{board.name}: Trello makes no webhook: {error}; draftsman bots has to answer there:"
            " is it running, and does the proxy lead to its listen address?"
        ) from None


async def _permitted(rt: Runtime) -> None:
    from draftsman.domain.people.policy import Verb

    rt.policy.check(rt.policy.resolve(await rt.actor()), Verb.BOARDS)


def _row(
    hook: dict[str, Any], boards: dict[str, BoardConfig], callback: str | None
) -> dict[str, Any]:
    board = boards.get(str(hook.get("idModel")))
    state = "active" if hook.get("active") is True else "off"
    if hook.get("callbackURL") != callback:
        state = "other address"
    elif board is None:
        state = "not watched"
    return {
        "id": str(hook.get("id")),
        "board_id": str(hook.get("idModel")),
        "board": board.name if board else None,
        "state": state,
        "failures": hook.get("consecutiveFailures") or 0,
        "since": hook.get("firstConsecutiveFailDate"),
        "url": str(hook.get("callbackURL")),
    }


for _each in (list_webhooks, add, repair, remove):
    webhook.add_command(_each)
