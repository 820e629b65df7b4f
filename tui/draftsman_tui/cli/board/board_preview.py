"""`boards test` and `boards preview`: what would happen, and nothing does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

import click

from draftsman.domain.job import Status
from draftsman.domain.messages.delivery import DeliveryKind, Message, Subject
from draftsman.errors import Refused, UsageError
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.board.board_edit import NONE, read_template
from draftsman_tui.cli.board.board_text import check_line
from draftsman_tui.common import params
from draftsman_tui.common.extras import require
from draftsman_tui.common.trello_access import find_board, trello

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.domain.trello.board import BoardConfig
    from draftsman.runtime import Runtime
    from draftsman_bots.trello.usecases.label_preview import LabelPreview


@command("test", examples=("draftsman boards test Work", "draftsman boards test Work --json"))
@click.argument("board", type=params.TEXT)
async def test(app: App, board: str) -> None:
    """Read a board and say what would happen; nothing is changed there.

    Whose the token is, whether it may comment, move cards and swap labels, whether labels, lists
    and webhook are as configured, and what each label would do now. Exits with 1 where something
    does not work.
    """
    async with app.runtime(read_only=True) as rt:
        config = await find_board(rt, board)
        async with trello(rt) as desk:
            from draftsman_bots.trello import doctor
            from draftsman_bots.trello.usecases import board_setup
            from draftsman_bots.trello.usecases.label_preview import preview_labels

            checks = [await doctor.check_identity(desk), *await doctor.check_board(desk, config)]
            there = await board_setup.fetch_layout(desk.trello, config.board_id)
            ahead = await preview_labels(desk, config)
    failed = [one for one in checks if one.status == "fail"]
    if app.json:
        app.out.document({"ok": not failed, "checks": checks, "labels": ahead})
    else:
        for check in checks:
            app.out.print(*check_line(check))
        if not failed:
            app.out.print("ok    the bot may comment, move cards and swap labels there")
        _print(app, config, {**there.labels, **there.lists}, ahead)
    if failed:
        count = f"{len(failed)} check{'s' if len(failed) > 1 else ''}"
        raise Refused(f"{config.name}: {count} failed")


@command(
    "preview",
    examples=(
        "draftsman boards preview D-142",
        "draftsman boards preview --sample --board Work",
        "draftsman boards preview --sample --template '{job} is done: {summary}'",
    ),
)
@click.argument("job", type=params.JOB, required=False)
@click.option("--sample", is_flag=True, help="The result of a job that was made up.")
@click.option("--board", type=params.TEXT, help="In its words, where several are watched.")
@click.option(
    "--template", metavar="FILE|TEXT", type=params.TEXT, help="In these words, before they are set."
)
async def preview(
    app: App, job: JobRef | None, sample: bool, board: str | None, template: str | None
) -> None:
    """Show the comment that a result would be."""
    if (job is None) != sample:
        raise UsageError("say whose result: preview D-142, or --sample")
    given = read_template(template)
    require("trello")
    async with app.runtime(read_only=True) as rt:
        config = None if board is None else await find_board(rt, board)
        message = SAMPLE
        if job is not None:
            from draftsman.services.deliveries.message_builder import build_result

            message = build_result(await rt.read_model.job(await number_of(rt, job)))
        if config is None and given is None:
            config = await _only(rt)
    from draftsman_bots.trello.markdown import with_marker
    from draftsman_bots.trello.outbound.render import render

    words = config.comment_template if config is not None else None
    if given is not None:
        words = None if given == NONE else given
    text = with_marker(render(message, template=words), message.marker)
    if app.json:
        name = config.name if config is not None else None
        app.out.document({"board": name, "template": words, "text": text})
    else:
        app.out.print(text)


async def _only(rt: Runtime) -> BoardConfig | None:
    """Return the one board that is watched, None where none is; raises UsageError."""
    boards = await rt.boards.all()
    if len(boards) > 1:
        names = ", ".join(repr(one.name) for one in boards)
        raise UsageError(f"{len(boards)} boards are watched; give one with --board: {names}")
    return boards[0] if boards else None


def _print(app: App, config: BoardConfig, names: dict[str, str], ahead: list[LabelPreview]) -> None:
    for one in ahead:
        what = one.mode + (f" by {one.agent}" if one.agent else "")
        queued = config.queued_label_id
        then = f"becomes {names.get(queued, queued)!r}" if queued else "is taken off"
        app.out.print(f"label {one.name!r} makes a job, {what}, and {then}")
        counts = (
            (one.jobs, "would make one at the next look"),
            (one.known, "had it before, and make none"),
            (one.ignored, "are in ignored lists"),
        )
        for count, text in counts:
            if count:
                app.out.print(f"    {count} card(s) {text}")
    for id in config.ignored_list_ids:
        app.out.print(f"list {names.get(id, id)!r}: its cards make no jobs")
    for status, move in config.moves.items():
        source = ", ".join(repr(names.get(id, id)) for id in move.out_of)
        out_of = f" from {source}" if source else ""
        app.out.print(f"{status}: the card moves{out_of} to {names.get(move.to, move.to)!r}")


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
"""A job that never was."""
