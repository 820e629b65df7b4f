"""`boards`: the Trello boards whose labels make jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import ConfigError, Failure, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, Group, command, example_lines
from draftsman_tui.cli.board.board_edit import add, change
from draftsman_tui.cli.board.board_preview import preview, test
from draftsman_tui.cli.board.board_text import document, print_board
from draftsman_tui.cli.board.board_webhooks import webhook
from draftsman_tui.common import params, times
from draftsman_tui.common.output import styled
from draftsman_tui.common.trello_access import (
    NO_BOARDS,
    TrelloRefused,
    configured,
    find_board,
    remove_webhook,
    trello,
)

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.domain.trello.board import BoardConfig
    from draftsman.runtime import Runtime
    from draftsman_bots.checks import Check


@click.group(
    "boards",
    cls=Group,
    epilog=example_lines(
        (
            "draftsman boards add https://trello.com/b/a1B2c3D4/work",
            "draftsman boards test Work",
            "draftsman boards list",
        )
    ),
)
def boards() -> None:
    """Watch Trello boards, and see what their labels do.

    A board is meant by its name, its address, its short link or its id.
    """


@command("list", examples=("draftsman boards list", "draftsman boards list --json"))
async def list_boards(app: App) -> None:
    """List the boards that are watched, and how they are."""
    async with app.runtime(read_only=True) as rt:
        found = await rt.boards.all()
        cursors = {one.board_id: await rt.boards.cursor(one.board_id) for one in found}
        health, why = await _health(rt, found)
    if app.json:
        app.out.document(
            [
                document(one, polled_at=_at(cursors[one.board_id]), checks=health.get(one.board_id))
                for one in found
            ]
        )
        return
    if not found:
        app.out.info(NO_BOARDS)
        return
    rows = []
    for one in found:
        labels = ", ".join(rule.name or id for id, rule in one.labels.items())
        polled = cursors[one.board_id]
        seen = "never" if polled is None else times.ago(polled.polled_at)
        rows.append(
            (styled(one.name, "bold"), labels, seen, _state(health.get(one.board_id)), one.url)
        )
    app.out.table(("NAME", "LABELS", "LOOKED AT", "HEALTH", "WHERE"), rows, flexible=4)
    if why:
        app.out.info(why)
    for one in found:
        for check in health.get(one.board_id, []):
            if check.status != "ok":
                app.out.info(check.text + (f" → {check.then}" if check.then else ""))


@command("show", examples=("draftsman boards show Work", "draftsman boards show Work --json"))
@click.argument("board", type=params.TEXT)
async def show(app: App, board: str) -> None:
    """Show how a board is watched."""
    async with app.runtime(read_only=True) as rt:
        config = await find_board(rt, board)
        cursor = await rt.boards.cursor(config.board_id)
    if app.json:
        app.out.document(document(config, polled_at=_at(cursor)))
        return
    print_board(app, config)
    app.out.print(
        "it was never looked at" if cursor is None else f"looked at {times.ago(cursor.polled_at)}"
    )


@command("remove", examples=("draftsman boards remove Work",))
@click.argument("board", type=params.TEXT)
@click.option("--yes", is_flag=True, help="Do not ask.")
async def remove(app: App, board: str, yes: bool) -> None:
    """Watch a board no more; its jobs stay, and so do the comments on its cards."""
    async with app.runtime() as rt:
        config = await find_board(rt, board)
        if not yes:
            if not app.out.interactive:
                raise UsageError(f"nobody is here to be asked; remove {config.name} with --yes")
            prompts.confirm(f"watch {config.name} no more?")
        await rt.boards.remove(config.board_id, await rt.actor())
        left = await remove_webhook(rt, config)
    if app.json:
        app.out.document({"board_id": config.board_id, "removed": True, "webhook_left": left})
        return
    app.out.print(f"{config.name} is not watched any more")
    if left is not None:
        app.out.info(left)


def _state(checks: list[Check] | None) -> Text:
    """Return how a board is, in a word."""
    if checks is None:
        return styled("?")
    if failed := sum(check.status == "fail" for check in checks):
        return styled(f"{failed} wrong", "bold red")
    if warned := sum(check.status == "warn" for check in checks):
        return styled(f"{warned} to see", "yellow")
    return styled("well", "green")


async def _health(
    rt: Runtime, found: list[BoardConfig]
) -> tuple[dict[str, list[Check]], str | None]:
    """Return what is found out about each board, and why nothing was."""
    if not found:
        return {}, None
    try:
        configured(rt)
        async with trello(rt) as desk:
            from draftsman_bots.trello import doctor

            me = await doctor.check_identity(desk)
            health = {one.board_id: await doctor.check_board(desk, one) for one in found}
            return health, None if me.status == "ok" else f"{me.text}: {me.then}"
    except (ConfigError, TrelloRefused, Failure) as error:
        return {}, str(error)


def _at(cursor: Any) -> Any:
    return None if cursor is None else cursor.polled_at.isoformat()


for _each in (list_boards, add, show, change, test, preview, webhook, remove):
    boards.add_command(_each)
