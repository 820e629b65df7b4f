"""The `diff` and `artifacts` commands."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.ids import job_name
from draftsman.errors import Refused, UsageError
from draftsman_tui.cli.app import App, Group, command, example_lines, number_of
from draftsman_tui.common import params, stdio, times
from draftsman_tui.common.artifact_text import format_size, no_diff_reason, patch_line, printable
from draftsman_tui.common.output import as_data, plain, styled

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef
    from draftsman.runtime import Runtime


@command(
    "diff",
    examples=(
        "draftsman diff D-142",
        "draftsman diff D-142/3",
        "draftsman diff D-142/3 --since-approval",
        "draftsman diff D-142/3 --since D-142/2",
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
@click.option("--since-approval", is_flag=True, help="Only the changes since the last approval.")
async def diff(
    app: App,
    job: tuple[JobRef, int | None],
    since: tuple[JobRef, int | None] | None,
    since_approval: bool,
) -> None:
    """Print the changes of a job or of a question.

    The output is a patch for `git apply`. For a question, it is the patch under review.
    """
    if since is not None and since_approval:
        raise UsageError("--since and --since-approval cannot be combined")
    async with app.runtime(read_only=True) as rt:
        ref, ordinal = job
        number = await number_of(rt, ref)
        if since is not None or since_approval:
            await _print_since(app, rt, number, ordinal, since)
            return
        name, run = job_name(number), None
        if ordinal is not None:
            question = await rt.questions.get(number, ordinal)
            name, run = question.name, question.run
        patch = await rt.checkpoints.patch(number, run)
        if patch is None or patch.size == 0:
            reason = await no_diff_reason(rt, name, number, patch is None)
            raise Refused(f"{reason}; see: draftsman show {job_name(number)}")
        data = await rt.checkpoints.content(patch)
    if app.json:
        app.out.document(as_data(patch) | _content(data))
    elif app.out.on_screen:
        lines = data.decode("utf-8", "replace").splitlines()
        app.out.print(*(patch_line(text) for text in lines))
    else:
        stdio.write_bytes(data)


async def _print_since(
    app: App, rt: Runtime, number: int, ordinal: int | None, since: tuple[JobRef, int | None] | None
) -> None:
    """Print the changes between two questions of a job; by default up to its newest question."""
    earlier = None
    if since is not None:
        ref, earlier = since
        if earlier is None or await number_of(rt, ref) != number:
            raise UsageError(f"--since requires a question of {job_name(number)}")
    if ordinal is None:
        asked, _ = await rt.questions.of_job(number)
        if not asked:
            raise Refused(f"{job_name(number)} has asked no questions")
        ordinal = asked[-1].ordinal
    question = await rt.questions.get(number, ordinal)
    patch, name = await rt.checkpoints.reviews.between(question, earlier)
    if app.json:
        app.out.document({"question": question.name, "since": name, "content": printable(patch)})
    elif not patch:
        app.out.info(f"no changes since {name}")
    elif app.out.on_screen:
        app.out.print(*(patch_line(printable(text)) for text in patch.split("\n")[:-1]))
    else:
        stdio.write_bytes(patch.encode("utf-8", "surrogateescape"))


@click.group(
    cls=Group,
    name="artifacts",
    epilog=example_lines(
        ("draftsman artifacts list D-142", "draftsman artifacts get D-142 report.json -o r.json")
    ),
)
def artifacts() -> None:
    """List or download the artifacts of a job."""


@command("list", examples=("draftsman artifacts list D-142",))
@click.argument("job", type=params.JOB)
async def list_artifacts(app: App, job: JobRef) -> None:
    """List the artifacts of a job."""
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        listed = await rt.checkpoints.artifacts(number)
    if app.json:
        app.out.document(listed)
    elif not listed:
        app.out.info(f"{job_name(number)} has no artifacts")
    else:
        rows = [
            (
                styled(artifact.name, "bold"),
                artifact.kind,
                format_size(artifact.size),
                f".{artifact.run}",
                times.ago(artifact.created_at),
            )
            for artifact in listed
        ]
        heads = ("NAME", "KIND", "SIZE", "RUN", "CREATED")
        app.out.table(heads, rows, flexible=0, right=(2,))


@command(
    "get",
    examples=("draftsman artifacts get D-142 changes.patch -o changes.patch",),
)
@click.argument("job", type=params.JOB)
@click.argument("name", type=params.TEXT)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="File or directory to write to; default - (stdout).",
)
async def get(app: App, job: JobRef, name: str, output: Path | None) -> None:
    """Download an artifact; the newest if several have the name."""
    async with app.runtime(read_only=True) as rt:
        artifact, data = await rt.checkpoints.read_artifact(await number_of(rt, job), name)
    if output is not None and str(output) != "-":
        path = _save(output, name, data)
        app.out.info(f"saved {path} ({format_size(len(data))})")
        if app.json:
            app.out.document(as_data(artifact) | {"path": str(path)})
    elif app.json:
        app.out.document(as_data(artifact) | _content(data))
    elif not app.out.on_screen:
        stdio.write_bytes(data)
    elif b"\0" in data:
        raise Refused(f"{name} is a binary file; use -o FILE, or -o - and a pipe")
    else:
        app.out.write(plain(data.decode("utf-8", "replace")))


artifacts.add_command(list_artifacts)
artifacts.add_command(get)


def _save(output: Path, name: str, data: bytes) -> Path:
    """Write the file atomically; only the last part of an artifact's name is used."""
    path = output / Path(name).name if output.is_dir() else output
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"{path}: {error.strerror}; use -o with a writable path") from None
    return path


def _content(data: bytes) -> dict[str, Any]:
    """Return the content for JSON, base64-encoded unless it is UTF-8 text."""
    try:
        return {"content": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(data).decode("ascii")}
