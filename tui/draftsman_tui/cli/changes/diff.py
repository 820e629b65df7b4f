"""The `diff` command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from draftsman.actions.changes import no_diff_reason
from draftsman.agent_runs.changes.diff_reader import changed_files
from draftsman.agent_runs.changes.shown_diff import diffstat
from draftsman.errors import Refused, UsageError
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common.artifacts import content_json, patch_line
from draftsman_tui.terminal import params, stdio

if TYPE_CHECKING:
    from draftsman.ids import JobRef
    from draftsman.runtime import Runtime


@command(
    "diff",
    section="Changes",
    examples=(
        "draftsman diff D-142",
        "draftsman diff D-142 --stat",
        "draftsman diff D-142/3",
        "draftsman diff D-142/3 --since-approval",
        "draftsman diff D-142/3 --since D-142/2 --name-only",
        "draftsman diff D-142 | git apply",
    ),
)
@click.argument("job", metavar="JOB[/QUESTION]", type=params.QUESTION)
@click.option(
    "--since",
    type=params.QUESTION,
    metavar="QUESTION",
    help="Only the changes since this question of the job, e.g. D-142/2.",
)
@click.option(
    "--since-approval",
    is_flag=True,
    help="Only the changes since the last approval or request for changes.",
)
@click.option("--stat", is_flag=True, help="Only the changed files with their changed lines.")
@click.option("--name-only", is_flag=True, help="Only the names of the changed files.")
async def diff(
    app: App,
    job: tuple[JobRef, int | None],
    since: tuple[JobRef, int | None] | None,
    since_approval: bool,
    stat: bool,
    name_only: bool,
) -> None:
    """Print the changes of a job or of a question.

    The output is a patch for `git apply`. For a question, it is the patch under review.
    """
    if since is not None and since_approval:
        raise UsageError("--since and --since-approval cannot be combined")
    if stat and name_only:
        raise UsageError("--stat and --name-only cannot be combined")
    async with app.runtime(read_only=True) as rt:
        ref, ordinal = job
        number = await number_of(rt, ref)
        earlier = None
        if since is not None or since_approval:
            patch, fields = await _between(rt, number, ordinal, since)
            earlier = str(fields["since"])
        else:
            patch, fields = await _patch(rt, number, ordinal)
    if stat or name_only:
        _print_files(app, patch.decode("utf-8", "replace"), fields, stat=stat)
    elif app.json and earlier is not None:
        app.out.document(fields | {"content": patch.decode("utf-8", "replace")})
    elif app.json:
        app.out.document(fields | content_json(patch))
    elif earlier is not None and not patch:
        app.out.info(f"no changes since {earlier}")
    elif app.out.on_screen:
        lines = patch.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
        with app.out.paged():
            app.out.print(*map(patch_line, lines))
    else:
        stdio.write_bytes(patch)


async def _patch(rt: Runtime, number: int, ordinal: int | None) -> tuple[bytes, dict[str, object]]:
    """Return the patch of a job or question, and its fields for JSON."""
    name = job_name(number)
    run = None
    if ordinal is not None:
        question = await rt.questions.get(number, ordinal)
        name = question.name
        run = question.run
    patch = await rt.changes.patch(number, run)
    if patch is None or patch.size == 0:
        reason = await no_diff_reason(rt, name, number, patch is None)
        raise Refused(f"{reason}; see: draftsman show {job_name(number)}")
    return await rt.checkpoints.content(patch), as_data(patch)


async def _between(
    rt: Runtime, number: int, ordinal: int | None, since: tuple[JobRef, int | None] | None
) -> tuple[bytes, dict[str, object]]:
    """Return the changes between two questions of a job; by default up to its newest question."""
    earlier = None
    if since is not None:
        ref, earlier = since
        if earlier is None or await number_of(rt, ref) != number:
            raise UsageError(f"--since requires a question of {job_name(number)}")
    if ordinal is None:
        questions, _ = await rt.questions.of_job(number)
        if not questions:
            raise Refused(f"{job_name(number)} has asked no questions")
        ordinal = questions[-1].ordinal
    question = await rt.questions.get(number, ordinal)
    patch, name = await rt.changes.between(question, earlier)
    fields: dict[str, object] = {"question": question.name, "since": name}
    return patch.encode("utf-8", "surrogateescape"), fields


def _print_files(app: App, patch: str, fields: dict[str, object], *, stat: bool) -> None:
    """Print the names of the files of a patch, or their statistics."""
    files = changed_files(patch)
    if app.json:
        names = ("path", "insertions", "deletions")
        counts = [dict(zip(names, file, strict=True)) for file in files]
        app.out.document(fields | {"files": counts if stat else [path for path, _, _ in files]})
        return
    text = diffstat(patch, most=None) if stat else "\n".join(path for path, _, _ in files)
    with app.out.paged():
        app.out.print(text)
