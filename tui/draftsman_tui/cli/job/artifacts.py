"""`diff` and `artifacts`: the files that jobs leave."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import Refused, UsageError
from draftsman_tui.cli.app import App, Group, command, example_lines, number_of
from draftsman_tui.common import params, stdio, times
from draftsman_tui.common.artifact_text import format_size, no_diff_reason, patch_line
from draftsman_tui.common.output import as_data, plain, styled

if TYPE_CHECKING:
    from draftsman.domain.ids import JobRef


@command(
    "diff",
    examples=("draftsman diff D-142", "draftsman diff D-142/1", "draftsman diff D-142 | git apply"),
)
@click.argument("job", metavar="JOB[/QUESTION]", type=params.QUESTION)
async def diff(app: App, job: tuple[JobRef, int | None]) -> None:
    """Print the changes of a job, or of a gate.

    It is a patch that `git apply` takes: of a gate, the one that it was asked with.
    """
    async with app.runtime(read_only=True) as rt:
        ref, ordinal = job
        number = await number_of(rt, ref)
        name, run = f"D-{number}", None
        if ordinal is not None:
            question = await rt.questions.get(number, ordinal)
            name, run = question.name, question.run
        found = await rt.checkpoints.patch(number, run)
        if found is None or found.size == 0:
            why = await no_diff_reason(rt, name, number, found is None)
            raise Refused(f"{why}; see: draftsman show D-{number}")
        data = await rt.checkpoints.content(found)
    if app.json:
        app.out.document(as_data(found) | _content(data))
    elif app.out.on_screen:
        app.out.print(*(patch_line(one) for one in data.decode("utf-8", "replace").splitlines()))
    else:
        stdio.write_bytes(data)


@click.group(
    cls=Group,
    name="artifacts",
    epilog=example_lines(
        ("draftsman artifacts list D-142", "draftsman artifacts get D-142 report.json -o r.json")
    ),
)
def artifacts() -> None:
    """List or get the files that a job left."""


@command("list", examples=("draftsman artifacts list D-142",))
@click.argument("job", type=params.JOB)
async def list_artifacts(app: App, job: JobRef) -> None:
    """List the files that the runs of a job left."""
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        found = await rt.checkpoints.artifacts(number)
    if app.json:
        app.out.document(found)
    elif not found:
        app.out.info(f"D-{number} left no files")
    else:
        rows = [
            (
                styled(one.name, "bold"),
                one.kind,
                format_size(one.size),
                f".{one.run}",
                times.ago(one.created_at),
            )
            for one in found
        ]
        heads = ("NAME", "KIND", "SIZE", "RUN", "MADE")
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
    help="Where to: a file, a directory, or - for stdout, the default.",
)
async def get(app: App, job: JobRef, name: str, output: Path | None) -> None:
    """Get a file that a job left: the newest of that name."""
    async with app.runtime(read_only=True) as rt:
        found, data = await rt.checkpoints.read_artifact(await number_of(rt, job), name)
    if output is not None and str(output) != "-":
        path = _save(output, name, data)
        app.out.info(f"wrote {format_size(len(data))} to {path}")
        if app.json:
            app.out.document(as_data(found) | {"path": str(path)})
    elif app.json:
        app.out.document(as_data(found) | _content(data))
    elif not app.out.on_screen:
        stdio.write_bytes(data)
    elif b"\0" in data:
        raise Refused(f"{name} is not text; give -o FILE, or -o - | another program")
    else:
        app.out.write(plain(data.decode("utf-8", "replace")))


artifacts.add_command(list_artifacts)
artifacts.add_command(get)


def _save(output: Path, name: str, data: bytes) -> Path:
    """Write the file whole or not at all; a name from an agent never leads out of a directory."""
    path = output / Path(name).name if output.is_dir() else output
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"{path}: {error.strerror}; give -o a file that can be written") from None
    return path


def _content(data: bytes) -> dict[str, Any]:
    """Return the bytes for JSON: as text where they are text."""
    try:
        return {"content": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(data).decode("ascii")}
