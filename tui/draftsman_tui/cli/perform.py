"""Actions of commands: their confirmation, results and errors, for one row or many."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from draftsman.errors import DatabaseUnreachable, DraftsmanError, UsageError
from draftsman.formats.amounts import counted
from draftsman.formats.json_data import as_data
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import number_of
from draftsman_tui.terminal.results import result_line

if TYPE_CHECKING:
    from draftsman.actions.action import Action, ActionResult, Call
    from draftsman.ids import JobRef
    from draftsman.jobs.job_summary import FinishedJob, JobSummary
    from draftsman.runtime import Runtime
    from draftsman_tui.cli.app import App

Row = TypeVar("Row")
R = TypeVar("R")
PROGRESS_INTERVAL: Final = 2.0
"""Seconds between progress messages."""
HARMLESS: Final = {
    "dry_run": "--dry-run to preview",
    "check": "--check to preview",
    "no_check": "--no-check to skip them",
}
"""Options that change nothing, by their parameters."""


async def call_of(app: App, rt: Runtime, action: Action[Any, ..., Any] | None = None) -> Call:
    """Return the call of the person who runs this command, with its progress on stderr.

    On a terminal, an action that no question confirms can be undone for a while.
    """
    from draftsman.actions.action import UNDO, Call

    is_person = app.out.interactive and not app.json
    is_held = is_person and action is not None and action.undo == UNDO and not action.is_confirmed
    window = rt.settings.questions.undo if is_held else 0.0
    return Call(rt, await rt.actor(), window=window, report=app.out.info)


async def numbers_of(
    app: App, rt: Runtime, jobs: Sequence[JobRef]
) -> tuple[list[int], list[DraftsmanError]]:
    """Return the numbers of jobs, and the errors of those that do not exist, which it prints."""
    numbers: list[int] = []
    unknown: list[DraftsmanError] = []
    for job in jobs:
        try:
            numbers.append(await number_of(rt, job))
        except DatabaseUnreachable:
            raise
        except DraftsmanError as error:
            unknown.append(error)
            if len(jobs) > 1:
                app.out.info(f"draftsman: {error}")
    return numbers, unknown


def confirm(app: App, question: str, *, yes: bool, required: bool = False) -> None:
    """Ask a question before an action, unless `yes`; raises Refused on no.

    Without a terminal, a `required` confirmation needs --yes; raises UsageError, which names an
    option of the command that changes nothing.
    """
    if yes:
        return
    if app.out.interactive:
        prompts.confirm(question)
    elif required:
        options = {param.name for param in click.get_current_context().command.params}
        others = (text for option, text in HARMLESS.items() if option in options)
        text = "".join(f" (or {other})" for other in others)
        raise UsageError(f"{question} Not a terminal: to confirm, use --yes{text}")


async def perform(
    app: App, action: Action[Row, ..., R], row: Row, *, yes: bool = False, **arguments: Any
) -> ActionResult[R]:
    """Connect, and take an action as `act` does."""
    async with app.runtime() as rt:
        return await act(app, rt, action, row, yes=yes, **arguments)


async def act(
    app: App,
    rt: Runtime,
    action: Action[Row, ..., R],
    row: Row,
    *,
    yes: bool = False,
    prints: bool = True,
    **arguments: Any,
) -> ActionResult[R]:
    """Ask the question of an action that is confirmed, take it, and print what it did.

    A refusal with data has its JSON document, too.
    """
    from draftsman.actions.action import RefusedWithData
    from draftsman.deliveries.documents.document import Time
    from draftsman.jobs.pending_decisions.pending_decision import PendingDecision

    call = await call_of(app, rt, action)
    if action.is_confirmed and (asked := await action.asked(call, row, **arguments)) is not None:
        if asked.lines and not app.json:
            app.out.print(*asked.lines)
        confirm(app, str(asked), yes=yes, required=action.guarded)
    try:
        result = await action.run(call, row, **arguments)
    except RefusedWithData as error:
        if app.json:
            app.out.document(error.data)
        raise
    value: object = result.value
    held = value if call.window and isinstance(value, PendingDecision) else None
    if held is not None:
        result = replace(result, detail=(*result.detail, ", counts at ", Time(held.applies_at)))
    if prints:
        print_result(app, result)
    service = rt.pending_decisions
    if held is not None and not await service.has_leader():
        app.out.info("no worker runs: waiting until it counts")
        if await service.apply_when_due(held, call.window) is None:
            app.out.info(f"{held.name}: undone")
    return result


def print_result(app: App, result: ActionResult[Any]) -> None:
    """Print what an action did, or its JSON document, and its warnings on stderr."""
    if app.json:
        app.out.document(as_data(result.document))
    else:
        app.out.print(result_line(result))
    print_warnings(app, result)


def print_warnings(app: App, result: ActionResult[Any]) -> None:
    """Print on stderr what may follow an action."""
    for warning in result.warnings:
        app.out.info(f"warning: {warning}")


def confirm_matching(
    app: App, action: Action[int, ..., Any], jobs: Sequence[JobSummary | FinishedJob], *, yes: bool
) -> list[int]:
    """Ask before an action on all jobs that match a filter; return their numbers."""
    from draftsman.actions.jobs import Selection

    selection = Selection.of(action, jobs)
    confirm(app, f"{selection.question} {selection.note()}", yes=yes, required=True)
    return selection.numbers


async def perform_each(
    app: App,
    rt: Runtime,
    action: Action[Row, ..., Any],
    rows: Sequence[Row],
    *,
    name: Callable[[Row], str] = str,
    key: str = "number",
    data: Callable[[Row, Any], Any] = lambda _, value: as_data(value),
    after: Callable[[Row, Any], Awaitable[None]] | None = None,
    unknown: Sequence[DraftsmanError] = (),
    as_list: bool = False,
    **arguments: Any,
) -> None:
    """Act on each row in turn, print each result, and raise after all if one was refused.

    `data` makes the JSON object of a row from the result of the service; that of a refused row has
    the row as its `key`, and the error. `unknown` are the errors of rows that do not exist, and
    `as_list` prints a JSON list also for a single row.
    """
    total = len(rows) + len(unknown)
    as_list = as_list or total > 1
    documents: list[Any] = []
    errors = [*unknown]
    progress = Progress(app, action, len(rows))
    call = await call_of(app, rt)
    try:
        for row in rows:
            try:
                result = await action.run(call, row, **arguments)
            except DatabaseUnreachable:
                raise
            except DraftsmanError as error:
                documents.append({key: row, "outcome": "failed", "error": str(error)})
                errors.append(error)
                if total == 1:
                    break
                is_named = str(error).startswith(name(row))
                app.out.info(f"draftsman: {'' if is_named else f'{name(row)}: '}{error}")
            else:
                documents.append(data(row, result.value))
                if not app.json:
                    app.out.print(result_line(result))
                if after is not None:
                    await after(row, result.value)
            progress.advance()
    finally:  # what was done before an interruption is printed as well
        if app.json and (as_list or (documents and not errors)):
            app.out.document(documents if as_list else documents[0])
        progress.finish()
    if errors and total == 1:
        raise errors[0]
    if errors:
        rest = f"{len(errors):,} of {counted(total, str(action.about))}"
        raise DraftsmanError(f"could not {action.name} {rest}")


class Progress:
    """Prints how many rows are done, now and then, and how many are left after an interruption."""

    def __init__(self, app: App, action: Action[Any, ..., Any], total: int) -> None:
        self._app = app
        self._about = str(action.about)
        self._total = total
        self._handled = 0
        self._printed_at = time.monotonic()

    def advance(self) -> None:
        """Count a row."""
        self._handled += 1
        is_due = time.monotonic() - self._printed_at > PROGRESS_INTERVAL
        if is_due and self._handled < self._total:
            self._printed_at = time.monotonic()
            self._app.out.info(f"{self._handled:,} of {self._total:,}")

    def finish(self) -> None:
        """Print how many rows are left, if any."""
        if (left := self._total - self._handled) and self._total > 1:
            rows = counted(self._total, self._about)
            again = "run the command again to continue"
            self._app.out.info(f"interrupted: {left:,} of {rows} left; {again}")
