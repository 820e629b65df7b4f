"""The `types` command: the job types that workers have described."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from draftsman.entities.job_types import JOB_TYPES
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import as_data
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.lists import MAX_ROWS, print_list, rows_to_read
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from draftsman.job_types.published.description import Limit, PublishedType, WaitingJobs

SPENT: Final = (
    "a lost run spends an attempt, a busy service a retry, an exception such as ValueError both;"
    " base_delay and max_delay are for busy services only"
)
"""Which failure each limit governs."""
SHOWN_UNFIT: Final = 5
"""Jobs that do not fit that are named."""


@command(
    "types",
    section="Programs",
    examples=("draftsman types", "draftsman types report:weekly", "draftsman types --json"),
    lists=JOB_TYPES,
)
@click.argument("name", type=params.JOB_TYPE, required=False)
async def types(app: App, name: str | None) -> None:
    """List the job types that workers have described, or show one.

    Workers publish what the code of a job type declares: its parameters, by which requests are
    checked, its defaults and limits. NAME shows them, where each limit comes from, and the waiting
    jobs whose payloads no longer fit them, or are migrated when they run.
    """
    if name is not None:
        await _show(app, name)
        return
    async with app.runtime(read_only=True) as rt:
        rows = await rt.published_types.all()
    print_list(app, JOB_TYPES, rows[: rows_to_read(app, MAX_ROWS)], limit=MAX_ROWS)


async def _show(app: App, name: str) -> None:
    from draftsman.job_types.published.description import limits_of

    async with app.runtime(read_only=True) as rt:
        type = await rt.published_types.get(name)
        waiting = await rt.published_types.waiting_jobs(type)
        section = rt.settings.types.get(type.name)
        limits = limits_of(type, {} if section is None else section.limits())
    if app.json:
        more = {"limits": as_data(limits), "waiting_jobs": as_data(waiting)}
        app.out.document(JOB_TYPES.data(type) | more)
        return
    app.out.print(line(styled(type.name, "bold"), f"  {times.ago(type.published_at)}"))
    app.out.print(*(f"  {text}" for text in type.description.splitlines()))
    app.out.print("", *_facts(type))
    app.out.print("", styled("Parameters", "bold underline"))
    app.out.print(*(f"  {text}" for text in [*type.inputs.lines()] or ["none"]))
    app.out.print("", styled("Limits", "bold underline"), *_limit_lines(limits))
    app.out.print(styled(f"  {SPENT}", "dim"))
    _warn_of(app, type, waiting)


def _warn_of(app: App, type: PublishedType, waiting: WaitingJobs) -> None:
    """Say which of the waiting jobs have parameters of another version, or do not fit."""
    if waiting.migrated:
        jobs = counted(waiting.migrated, "waiting job")
        number = type.payload_version
        app.out.info(f"{jobs} of older versions: migrated to version {number} when run")
    if waiting.unfit:
        verb = "does" if len(waiting.unfit) == 1 else "do"
        of = f" of the first {waiting.checked}" if waiting.has_more else ""
        jobs = counted(len(waiting.unfit), "waiting job")
        app.out.info(f"{jobs}{of} {verb} not fit these parameters, and will fail when run:")
        for name, problem in [*waiting.unfit.items()][:SHOWN_UNFIT]:
            app.out.info(f"  {name}: {problem}")
        if len(waiting.unfit) > SHOWN_UNFIT:
            app.out.info(f"  and {len(waiting.unfit) - SHOWN_UNFIT} more; all: --json")


def _facts(type: PublishedType) -> Iterator[Text]:
    facts = {
        "place": type.place,
        "title": type.title,
        "version": str(type.payload_version) if type.payload_version != 1 else "",
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
