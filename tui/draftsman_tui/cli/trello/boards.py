"""The `boards` command group: Trello boards whose labels create jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import ConfigError, DraftsmanError, Failure, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, ListGroup, command, example_lines
from draftsman_tui.cli.trello.board_edit import add, change
from draftsman_tui.cli.trello.board_preview import preview, test
from draftsman_tui.cli.trello.board_templates import bind, unbind
from draftsman_tui.cli.trello.board_text import document, print_board
from draftsman_tui.cli.trello.board_webhooks import webhook
from draftsman_tui.entities.trello_access import (
    NO_BOARDS,
    TrelloRefused,
    configured,
    find_board,
    remove_webhook,
    trello,
)
from draftsman_tui.terminal import params, times
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.runtime import Runtime
    from draftsman.trello.board import BoardConfig, LabelRule
    from draftsman_bots.process.checks import Check


@click.group(
    "boards",
    cls=ListGroup,
    epilog=example_lines(
        (
            "draftsman boards add https://trello.com/b/a1B2c3D4/work",
            "draftsman boards test Work",
            "draftsman boards set Work --checklists questions --due-dates",
            "draftsman boards list",
        )
    ),
)
def boards() -> None:
    """Manage Trello boards and their label rules.

    BOARD is the name, URL, short link or id of a board.
    """


@command("list", examples=("draftsman boards list", "draftsman boards list --json"))
async def list_boards(app: App) -> None:
    """List the configured boards and their health."""
    async with app.runtime(read_only=True) as rt:
        configs = await rt.boards.all()
        cursors = {config.board_id: await rt.boards.cursor(config.board_id) for config in configs}
        health, problem = await _health(rt, configs)
    if app.json:
        app.out.document(
            [
                document(
                    config,
                    polled_at=_at(cursors[config.board_id]),
                    checks=health.get(config.board_id),
                )
                for config in configs
            ]
        )
        return
    if not configs:
        app.out.info(NO_BOARDS)
        return
    rows = []
    for config in configs:
        labels = ", ".join(_label(id, rule) for id, rule in config.labels.items())
        cursor = cursors[config.board_id]
        polled = "never" if cursor is None else times.ago(cursor.polled_at)
        state = _state(health.get(config.board_id))
        rows.append((styled(config.name, "bold"), labels, polled, state, config.url))
    app.out.table(("NAME", "LABELS", "POLLED", "HEALTH", "URL"), rows, flexible=4)
    if problem:
        app.out.info(problem)
    for config in configs:
        for check in health.get(config.board_id, []):
            if check.status != "ok":
                app.out.info(check.text + (f" → {check.hint}" if check.hint else ""))


@command("show", examples=("draftsman boards show Work", "draftsman boards show Work --json"))
@click.argument("board", type=params.TEXT)
async def show(app: App, board: str) -> None:
    """Show the configuration of a board, with the names that its lists and labels have now.

    The JSON output has their ids.
    """
    async with app.runtime(read_only=True) as rt:
        config = await find_board(rt, board)
        cursor = await rt.boards.cursor(config.board_id)
        names, problem = (None, None) if app.json else await _names(rt, config)
    if app.json:
        app.out.document(document(config, polled_at=_at(cursor)))
        return
    print_board(app, config, names)
    if problem is not None:
        app.out.info(f"Trello could not be read, so that ids are shown: {problem}")
    app.out.print("never polled" if cursor is None else f"polled {times.ago(cursor.polled_at)}")


@command("remove", examples=("draftsman boards remove Work",))
@click.argument("board", type=params.TEXT)
@params.yes_option
async def remove(app: App, board: str, yes: bool) -> None:
    """Remove the configuration of a board; its jobs and comments are kept."""
    async with app.runtime() as rt:
        config = await find_board(rt, board)
        if not yes:
            if not app.out.interactive:
                raise UsageError(f"not a terminal; to remove {config.name}, use --yes")
            prompts.confirm(f"Remove {config.name}?")
        await rt.boards.remove(config.board_id, await rt.actor())
        warning = await remove_webhook(rt, config)
    if app.json:
        app.out.document({"board_id": config.board_id, "removed": True, "webhook_warning": warning})
        return
    app.out.print(f"{config.name} removed")
    if warning is not None:
        app.out.info(warning)


def _label(id: str, rule: LabelRule) -> str:
    return (rule.name or id) + (f" ({rule.text})" if rule.template else "")


def _state(checks: list[Check] | None) -> Text:
    """Summarize the checks of a board."""
    if checks is None:
        return styled("?")
    if failed := sum(check.status == "fail" for check in checks):
        return styled(f"{failed} failed", "bold red")
    if warned := sum(check.status == "warn" for check in checks):
        return styled(f"{warned} warning{'' if warned == 1 else 's'}", "yellow")
    return styled("healthy", "green")


async def _names(
    rt: Runtime, config: BoardConfig
) -> tuple[dict[str, str] | None, DraftsmanError | None]:
    """Return the names of a board's labels and lists by id, or the problem of Trello."""
    try:
        async with trello(rt) as context:
            from draftsman_bots.trello.boards import board_setup

            layout = await board_setup.fetch_layout(context.trello, config.board_id)
            return layout.names, None
    except DraftsmanError as error:
        return None, error


async def _health(
    rt: Runtime, boards: list[BoardConfig]
) -> tuple[dict[str, list[Check]], str | None]:
    """Return the checks of each board by id, and the problem that prevented checks."""
    if not boards:
        return {}, None
    try:
        configured(rt)
        async with trello(rt) as context:
            from draftsman_bots.trello import doctor

            identity = await doctor.check_identity(context)
            health = {board.board_id: await doctor.check_board(context, board) for board in boards}
            return health, None if identity.status == "ok" else f"{identity.text}: {identity.hint}"
    except (ConfigError, TrelloRefused, Failure) as error:
        return {}, str(error)


def _at(cursor: Any) -> Any:
    return None if cursor is None else cursor.polled_at.isoformat()


for _each in (list_boards, add, show, change, bind, unbind, test, preview, webhook, remove):
    boards.add_command(_each)
