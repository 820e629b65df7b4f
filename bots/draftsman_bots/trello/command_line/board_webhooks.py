"""The `boards webhook` command group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import ConfigError, Failure, UsageError
from draftsman_bots.trello.command_line.board_access import (
    NO_BOARDS,
    TrelloRefused,
    configured,
    find_board,
    trello,
)
from draftsman_bots.trello.records.service import boards_of
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, command_group
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.records.board import BoardConfig


@command_group(
    "webhook", examples=("draftsman boards webhook list", "draftsman boards webhook repair Work")
)
def webhook() -> None:
    """Manage the Trello webhooks of boards.

    With [trello] callback_url, the bot creates and repairs webhooks every five minutes. Boards are
    polled in any case.
    """


@webhook.subcommand("list", examples=("draftsman boards webhook list",))
async def list_webhooks(app: App) -> None:
    """List the webhooks of the bot's token and their state."""
    async with app.runtime(read_only=True) as rt, trello(rt) as context:
        from draftsman_bots.trello.boards import webhooks

        boards = {board.board_id: board for board in await boards_of(rt).all()}
        callback = configured(rt).callback_url
        hooks = await webhooks.list_webhooks(context)
        rows = [_row(hook, boards, callback) for hook in hooks]
    registered = {row["board_id"] for row in rows if row["state"] != "other_url"}
    missing = [board.name for id, board in boards.items() if callback and id not in registered]
    if app.json:
        app.out.document({"callback_url": callback, "webhooks": rows, "missing": missing})
        return
    if rows:
        heads = ("ID", "BOARD", "STATE", "FAILURES", "URL")
        cells = [
            (
                row["id"],
                row["board"] or row["board_id"],
                row["state"].replace("_", " "),
                str(row["failures"]),
                row["url"],
            )
            for row in rows
        ]
        app.out.table(heads, cells, flexible=4, right=(3,))
    else:
        app.out.info("no webhooks")
    if callback is None:
        app.out.info("[trello] callback_url is not set, so boards are only polled")
    for name in missing:
        app.out.info(f"{name} has no webhook to {callback}; run: draftsman boards webhook repair")


@webhook.subcommand("add", examples=("draftsman boards webhook add Work",))
@click.argument("board", type=params.TEXT)
async def add(app: App, board: str) -> None:
    """Register a webhook for a board at callback_url.

    Trello sends a HEAD request there first, so `draftsman bots` must be running.
    """
    async with app.runtime() as rt:
        await _register(app, rt, [await find_board(rt, board)])


@webhook.subcommand(
    "repair", examples=("draftsman boards webhook repair", "draftsman boards webhook repair Work")
)
@click.argument("board", type=params.TEXT, required=False)
async def repair(app: App, board: str | None) -> None:
    """Create missing webhooks, enable disabled ones, and replace webhooks with another URL.

    Without BOARD, applies to all boards.
    """
    async with app.runtime() as rt:
        boards = await boards_of(rt).all() if board is None else [await find_board(rt, board)]
        await _register(app, rt, boards)


@webhook.subcommand("remove", examples=("draftsman boards webhook remove Work",))
@click.argument("board", metavar="BOARD|ID", type=params.TEXT)
@params.yes_option
async def remove(app: App, board: str, yes: bool) -> None:
    """Remove the webhook of a board, or the webhook with an id from webhook list.

    If callback_url is set, the bot registers the webhook of a configured board again.
    """
    async with app.runtime() as rt, trello(rt) as context:
        from draftsman_bots.trello.boards import webhooks

        await _check_permission(rt)
        known = {str(hook.get("id")) for hook in await webhooks.list_webhooks(context)}
        config = None if board in known else await find_board(rt, board)
        if not yes:
            if not app.out.interactive:
                raise UsageError("not a terminal; to remove the webhook, use --yes")
            prompts.confirm(f"Remove the webhook of {config.name if config else board}?")
        if config is None:
            await webhooks.delete(context, board)
        removed = True if config is None else await webhooks.remove(context, config)
        callback = configured(rt).callback_url
    if app.json:
        app.out.document({"board": board, "removed": removed})
        return
    app.out.print("webhook removed" if removed else f"{board} has no webhook")
    if config is not None and callback is not None:
        app.out.info("the bot registers it again while [trello] callback_url is set")


async def _register(app: App, rt: Runtime, boards: list[BoardConfig]) -> None:
    settings = configured(rt)
    if settings.callback_url is None:
        raise ConfigError(
            "[trello] callback_url is not set, so webhooks cannot be registered"
            " (draftsman help --page trello#with-a-public-address)"
        )
    await _check_permission(rt)
    results = []
    async with trello(rt) as context:
        for board in boards:
            hook, outcome = await _register_board(context, board)
            results.append({"board": board.name, "webhook": hook["id"], "outcome": outcome})
    if app.json:
        app.out.document(results)
        return
    for result in results:
        app.out.print(f"{result['board']}: webhook {result['webhook']} {result['outcome']}")
    if not results:
        app.out.info(NO_BOARDS)


async def _register_board(context: BotContext, board: BoardConfig) -> tuple[dict[str, Any], str]:
    from draftsman_bots.trello.boards import webhooks

    try:
        return await webhooks.register(context, board)
    except Failure as error:
        if error.http_status != 400:
            raise
        raise TrelloRefused(
            f"{board.name}: Trello did not create the webhook: {error}; check that draftsman bots"
            " is running and that callback_url reaches it through the proxy"
        ) from None


async def _check_permission(rt: Runtime) -> None:
    from draftsman.people.policy import Verb

    rt.policy.check(rt.policy.resolve(await rt.actor()), Verb.BOARDS)


def _row(
    hook: dict[str, Any], boards: dict[str, BoardConfig], callback: str | None
) -> dict[str, Any]:
    board = boards.get(str(hook.get("idModel")))
    state = "active" if hook.get("active") is True else "disabled"
    if hook.get("callbackURL") != callback:
        state = "other_url"
    elif board is None:
        state = "unwatched"
    return {
        "id": str(hook.get("id")),
        "board_id": str(hook.get("idModel")),
        "board": board.name if board else None,
        "state": state,
        "failures": hook.get("consecutiveFailures") or 0,
        "since": hook.get("firstConsecutiveFailDate"),
        "url": str(hook.get("callbackURL")),
    }
