"""`boards add` and `boards set`: names of labels and lists become ids before they are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.trello.comment_template import check
from draftsman.errors import Conflict, Refused, UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.board.board_text import document, print_board
from draftsman_tui.common import params
from draftsman_tui.common.trello_access import configured, find_board, trello

if TYPE_CHECKING:
    from draftsman.domain.trello.board import BoardConfig
    from draftsman.runtime import Runtime

NONE = "none"
_OPTIONS = (
    click.option(
        "--label",
        "labels",
        metavar="NAME[=MODE[/AGENT]]",
        type=params.TEXT,
        multiple=True,
        help="A label that makes jobs, of a mode and for an agent; repeatable.",
    ),
    click.option(
        "--queued", metavar="NAME", type=params.TEXT, help="The label that takes its place."
    ),
    click.option(
        "--ready",
        metavar="LIST",
        type=params.TEXT,
        help="Where a card goes whose job is completed.",
    ),
    click.option(
        "--ignore",
        metavar="LIST",
        type=params.TEXT,
        multiple=True,
        help="A list whose cards make no jobs; repeatable.",
    ),
    click.option(
        "--rule",
        "rules",
        metavar="'STATUS=LIST [from LIST,…]'",
        type=params.TEXT,
        multiple=True,
        help="Where a card goes in a status, and out of which lists alone; repeatable.",
    ),
    click.option(
        "--template",
        metavar="FILE|TEXT",
        type=params.TEXT,
        help="The comment that a result is; preview shows it.",
    ),
    click.option(
        "--take-existing/--leave-existing",
        default=None,
        help="Whether cards that have a label already make jobs at the first look.",
    ),
)


def _wishes(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@command(
    "add",
    examples=(
        "draftsman boards add https://trello.com/b/a1B2c3D4/work",
        "draftsman boards add a1B2c3D4 --label bug=fix --label why=investigate --ready Review",
        "draftsman boards add a1B2c3D4 --rule running=Doing --rule 'completed=Review from Doing'",
        "draftsman boards add a1B2c3D4 --ignore Icebox --template result.md --take-existing",
    ),
)
@click.argument("url", metavar="URL", type=params.TEXT)
@_wishes
async def add(app: App, url: str, **given: Any) -> None:
    """Watch a board: a label on one of its cards makes a job.

    URL is the board's address, its short link or its id. Labels and lists are named as the board
    has them, whatever their case, or by id; all labels of one name count. Without --label it is the
    label of [trello], and without --queued its queued one, if the board has that.
    """
    async with app.runtime() as rt:
        settings = configured(rt)
        template = read_template(given.pop("template"))
        async with trello(rt) as desk:
            from draftsman_bots.trello.usecases import board_setup

            there = await board_setup.fetch_layout(desk.trello, board_setup.parse_reference(url))
            if await rt.boards.of(there.id) is not None:
                text = (
                    f"{there.name} is watched already; change it: draftsman boards set {there.id}"
                )
                raise Conflict(text)
            remarks = []
            given["labels"] = given["labels"] or (settings.label,)
            if given["queued"] is None and board_setup.has_label(there, settings.queued):
                given["queued"] = settings.queued
            elif given["queued"] is None:
                remarks.append(
                    f"the board has no label {settings.queued!r}: labels are only taken off"
                )
            wanted = board_setup.BoardOptions(template=template, **_said(given))
            config, said = board_setup.build_config(there, wanted)
        _known_agents(rt, config)
        await rt.boards.save(config, await rt.actor())
        repos = await rt.repos.catalog()
    if app.json:
        app.out.document(document(config))
        return
    print_board(app, config, {**there.labels, **there.lists})
    for text in (*said, *remarks):
        app.out.info(text)
    if not repos.repos:
        app.out.info("no repository is known: jobs ask for one; draftsman repos add PATH|URL")
    app.out.info(f"see what it would do: draftsman boards test {config.board_id}")


@command(
    "set",
    examples=(
        "draftsman boards set Work --label bug=fix --label why=investigate",
        "draftsman boards set Work --ready Review --ignore none",
        "draftsman boards set Work --template none",
    ),
)
@click.argument("board", type=params.TEXT)
@_wishes
async def change(app: App, board: str, **given: Any) -> None:
    """Change how a board is watched.

    What is given takes the place of all that there was of it, what is not given stays, and `none`
    takes it away. The names of the board and its labels are read anew.
    """
    async with app.runtime() as rt:
        old = await find_board(rt, board)
        template = read_template(given.pop("template"))
        taking = given["take_existing"]
        if taking and await rt.boards.cursor(old.board_id) is not None:
            raise Refused(
                f"{old.name} was looked at already: --take-existing is for the first look; put a"
                " label on again to make a job"
            )
        async with trello(rt) as desk:
            from draftsman_bots.trello.usecases import board_setup

            there = await board_setup.fetch_layout(desk.trello, old.board_id)
            wanted = board_setup.BoardOptions(template=template, **_said(given))
            config, said = board_setup.build_config(there, wanted, old)
        _known_agents(rt, config)
        await rt.boards.save(config, await rt.actor())
    if app.json:
        app.out.document(document(config))
        return
    print_board(app, config, {**there.labels, **there.lists})
    for text in said:
        app.out.info(text)


def read_template(given: str | None) -> str | None:
    """Return a template, of a file or as it was typed; raises UsageError."""
    if given is None or given == NONE:
        return given
    path = Path(given)
    try:
        is_file = given == "-" or path.is_file()
    except OSError:  # no name of a file: too long
        is_file = False
    text = params.read_text(path) if is_file else given
    if not is_file and "{" not in text:
        raise UsageError(
            f"--template {given[:60]!r}: no such file, and no text with a field in it, as"
            " '{job} is done: {summary}'"
        )
    try:
        return check(text, name="--template")
    except ValueError as error:
        raise UsageError(str(error)) from None


def _said(given: dict[str, Any]) -> dict[str, Any]:
    """Return what was given; an option that may be repeated, and was not given, is None."""
    return {name: None if value == () else value for name, value in given.items()}


def _known_agents(rt: Runtime, config: BoardConfig) -> None:
    for rule in config.labels.values():
        if rule.agent is not None and rule.agent not in rt.settings.agents:
            known = ", ".join(sorted(rt.settings.agents))
            raise UsageError(f"label {rule.name!r}: no agent {rule.agent!r}; there are: {known}")
