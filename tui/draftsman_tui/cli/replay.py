"""The `replay` command: today's code against the recorded runs of a job."""

from __future__ import annotations

from pathlib import Path

import click

from draftsman.errors import UsageError
from draftsman.formats.json_data import as_data
from draftsman.ids import JobRef
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.cli.app_option import APP
from draftsman_tui.terminal import params


@command(
    "replay",
    section="Programs",
    examples=("draftsman replay D-142 --app company.jobs", "draftsman replay D-142 --json"),
)
@click.argument("job", type=params.JOB)
@APP
async def replay(app: App, job: JobRef, module: str | None) -> None:
    """Run today's code against what the runs of a job recorded.

    The handler of the job runs in this process with the recorded answers, steps, spawned jobs and
    checkpoint, and without effects: steps that no run finished, questions, messages and files are
    only named. Code outside of steps runs as it is. Exits with 1 if it would differ.

    The code is that of --app, of [handlers] and of installed packages; the pyproject.toml of this
    folder is not read.
    """
    from draftsman.handlers import registry
    from draftsman.job_types.app import find_app, handlers_of, load_types
    from draftsman.testing.replays import replay_job

    types = load_types(None if module is None else find_app(module, Path.cwd()))
    async with app.runtime(read_only=True) as rt:
        configured = rt.settings.handlers
        handlers = registry.load(configured) | handlers_of(types, configured)
        recorded = await rt.read_model.job(await number_of(rt, job))
        type = recorded.type
        if type not in handlers or type in registry.BUILT_IN.keys() - configured.keys():
            raise UsageError(
                f"{recorded.name} has the type {type}, whose code is not here; name its module with"
                " --app, or in [handlers]"
            )
        replayed = await replay_job(rt, handlers[type], recorded.number)
    if app.json:
        app.out.document(as_data(replayed))
    else:
        app.out.print(f"{replayed.job}: {replayed.ending}")
        app.out.print(*(f"  {text}" for text in replayed.differences or ["as it ran"]))
    if replayed.differences:
        click.get_current_context().exit(1)
