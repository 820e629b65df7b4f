"""The `boards bind` and `boards unbind` commands: labels that create jobs of a template."""

from __future__ import annotations

import click

from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.trello.board_edit import check_rules
from draftsman_tui.cli.trello.board_text import document
from draftsman_tui.entities.trello_access import find_board, trello
from draftsman_tui.terminal import params
from draftsman_tui.terminal.extras import require


@command(
    "bind",
    examples=("draftsman boards bind Work 'update package' bump", "draftsman boards show Work"),
)
@click.argument("board", type=params.TEXT)
@click.argument("label", type=params.TEXT)
@click.argument("template", type=params.TEXT)
async def bind(app: App, board: str, label: str, template: str) -> None:
    """Bind a label to a template: its cards create jobs of the template.

    Parameters are lines `NAME: VALUE` in the description of a card. TEMPLATE@VERSION binds a
    version.
    """
    async with app.runtime() as rt:
        old = await find_board(rt, board)
        async with trello(rt) as context:
            from draftsman_bots.trello.boards import board_setup

            layout = await board_setup.fetch_layout(context.trello, old.board_id)
            config, warnings = board_setup.bind_template(layout, old, label, template)
        await check_rules(rt, config)
        await rt.boards.save(config, await rt.actor())
    if app.json:
        app.out.document(document(config))
        return
    app.out.print(f"{config.name}: label {label} creates jobs of template {template}")
    for text in warnings:
        app.out.info(text)


@command("unbind", examples=("draftsman boards unbind Work 'update package'",))
@click.argument("board", type=params.TEXT)
@click.argument("label", type=params.TEXT)
async def unbind(app: App, board: str, label: str) -> None:
    """Unbind a label from its template: the label no longer creates jobs."""
    require("trello")
    from draftsman_bots.trello.boards import board_setup

    async with app.runtime() as rt:
        config = board_setup.unbind_template(await find_board(rt, board), label)
        await rt.boards.save(config, await rt.actor())
    if app.json:
        app.out.document(document(config))
    else:
        app.out.print(f"{config.name}: label {label} no longer creates jobs")
