"""The `boards test` and `boards preview` commands, which change nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

import click

from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.errors import Refused, UsageError
from draftsman.jobs.job import Status
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.trello.board_edit import NONE, read_template
from draftsman_tui.cli.trello.board_text import check_line, rule_text
from draftsman_tui.entities.trello_access import find_board, trello
from draftsman_tui.terminal import params
from draftsman_tui.terminal.extras import require

if TYPE_CHECKING:
    from draftsman.ids import JobRef
    from draftsman.runtime import Runtime
    from draftsman.trello.board import BoardConfig
    from draftsman_bots.trello.requests.label_preview import LabelPreview


@command("test", examples=("draftsman boards test Work", "draftsman boards test Work --json"))
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
            from draftsman_bots.trello.requests.label_preview import preview_labels

            checks = [
                await doctor.check_identity(context),
                *await doctor.check_board(context, config),
            ]
            layout = await board_setup.fetch_layout(context.trello, config.board_id)
            previews = await preview_labels(context, config)
    failed = [check for check in checks if check.status == "fail"]
    if app.json:
        app.out.document({"ok": not failed, "checks": checks, "labels": previews})
    else:
        for check in checks:
            app.out.print(*check_line(check))
        if not failed:
            app.out.print("ok    the bot may comment, move cards and change labels")
        _print(app, config, layout.names, previews)
    if failed:
        count = f"{len(failed)} check{'s' if len(failed) > 1 else ''}"
        raise Refused(f"{config.name}: {count} failed")


@command(
    "preview",
    examples=(
        "draftsman boards preview D-142",
        "draftsman boards preview --sample --board Work",
        "draftsman boards preview --sample --template '{job} completed: {summary}'",
    ),
)
@click.argument("job", type=params.JOB, required=False)
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
    require("trello")
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
    boards = await rt.boards.all()
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
        agent="tidy",
        repo="acme/pay",
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
