"""The `submit` command: create a job from a request."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.actions import requests as actions
from draftsman.errors import UsageError
from draftsman.formats.json_data import as_data
from draftsman.jobs.job import AGENT_TYPE, TERMINAL
from draftsman.jobs.requests.uncommitted_changes import FIELD, named
from draftsman.text import humanize
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.jobs import job_wait
from draftsman_tui.cli.perform import act, print_result, print_warnings
from draftsman_tui.cli.requests.request_options import submit_options, submitted_fields
from draftsman_tui.cli.requests.submit_batch import submit_batch
from draftsman_tui.cli.requests.type_options import (
    TypedCommand,
    may_name_type,
    refuse_options,
    typed_fields,
)
from draftsman_tui.common.requests import options_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from draftsman.actions.action import ActionResult
    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.runtime import Runtime

MAX_LISTED: Final = 100
"""Maximum number of uncommitted files in the JSON document."""
ONLY_TIDY: Final = (
    "tidy, the only agent, ignores instructions: it runs the validation and fix commands of the"
    " repository; for an agent that follows them, add a table such as [agents.claude] to the"
    " configuration (draftsman help --page coding-agents)"
)


@command(
    "submit",
    section="Jobs",
    cls=TypedCommand,
    examples=(
        "draftsman submit --agent tidy --repo . 'Tidy up the tests'",
        "draftsman submit report:weekly --week 31 --key week-31",
        "draftsman submit --type report:weekly --payload @week.json",
        "draftsman submit --repo . --subject nightly-tidy --wait 'Tidy up'",
        "draftsman submit --repo . --with-changes --agent claude 'Finish what I began'",
        "draftsman submit --repo . --unique-for 12h 'Update the dependencies'",
        "draftsman submit --repo . --subject pr-7 --debounce 30s 'Review the pull request'",
        "draftsman submit --notify log --notify webhook:ops 'Tidy up'",
        'draftsman submit --type http_request --payload \'{"url": "https://example.org/"}\'',
        "draftsman submit --type report:weekly --max-retries 0 --on-lost fail --run-timeout 10m",
        "draftsman submit --batch requests.jsonl",
        "draftsman submit --after D-1,D-2 --repo . 'Release'",
        "draftsman submit --after D-1 --on failure --type report:broken",
        "draftsman submit --batch steps.jsonl --group release --sequential",
        "draftsman submit --group release --type notify",
    ),
    does=(actions.submit, actions.submit_many),
)
@submit_options
@click.option("--batch", metavar="FILE", help="File with one JSON object per line; - for stdin.")
@click.option("--wait", is_flag=True, help="Show events until the job finishes.")
@click.option(
    "--with-changes",
    is_flag=True,
    help="Take the uncommitted changes of --repo along; those that git ignores are left out.",
)
async def submit(
    app: App,
    text: tuple[str, ...],
    batch: str | None,
    wait: bool,
    with_changes: bool,
    timeout: float | None,
    unchecked: bool,
    **options: Any,
) -> None:
    """Submit a job.

    TEXT is the instructions for the agent; - reads them from stdin.

    If the first word is a type with a colon that workers have described, or with --type, the
    parameters of the type are options: draftsman submit report:weekly --help lists them. One that
    is named like an option of this command is --param key=value.

    With --batch, each line of the file holds the fields of a request (type, key, agent, repo,
    title, text, payload, …); options on the command line are the defaults of every line. A line
    with a "name" can be named by "after" of other lines: that job starts when the named jobs have
    ended as "on" says.

    A batch is submitted a thousand lines at a time. An invalid line stops it; none of the thousand
    lines that contain it is submitted, and the earlier thousands are. Run an
    interrupted or corrected batch again: a line with a key creates no second job.

    A group is created with --sequential or --parallel, and stays open for more jobs: --group alone
    adds the job to an existing group; in a sequential group it runs last.

    Uncommitted changes in the folder of --repo are named, and are no part of the job. With
    --with-changes they are its base: a commit of their own, before that of the agent.

    With --wait, events and questions go to stderr; on a terminal the questions are asked here, and
    the end shows the summary, the branch and the changed files. Exits with 0 if the job completed,
    1 if it ended in any other status, and 5 if a question was not answered within --timeout.
    """
    if timeout is not None and not wait:
        raise UsageError("--timeout requires --wait")
    ctx = click.get_current_context()
    fields = submitted_fields(text, options)
    if batch is not None:
        refuse_options(ctx, text, fields)
        if text or wait or with_changes or "key" in fields:
            names = "TEXT, --key, --wait or --with-changes"
            raise UsageError(f"--batch cannot be combined with {names}")
        await submit_batch(app, batch, fields, unchecked=unchecked)
        return
    check_before(app, ctx, text, fields)
    async with app.runtime() as rt:
        fields = await typed_fields(rt, ctx, text, fields)
        request = built_request(app, fields)
        with options_named():
            request = await rt.request_checks.resolve(request, unchecked=unchecked)
        request, uncommitted = await _take_changes(app, request, with_changes=with_changes)
        result = await act(app, rt, actions.submit, request, prints=False)
        job = result.value
        warnings = [*result.warnings, *_warnings(request, uncommitted)]
        if "agent" not in fields and request.type == AGENT_TYPE and app.settings.only_tidies:
            warnings.append(ONLY_TIDY)
        data = as_data(job) | {"uncommitted": uncommitted} if uncommitted else result.data
        result = replace(result, warnings=warnings, data=data)
        if job.outcome == "deduplicated" and job.status in TERMINAL and not app.json:
            app.out.info(finished_key_text(job))
        if wait:
            await wait_for(app, rt, result, timeout)
            return
        print_result(app, result)
        await print_next_step(app, rt, result)


def check_before(
    app: App, ctx: click.Context, text: Sequence[str], fields: Mapping[str, Any]
) -> None:
    """Report what is wrong with a request before the command connects, if it names no type."""
    if not may_name_type(ctx):
        refuse_options(ctx, text, fields)
        built_request(app, fields)


def built_request(app: App, fields: Mapping[str, Any]) -> Invocation:
    """Return the request; raises UsageError in the terms of the options."""
    from draftsman.jobs.requests.service.request_checks import build_request, require_instructions

    with options_named():
        require_instructions(fields)
        return build_request(fields, app.settings)


async def _take_changes(
    app: App, request: Invocation, *, with_changes: bool
) -> tuple[Invocation, dict[str, Any]]:
    """Return the request, with the uncommitted changes of its folder; and which these are."""
    if request.type != AGENT_TYPE and not with_changes:
        return request, {}
    from draftsman.agent_runs.uncommitted import take_changes, uncommitted_files

    folder = request.repo or ""
    if with_changes:
        if not folder.startswith("/") or request.ref is not None:
            raise UsageError(
                "--with-changes needs --repo with a folder of this machine, and no --ref"
            )
        changes = await asyncio.to_thread(take_changes, folder, app.settings.policy)
        if changes is None:
            app.out.info(f"no uncommitted changes in {folder}")
            return request, {}
        payload = request.payload | {FIELD: changes.stored}
        request = request.model_copy(update={"payload": payload})
    files = await asyncio.to_thread(uncommitted_files, folder)
    shown = {"count": len(files), "files": files[:MAX_LISTED], "taken": with_changes}
    return request, shown if files else {}


def _warnings(request: Invocation, uncommitted: dict[str, Any]) -> Iterator[str]:
    """Yield the uncommitted files that the job does not have."""
    if uncommitted and not uncommitted["taken"]:
        files = named(uncommitted["files"], uncommitted["count"])
        text = f"uncommitted in {request.repo}, and no part of the job: {files}"
        yield f"{text}; to take them along: --with-changes"


async def wait_for(
    app: App, rt: Runtime, result: ActionResult[SubmittedJob], timeout: float | None
) -> None:
    """Print the job of a request, its events and its questions on stderr, then how it ended."""
    job = result.value
    app.out.info(str(result))
    print_warnings(app, result)
    with job_wait.left_by_interrupt(app, job.number):
        if job.warning is None:
            await job_wait.print_missing_worker(app, rt, job.number)
        await job_wait.narrate(app, rt, job.number, timeout)
    await job_wait.conclude(app, rt, job.number, timeout, outcome=job.outcome)


def finished_key_text(job: SubmittedJob) -> str:
    """Return the message about a key whose job has finished."""
    status = humanize(job.status)
    return (
        f"no job was created: this idempotency key belongs to {job.name}, which already finished"
        f" ({status}); use a new --key, or --subject for recurring work"
    )


async def print_next_step(app: App, rt: Runtime, result: ActionResult[SubmittedJob]) -> None:
    """Print on a terminal how to follow a job, or that no worker handles it."""
    job = result.value
    if app.json or not app.out.on_screen or job.warning is not None:
        return
    reason = await rt.read_model.why(job.number)
    if reason.lacks_worker:
        app.out.info(f"{reason.text}; {reason.next_step}")
    else:
        app.out.info(f"to follow the job: draftsman events -f {job.name}")
