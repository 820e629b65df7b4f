"""The `boards` command group: Trello boards whose labels create jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.errors import ConfigError, DraftsmanError, Failure, Refused, UsageError
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.jobs.job import Mode, RequestSummary, Status
from draftsman_bots.trello.command_line.board_access import (
    TrelloRefused,
    configured,
    find_board,
    remove_webhook,
    trello,
)
from draftsman_bots.trello.command_line.board_edit import (
    NONE,
    add,
    change,
    check_rules,
    read_template,
)
from draftsman_bots.trello.command_line.board_rows import BOARDS, BoardRow
from draftsman_bots.trello.command_line.board_text import document, print_board, rule_text
from draftsman_bots.trello.command_line.board_webhooks import webhook
from draftsman_bots.trello.records import actions
from draftsman_bots.trello.records.service import boards_of
from draftsman_tui.cli.app import App, ListGroup, command_group, number_of
from draftsman_tui.cli.lists import print_list
from draftsman_tui.cli.perform import act
from draftsman_tui.terminal import params
from draftsman_tui.terminal.extras import of_channel, require
from draftsman_tui.terminal.output import check_lines

if TYPE_CHECKING:
    from draftsman.ids import JobRef
    from draftsman.runtime import Runtime
    from draftsman_bots.process.checks import Check
    from draftsman_bots.trello.records.board import BoardConfig
    from draftsman_bots.trello.requests.label_jobs import LabelPreview


@command_group(
    "boards",
    section="Setup",
    cls=ListGroup,
    examples=(
        "draftsman boards add https://trello.com/b/a1B2c3D4/work",
        "draftsman boards test Work",
        "draftsman boards set Work --checklists questions --due-dates",
        "draftsman boards list",
    ),
)
def boards() -> None:
    """Manage Trello boards and their label rules.

    BOARD is the name, URL, short link or id of a board.
    """


boards.add_command(add)
boards.add_command(change)
boards.add_command(webhook)


# The `boards test` and `boards preview` commands, which change nothing.


@boards.subcommand(
    "test", examples=("draftsman boards test Work", "draftsman boards test Work --json")
)
@click.argument("board", type=params.TEXT)
async def test(app: App, board: str) -> None:
    """Test the configuration of a board without changing it.

    Checks the token, its permissions to comment, move cards and change labels, and the configured
    labels, lists and webhook. Shows which jobs each label would create now. Exits with 1 if a check
    fails.
    """
    async with app.runtime(read_only=True) as rt:
        config = await find_board(rt, board)
        async with trello(rt) as context:
            from draftsman_bots.trello import doctor
            from draftsman_bots.trello.boards import board_setup
            from draftsman_bots.trello.requests.label_jobs import preview_labels

            checks = [await doctor.check_identity(context)]
            _print_checks(app, checks)
            layout = await board_setup.fetch_layout(context.trello, config.board_id)
            results = await doctor.check_board(doctor.Account(context), config, layout)
            _print_checks(app, results)
            checks += results
            previews = await preview_labels(context, config)
    failed = [check for check in checks if check.status == "fail"]
    if app.json:
        app.out.document({"ok": not failed, "checks": checks, "labels": previews})
    else:
        if not failed:
            app.out.print("ok    the bot may comment, move cards and change labels")
        _print(app, config, layout.names, previews)
    if failed:
        count = counted(len(failed), "check")
        raise Refused(f"{config.name}: {count} failed")


def _print_checks(app: App, checks: Sequence[Check]) -> None:
    """Print results as soon as they are known, except in a JSON document."""
    for check in () if app.json else checks:
        app.out.print(*check_lines(check.status, check.text, check.hint))


@boards.subcommand(
    "preview",
    examples=(
        "draftsman boards preview D-142",
        "draftsman boards preview --sample --board Work",
        "draftsman boards preview --sample --template '{job} completed: {summary}'",
    ),
)
@click.argument("job", type=params.JOB_OF, required=False)
@click.option("--sample", is_flag=True, help="Use a sample result.")
@click.option("--board", type=params.TEXT, help="Use the template of this board.")
@click.option("--template", metavar="FILE|TEXT", type=params.TEXT, help="Use this template.")
async def preview(
    app: App, job: JobRef | None, sample: bool, board: str | None, template: str | None
) -> None:
    """Preview the comment for a result."""
    if (job is None) != sample:
        raise UsageError("specify a job or --sample")
    override = read_template(template)
    require(of_channel("trello"))
    async with app.runtime(read_only=True) as rt:
        config = None if board is None else await find_board(rt, board)
        message = SAMPLE
        if job is not None:
            from draftsman.deliveries.service.message_builder import build_result

            number = await number_of(rt, job)
            questions, _ = await rt.questions.of_job(number)
            message = build_result(await rt.read_model.job(number), questions)
        if config is None and override is None:
            config = await _only(rt)
    from draftsman_bots.trello.deliveries.markdown import with_marker
    from draftsman_bots.trello.deliveries.render import render

    comment_template = config.comment_template if config is not None else None
    if override is not None:
        comment_template = None if override == NONE else override
    text = with_marker(render(message, template=comment_template), message.marker)
    if app.json:
        name = config.name if config is not None else None
        app.out.document({"board": name, "template": comment_template, "text": text})
    else:
        app.out.print(text)


async def _only(rt: Runtime) -> BoardConfig | None:
    """Return the only configured board, if any; raises UsageError if there are several."""
    boards = await boards_of(rt).all()
    if len(boards) > 1:
        names = ", ".join(repr(board.name) for board in boards)
        raise UsageError(f"--board is required, {len(boards)} boards are configured: {names}")
    return boards[0] if boards else None


def _print(
    app: App, config: BoardConfig, names: dict[str, str], previews: list[LabelPreview]
) -> None:
    for preview in previews:
        kind = rule_text(config.labels[preview.label])
        queued = config.queued_label_id
        action = f"replaced by {names.get(queued, queued)!r}" if queued else "removed"
        app.out.print(f"label {preview.name!r} creates a job ({kind}) and is {action}")
        counts = (
            (preview.jobs, "would create a job in the next poll"),
            (preview.known, "had the label before and create none"),
            (preview.ignored, "in ignored lists"),
        )
        for count, text in counts:
            if count:
                app.out.print(f"    {count} card(s) {text}")
    for id in config.ignored_list_ids:
        app.out.print(f"list {names.get(id, id)!r}: ignored, its cards create no jobs")
    for status, move in config.moves.items():
        source = ", ".join(repr(names.get(id, id)) for id in move.out_of)
        out_of = f" from {source}" if source else ""
        app.out.print(f"{status}: move the card{out_of} to {names.get(move.to, move.to)!r}")


_THEN = datetime(2026, 1, 1, 12, tzinfo=UTC)
SAMPLE = Message(
    marker="00000000-0000-4000-8000-000000000142",
    seq=0,
    kind=DeliveryKind.RESULT,
    target="",
    created_at=_THEN,
    subject=Subject(
        number=142,
        id=UUID("00000000-0000-4000-8000-000000000142"),
        type="run_agent",
        status=Status.COMPLETED,
        title="Fix the parser",
        request=RequestSummary(Mode.FIX, "tidy", "github.com", "acme", "pay"),
        invoker="anna",
        result={
            "summary": "The parser takes *empty* lines now.\nTwo tests were added.",
            "pr_url": "https://github.com/acme/pay/pull/7",
            "files": 3,
        },
        created_at=_THEN,
        finished_at=_THEN,
    ),
)
"""Result of a fictional job."""


# The `boards bind` and `boards unbind` commands: labels that create jobs of a template or type.


@boards.subcommand(
    "bind",
    examples=("draftsman boards bind Work 'update package' bump", "draftsman boards show Work"),
    does=(actions.watch,),
)
@click.argument("board", type=params.TEXT)
@click.argument("label", type=params.TEXT)
@click.argument("template", type=params.TEXT)
async def bind(app: App, board: str, label: str, template: str) -> None:
    """Bind a label to a template or a described job type: its cards create such jobs.

    Parameters are lines `NAME: VALUE` in the description of a card, or custom fields with their
    names. TEMPLATE@VERSION binds a version, type/NAME a type whose name a template has, too.
    """
    version = "".join(template.partition("@")[1:])
    async with app.runtime() as rt:
        form = await rt.job_forms.find(template)
        old = await find_board(rt, board)
        async with trello(rt) as context:
            from draftsman_bots.trello.boards import board_setup

            layout = await board_setup.fetch_layout(context.trello, old.board_id)
            config, warnings = board_setup.bind_form(layout, old, label, f"{form.path}{version}")
        await check_rules(rt, config)
        kind = form.path.partition("/")[0]
        says = f"has the label {label}, which creates jobs of {kind} {form.label}{version}"
        await act(app, rt, actions.watch, config, says=says)
    for text in () if app.json else warnings:
        app.out.info(text)


@boards.subcommand(
    "unbind", examples=("draftsman boards unbind Work 'update package'",), does=(actions.watch,)
)
@click.argument("board", type=params.TEXT)
@click.argument("label", type=params.TEXT)
async def unbind(app: App, board: str, label: str) -> None:
    """Unbind a label from its template: the label no longer creates jobs."""
    require(of_channel("trello"))
    from draftsman_bots.trello.boards import board_setup

    async with app.runtime() as rt:
        config = board_setup.unbind_form(await find_board(rt, board), label)
        says = f"has the label {label}, which no longer creates jobs"
        await act(app, rt, actions.watch, config, says=says)


@boards.subcommand(
    "list", examples=("draftsman boards list", "draftsman boards list --json"), lists=BOARDS
)
async def list_boards(app: App) -> None:
    """List the configured boards and their health."""
    async with app.runtime(read_only=True) as rt:
        configs = await boards_of(rt).all()
        cursors = {
            config.board_id: await boards_of(rt).cursor(config.board_id) for config in configs
        }
        health, problem = await _health(rt, configs)
    rows = [
        BoardRow(config, _polled_at(cursors[config.board_id]), health.get(config.board_id))
        for config in configs
    ]
    print_list(app, BOARDS, rows)
    if app.json:
        return
    if problem:
        app.out.info(problem)
    for config in configs:
        for check in health.get(config.board_id, []):
            if check.status != "ok":
                app.out.info(check.text + (f" → {check.hint}" if check.hint else ""))


@boards.subcommand(
    "show", examples=("draftsman boards show Work", "draftsman boards show Work --json")
)
@click.argument("board", type=params.TEXT)
async def show(app: App, board: str) -> None:
    """Show the configuration of a board, with the names that its lists and labels have now.

    The JSON output has their ids.
    """
    async with app.runtime(read_only=True) as rt:
        config = await find_board(rt, board)
        cursor = await boards_of(rt).cursor(config.board_id)
        names, problem = (None, None) if app.json else await _names(rt, config)
    if app.json:
        app.out.document(document(config, polled_at=_polled_at(cursor)))
        return
    print_board(app, config, names)
    if problem is not None:
        app.out.info(f"Trello could not be read, so that ids are shown: {problem}")
    app.out.print("never polled" if cursor is None else f"polled {times.ago(cursor.polled_at)}")


@boards.subcommand("remove", examples=("draftsman boards remove Work",), does=(actions.unwatch,))
@click.argument("board", type=params.TEXT)
async def remove(app: App, board: str, yes: bool) -> None:
    """Remove the configuration of a board; its jobs and comments are kept."""
    async with app.runtime() as rt:
        config = await find_board(rt, board)
        await act(app, rt, actions.unwatch, config, delete_webhook=remove_webhook, yes=yes)


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
            account = doctor.Account(context)
            health = {board.board_id: await doctor.check_board(account, board) for board in boards}
            return health, None if identity.status == "ok" else f"{identity.text}: {identity.hint}"
    except (ConfigError, TrelloRefused, Failure) as error:
        return {}, str(error)


def _polled_at(cursor: Any) -> datetime | None:
    return None if cursor is None else cursor.polled_at
