"""The `artifacts` command."""

from __future__ import annotations

from pathlib import Path

import click

from draftsman.errors import Refused, UsageError
from draftsman.formats import times
from draftsman.formats.amounts import format_size
from draftsman.formats.json_data import as_data
from draftsman.ids import JobRef, job_name
from draftsman_tui.cli.app import App, command_group, number_of
from draftsman_tui.common.artifacts import content_json
from draftsman_tui.terminal import params, stdio
from draftsman_tui.terminal.output import plain, styled


@command_group(
    "artifacts",
    section="Jobs",
    examples=(
        "draftsman artifacts list D-142",
        "draftsman artifacts get D-142 report.json -o r.json",
    ),
)
def artifacts() -> None:
    """List or download the artifacts of a job."""


@artifacts.subcommand("list", examples=("draftsman artifacts list D-142",))
@click.argument("job", type=params.JOB_OF)
async def list_artifacts(app: App, job: JobRef) -> None:
    """List the artifacts of a job."""
    async with app.runtime(read_only=True) as rt:
        number = await number_of(rt, job)
        files = await rt.checkpoints.artifacts(number)
    if app.json:
        app.out.document(files)
    elif not files:
        app.out.info(f"{job_name(number)} has no artifacts")
    else:
        rows = [
            (
                styled(artifact.name, "bold"),
                artifact.kind,
                format_size(artifact.size),
                str(artifact.run),
                times.age(artifact.created_at),
            )
            for artifact in files
        ]
        heads = ("NAME", "KIND", "SIZE", "RUN", "AGE")
        app.out.table(heads, rows, flexible=0, right=(2,))


@artifacts.subcommand(
    "get", examples=("draftsman artifacts get D-142 changes.patch -o changes.patch",)
)
@click.argument("job", type=params.JOB_OF)
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
        app.out.document(as_data(artifact) | content_json(data))
    elif not app.out.on_screen:
        stdio.write_bytes(data)
    elif b"\0" in data:
        raise Refused(f"{name} is a binary file; use -o FILE, or -o - and a pipe")
    else:
        with app.out.paged():
            app.out.write(plain(data.decode("utf-8", "replace")))


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
