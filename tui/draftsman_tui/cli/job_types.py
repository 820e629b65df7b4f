"""The `types` command: the job types that workers have described."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from draftsman.entities.job_types import JOB_TYPES
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import as_data
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.lists import MAX_ROWS, print_list
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.job_types.published.description import Limit, PublishedType


@command(
    "types",
    section="Programs",
    examples=("draftsman types", "draftsman types report:weekly", "draftsman types --json"),
    lists=JOB_TYPES,
)
@click.argument("name", type=params.JOB_TYPE, required=False)
async def types(app: App, name: str | None) -> None:
    """List the job types that workers have described, or show one.

    Workers publish what the code of a job type declares (docs/own-jobs.md): its parameters, by
    which requests are checked, its defaults and limits. NAME shows them, where each limit comes
    from, and the jobs that wait since the type had other parameters: those are checked when they
    run.
    """
    if name is not None:
        await _show(app, name)
        return
    async with app.runtime(read_only=True) as rt:
        rows = await rt.published_types.all()
    print_list(app, JOB_TYPES, rows[:MAX_ROWS])


async def _show(app: App, name: str) -> None:
    from draftsman.job_types.published.description import limits_of

    async with app.runtime(read_only=True) as rt:
        type = await rt.published_types.get(name)
        older = await rt.published_types.older_jobs(type)
        section = rt.settings.types.get(type.name)
        limits = limits_of(type, {} if section is None else section.limits())
    if app.json:
        app.out.document(
            JOB_TYPES.data(type) | {"limits": as_data(limits), "jobs_of_other_descriptions": older}
        )
        return
    app.out.print(line(styled(type.name, "bold"), f"  {times.ago(type.published_at)}"))
    app.out.print(*(f"  {text}" for text in type.description.splitlines()))
    app.out.print("", *_facts(type))
    app.out.print("", styled("Parameters", "bold underline"))
    app.out.print(*(f"  {text}" for text in [*type.inputs.lines()] or ["none"]))
    app.out.print("", styled("Limits", "bold underline"), *_limit_lines(limits))
    if older:
        verb = "was" if older == 1 else "were"
        jobs = counted(older, "waiting job")
        app.out.info(f"{jobs} {verb} submitted with another description; checked when run")


def _facts(type: PublishedType) -> Iterator[Text]:
    facts = {
        "place": type.place,
        "title": type.title,
        "queue": type.queue or "default",
        "concurrency": type.concurrency,
        "aliases": ", ".join(type.aliases),
        "schedules": "; ".join(
            f"{item['name']}: {item['rule']} ({item['zone']})" for item in type.schedules
        ),
        "workers": f"{type.workers} live" if type.workers else "no live worker serves it",
    }
    for label, value in facts.items():
        if value:
            yield line(styled(f"  {label:<11}  ", "dim"), value)


def _limit_lines(limits: Sequence[Limit]) -> Iterator[Text]:
    for limit in limits:
        value = json.dumps(limit.value).strip('"')
        yield line(styled(f"  {limit.name:<15}  ", "dim"), f"{value:<7}  {limit.source}")
