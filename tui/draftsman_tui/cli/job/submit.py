"""`submit`: a request becomes a job."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.domain.invocation import Invocation
from draftsman.domain.job import TERMINAL
from draftsman.errors import UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.job import job_wait
from draftsman_tui.common import params
from draftsman_tui.common.job_request import (
    AGENT_TYPE,
    OTHER_TEXT_IGNORED,
    build_request,
    require_instructions,
    resolve_request,
)
from draftsman_tui.common.output import line, styled

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.services.jobs.submissions import SubmittedJob
    from draftsman.settings import Settings

CHUNK: Final = 1000
"""Requests of a batch that go in one statement."""


@command(
    "submit",
    examples=(
        "draftsman submit --agent tidy --repo . 'Tidy up the tests'",
        "draftsman submit --type report:weekly --payload @week.json --key week-31",
        "draftsman submit --repo . --subject nightly-tidy --wait 'Tidy up'",
        "draftsman submit --notify log --notify webhook:ops 'Tidy up'",
        """draftsman submit --type http_request --payload '{"url": "https://example.org/"}'""",
        "draftsman submit --type report:weekly --max-retries 0 --on-lost fail --run-timeout 10m",
        "draftsman submit --batch requests.jsonl",
    ),
)
@click.argument("text", nargs=-1, type=params.TEXT)
@click.option("--type", default=AGENT_TYPE, show_default=True, help="Which handler runs it.")
@click.option("--agent", help="Which agent of the configuration.")
@click.option("--repo", type=params.TEXT, help="Path, URL or known name of a repository.")
@click.option("--ref", type=params.TEXT, help="Branch, tag or commit to start from.")
@click.option("--mode", help="fix, or investigate: looks and changes nothing.")
@click.option("--title", type=params.TEXT, help="Default: the first line of the text.")
@click.option("--key", type=params.TEXT, help="Idempotency key: never makes a second job.")
@click.option("--subject", type=params.TEXT, help="Recurring work: joins its live job, if any.")
@click.option("--queue", type=params.TEXT, help="Default: default.")
@click.option("--priority", type=int, help="Higher runs first; -1000 to 1000.")
@click.option("--at", type=params.INSTANT, help="Not before this time: 2030-12-31T18:00.")
@click.option("--in", "delay", type=params.DURATION, help="Not before this has passed: 10m.")
@click.option("--payload", type=params.JSON, help="JSON object, @file, or @- for stdin.")
@click.option("--override", type=params.PAIR, multiple=True, help="key=value; repeatable.")
@click.option("--skill", type=params.TEXT, multiple=True, help="A skill it asks for; repeatable.")
@click.option("--tag", type=params.TEXT, multiple=True, help="Repeatable.")
@click.option(
    "--notify",
    type=params.TEXT,
    multiple=True,
    metavar="TARGET",
    help="Who is told: log, webhook:NAME, slack:CHANNEL, trello:CARD, or none; repeatable.",
)
@click.option("--max-attempts", type=int, help="Lost runs and failures of machines it survives.")
@click.option("--max-retries", type=int, help="Failures of the work it survives.")
@click.option("--run-timeout", type=params.DURATION, help="Running time in all: 10m, 2h.")
@click.option("--on-lost", help="When its worker dies: retry, resume, fail or new_job.")
@click.option("--batch", metavar="FILE", help="One JSON object a line; - is stdin.")
@click.option(
    "--unchecked",
    is_flag=True,
    help="Accept a type, chat or model that neither this configuration nor a live worker has.",
)
@click.option("--wait", is_flag=True, help="Show what happens until it ends.")
@click.option("--timeout", type=params.DURATION, help="With --wait: give up after this.")
async def submit(
    app: App,
    text: tuple[str, ...],
    batch: str | None,
    wait: bool,
    timeout: float | None,
    unchecked: bool,
    **options: Any,
) -> None:
    """Make a job of a request.

    TEXT is what is asked, in as many words as it takes; - reads it from stdin. With --batch each
    line holds the fields of one request (type, key, agent, repo, title, text, payload, …); what
    is given as options counts for every line that does not say otherwise.

    With --wait it exits with 0 when the job completed, with 1 when it ended otherwise, and with 5
    when nobody answered its question within --timeout.
    """
    if timeout is not None and not wait:
        raise UsageError("--timeout goes with --wait")
    if options["at"] is not None and options["delay"] is not None:
        raise UsageError("give --at or --in, not both")
    fields = _fields(text, options)
    if batch is not None:
        if text or wait or "key" in fields:
            raise UsageError("--batch takes no TEXT, --key or --wait: each line is its own request")
        await _submit_batch(app, batch, fields, unchecked=unchecked)
        return
    require_instructions(fields)
    request = build_request(fields, app.settings)
    async with app.runtime() as rt:
        request = await resolve_request(request, rt, unchecked=unchecked)
        made = await rt.submissions.submit(request, await rt.actor())
        if made.how == "deduplicated" and made.status in TERMINAL and not app.json:
            app.out.info(_of_an_old_key(made))
        if not wait:
            await _print(app, rt, made)
            return
        app.out.info(f"{made.name} {made.how}")
        await job_wait.narrate(app, rt, made.number, timeout)
        await job_wait.conclude(app, rt, made.number, timeout, how=made.how)


async def _submit_batch(app: App, file: str, fields: dict[str, Any], *, unchecked: bool) -> None:
    lines = list(_lines(params.read_text(Path(file)), file, fields, app.settings))
    if not lines:
        raise UsageError(f"{file}: no request in it; write one JSON object a line")
    made: list[SubmittedJob] = []
    async with app.runtime() as rt:
        types: set[str] = set()
        settle = partial(_settled_line, rt=rt, unchecked=unchecked, types=types)
        requests = [await settle(*one) for one in lines]
        actor = await rt.actor()
        try:
            for start in range(0, len(requests), CHUNK):
                some = await rt.submissions.submit_many(requests[start : start + CHUNK], actor)
                made += some
                if not app.json:
                    app.out.write("".join(f"{one.name} {one.how}\n" for one in some))
        finally:  # what was made before a conflict is told too
            if app.json:
                app.out.document(made)


def _fields(text: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the invocation that the command line gives."""
    said = params.read_stdin() if text == ("-",) else " ".join(text)
    overrides = dict(options.pop("override"))
    if (most := options.pop("run_timeout")) is not None:
        overrides["timeout"] = most
    renamed = {
        "text": said,
        "subject_key": options.pop("subject"),
        "run_at": options.pop("at"),
        "skills": options.pop("skill"),
        "tags": options.pop("tag"),
        "overrides": overrides,
    }
    return {
        name: value
        for name, value in (options | renamed).items()
        if value not in (None, "", (), {})
    }


def _lines(
    text: str, file: str, fields: dict[str, Any], settings: Settings
) -> Iterator[tuple[str, Invocation]]:
    for place, one in enumerate(text.splitlines(), 1):
        if not one.strip():
            continue
        origin = f"{'stdin' if file == '-' else file}:{place}"
        given = params.json_object(one, origin)
        if unknown := sorted(given.keys() - Invocation.model_fields.keys()):
            allowed = ", ".join(Invocation.model_fields)
            raise UsageError(f"{origin}: unknown field {unknown[0]!r}; allowed: {allowed}")
        try:
            yield origin, build_request(fields | given, settings)
        except UsageError as error:
            raise UsageError(f"{origin}: {error}") from None


async def _settled_line(
    origin: str, request: Invocation, *, rt: Runtime, unchecked: bool, types: set[str]
) -> Invocation:
    try:
        return await resolve_request(request, rt, unchecked=unchecked, types=types)
    except UsageError as error:
        raise UsageError(f"{origin}: {error}") from None


def _of_an_old_key(made: SubmittedJob) -> str:
    how = made.status.replace("_", " ")
    return (
        f"nothing was run: {made.name} of this key ended before ({how}), and a key is permanent;"
        " for recurring work give --subject instead"
    )


async def _print(app: App, rt: Runtime, made: SubmittedJob) -> None:
    if app.json:
        app.out.document(made)
        return
    why = {"joined": f": a live job has the same subject; {OTHER_TEXT_IGNORED}"}.get(made.how, "")
    app.out.print(line(styled(made.name, "bold"), f" {made.how}{why}"))
    if app.out.on_screen:
        found = await rt.read_model.why(made.number)
        if found.reason == "no_worker":
            app.out.info("no worker is running; start one: draftsman up")
        else:
            app.out.info(f"follow it: draftsman events -f {made.name}")
