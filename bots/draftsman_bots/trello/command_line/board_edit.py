"""The `boards add` and `boards set` commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import Conflict, Refused, UsageError
from draftsman_bots.trello.command_line.board_access import configured, find_board, trello
from draftsman_bots.trello.command_line.board_text import print_board
from draftsman_bots.trello.records import actions
from draftsman_bots.trello.records.cards import check
from draftsman_bots.trello.records.service import boards_of
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.perform import act
from draftsman_tui.terminal import params

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_bots.trello.boards.board_setup import BoardLayout, BoardOptions
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.records.board import BoardConfig

NONE = "none"
_OPTIONS = (
    click.option(
        "--label",
        "labels",
        metavar="NAME[=MODE[/AGENT]]",
        type=params.TEXT,
        multiple=True,
        help="Label of jobs, with mode and agent, =template/TEMPLATE or =type/TYPE; repeatable.",
    ),
    click.option(
        "--queued-label",
        metavar="NAME",
        type=params.TEXT,
        help="Label that replaces the job label when the job is queued.",
    ),
    click.option(
        "--ready",
        metavar="LIST",
        type=params.TEXT,
        help="List to move a card to when its job completes.",
    ),
    click.option(
        "--ignore",
        metavar="LIST",
        type=params.TEXT,
        multiple=True,
        help="List whose cards create no jobs; repeatable.",
    ),
    click.option(
        "--rule",
        "rules",
        metavar="'STATUS=LIST [from LIST,…]'",
        type=params.TEXT,
        multiple=True,
        help="Move the card to a list at a status, optionally only from some lists; repeatable.",
    ),
    click.option(
        "--template",
        metavar="FILE|TEXT",
        type=params.TEXT,
        help="Template of result comments; see boards preview.",
    ),
    click.option(
        "--checklists",
        type=click.Choice(("off", "questions", "all")),
        help="Show the choices of questions, or also approvals, as a checklist of the card.",
    ),
    click.option(
        "--due-dates/--no-due-dates",
        default=None,
        help="Show the expiry of a question as the due date; a later due date extends it.",
    ),
    click.option(
        "--field",
        "fields",
        metavar="status|cost=NAME",
        type=params.TEXT,
        multiple=True,
        help="Custom field for the status or the cost; auto: by name; repeatable.",
    ),
    click.option(
        "--digest-card",
        metavar="CARD",
        type=params.TEXT,
        help="Card for the digests of people, by URL or id.",
    ),
    click.option(
        "--include-existing/--exclude-existing",
        default=None,
        help="Whether cards that already have a label create jobs in the first poll.",
    ),
)


def _board_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@command(
    "add",
    examples=(
        "draftsman boards add https://trello.com/b/a1B2c3D4/work",
        "draftsman boards add a1B2c3D4 --label bug=fix --label why=investigate --ready Review",
        "draftsman boards add a1B2c3D4 --rule running=Doing --rule 'completed=Review from Doing'",
        "draftsman boards add a1B2c3D4 --ignore Icebox --template result.md --include-existing",
        "draftsman boards add a1B2c3D4 --checklists questions --due-dates",
    ),
    does=(actions.watch,),
)
@click.argument("url", metavar="URL", type=params.TEXT)
@_board_options
async def add(app: App, url: str, **options: Any) -> None:
    """Configure a board whose labels create jobs.

    URL is the board's URL, short link or id. Give labels and lists by name (ignoring case) or by
    id; a name refers to all labels of that name. --label and --queued-label default to the labels
    in [trello]; the queued label is optional on the board. Custom fields named "draftsman status"
    and "draftsman cost" are used if the board has them.
    """
    async with app.runtime() as rt:
        settings = configured(rt)
        template = read_template(options.pop("template"))
        async with trello(rt) as context:
            from draftsman_bots.trello.boards import board_setup

            layout = await board_setup.fetch_layout(
                context.trello, board_setup.parse_reference(url)
            )
            if await boards_of(rt).of(layout.id) is not None:
                text = (
                    f"{layout.name} is already configured;"
                    f" to change it: draftsman boards set {layout.id}"
                )
                raise Conflict(text)
            hints = []
            options["labels"] = options["labels"] or (settings.label,)
            if options["queued_label"] is None and board_setup.has_label(
                layout, settings.queued_label
            ):
                options["queued_label"] = settings.queued_label
            elif options["queued_label"] is None:
                hints.append(
                    f"the board has no label {settings.queued_label!r}:"
                    " labels are removed, not replaced"
                )
            options["fields"] = options["fields"] or ("auto",)
            board_options = await _build_options(context, layout, template, options)
            config, warnings = board_setup.build_config(layout, board_options)
        await check_rules(rt, config)
        await act(app, rt, actions.watch, config, prints=app.json)
        repos = await rt.repos.catalog()
    if app.json:
        return
    print_board(app, config, layout.names)
    for text in (*warnings, *hints):
        app.out.info(text)
    if not repos.repos:
        app.out.info("no repositories yet; to add a repository: draftsman repos add PATH|URL")
    app.out.info(f"to test the configuration: draftsman boards test {config.board_id}")


@command(
    "set",
    examples=(
        "draftsman boards set Work --label bug=fix --label why=investigate",
        "draftsman boards set Work --ready Review --ignore none",
        "draftsman boards set Work --template none",
        "draftsman boards set Work --field status=Phase --field cost=Cost --digest-card none",
    ),
    does=(actions.watch,),
)
@click.argument("board", type=params.TEXT)
@_board_options
async def change(app: App, board: str, **options: Any) -> None:
    """Change the configuration of a board.

    An option replaces all previous values of that setting, `none` clears it, and settings without
    an option are kept. Names of the board and its labels are updated from Trello.
    """
    async with app.runtime() as rt:
        old = await find_board(rt, board)
        template = read_template(options.pop("template"))
        if options["include_existing"] and await boards_of(rt).cursor(old.board_id) is not None:
            raise Refused(
                f"--include-existing applies to the first poll, and {old.name} was already polled;"
                " add the label to the card again to create a job"
            )
        async with trello(rt) as context:
            from draftsman_bots.trello.boards import board_setup

            layout = await board_setup.fetch_layout(context.trello, old.board_id)
            board_options = await _build_options(context, layout, template, options)
            config, warnings = board_setup.build_config(layout, board_options, old)
        await check_rules(rt, config)
        await act(app, rt, actions.watch, config, prints=app.json)
    if app.json:
        return
    print_board(app, config, layout.names)
    for text in warnings:
        app.out.info(text)


def read_template(value: str | None) -> str | None:
    """Read a template from a file, or return the text itself; raises UsageError."""
    if value is None or value == NONE:
        return value
    path = Path(value)
    try:
        is_file = value == "-" or path.is_file()
    except OSError:  # too long for a file name
        is_file = False
    text = params.read_text(path) if is_file else value
    if not is_file and "{" not in text:
        raise UsageError(
            f"--template {value[:60]!r}: not a file, and a template text needs a field such as"
            " '{job} is done: {summary}'"
        )
    try:
        return check(text, name="--template")
    except ValueError as error:
        raise UsageError(str(error)) from None


async def _build_options(
    context: BotContext, layout: BoardLayout, template: str | None, options: dict[str, Any]
) -> BoardOptions:
    """Return the options of a command, with the id of the card for digests."""
    from draftsman_bots.trello.boards import board_fields, board_setup

    if (card := options["digest_card"]) is not None:
        digest_card = await board_fields.digest_card(context.trello, layout.id, card)
        options["digest_card"] = digest_card or NONE
    return board_setup.BoardOptions(template=template, **_given_options(options))


def _given_options(options: dict[str, Any]) -> dict[str, Any]:
    """Replace the empty value of repeatable options by None."""
    return {name: None if value == () else value for name, value in options.items()}


async def check_rules(rt: Runtime, config: BoardConfig) -> None:
    """Raise UsageError for an unknown agent of a label, NotFound for a template or type."""
    for rule in config.labels.values():
        if rule.template is not None:
            await rt.job_forms.find(rule.template)
        if rule.agent is not None and rule.agent not in rt.settings.agents:
            known = ", ".join(sorted(rt.settings.agents))
            raise UsageError(
                f"label {rule.name!r}: unknown agent {rule.agent!r}; available: {known}"
            )
