"""Actions on the selected rows: confirmation, progress, undo and summary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final, TypeVar

from draftsman.actions.action import (
    MAX_NAMED,
    UNDO,
    Action,
    ActionResult,
    Call,
    listed,
    name_of,
)
from draftsman.actions.jobs import Selection, job_names, select
from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import (
    ChoiceDialog,
    ConfirmDialog,
    ProgressDialog,
    PromptDialog,
    TextDialog,
)
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.terminal.results import result_text, results_text

if TYPE_CHECKING:
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen
    from draftsman_tui.dashboard.tables.screen import MainScreen

R = TypeVar("R")
Row = TypeVar("Row")
PROGRESS_DELAY: Final = 0.4
"""Seconds before the progress dialog opens."""


def call_of(screen: BaseScreen, action: Action[Any, ..., Any] | None = None) -> Call:
    """Return the call of the user; the effect of an action with a window can be undone."""
    is_held = action is not None and action.undo == UNDO
    window = screen.session.undo.seconds if is_held else 0.0
    return Call(screen.rt, screen.actor, window=window, report=screen.show_message)


async def confirmed(screen: BaseScreen, selection: Selection, consequence: str = "") -> bool:
    """Ask the question of an action about the selected jobs."""
    note = selection.note(consequence)
    if screen.unloaded:
        is_one = screen.unloaded == 1
        note += f" {screen.unloaded:,} more of the group {'is' if is_one else 'are'} not loaded."
    return await asked(screen, selection.question, "\n".join([note, *selection.lines]))


async def act(
    screen: BaseScreen, action: Action[Any, ..., R], row: Any, text: str = "", **more: Any
) -> ActionResult[R] | None:
    """Take an action on a row, and show what was done; None if the user goes back.

    Asks for the arguments without a `text`, then its question. `more` are arguments that no person
    types.
    """
    call = call_of(screen, action)
    typed = await _arguments(screen, action, row, text)
    if typed is None:
        return None
    arguments = {**action.takes.parse(typed), **more}
    if (question := await action.asked(call, row, **arguments)) is not None:
        note = "\n".join([*question.lines, question.note])
        if not await asked(screen, question.text, note):
            return None
    result = await action.run(call, row, **arguments)
    screen.show_message(result_text(result))
    return result


async def act_on_typed(screen: BaseScreen, action: Action[Any, ..., Any], text: str) -> None:
    """Take an action on a row that is typed, or chosen from all."""
    if action.row is None:
        raise TypeError(f"{action.key} has no row that is typed")
    if typed := await _arguments(screen, action, "", text):
        await act(screen, action, action.row(typed), typed)


async def _arguments(
    screen: BaseScreen, action: Action[Any, ..., Any], row: Any, text: str
) -> str | None:
    """Return the text of an action, which is asked for without one; None if the user goes back."""
    takes = action.takes
    if text or not takes.prompt:
        return text
    prompt = takes.prompt.format(name_of(action.about, row) if row != "" else "")
    if takes.choices is None:
        answer: str | None = await screen.ask(PromptDialog(prompt, takes.example))
        return answer
    choices = await takes.choices(call_of(screen), row)
    if len(choices) < 2 and not takes.asks_single:
        return next((text for _, text in choices), "")
    chosen: str | None = await screen.ask(ChoiceDialog(prompt, choices))
    return chosen


async def asked(screen: BaseScreen, question: str, note: str = "") -> bool:
    """Ask a question; return whether the answer is yes."""
    return await screen.ask(ConfirmDialog(question, note)) is True


async def typed(
    screen: BaseScreen, action: Action[int, ..., Any], selection: Selection, text: str
) -> str:
    """Return the text of an action on selected jobs, which is asked for without one.

    It is "" if the user goes back. Raises the refusal of a single job before it asks.
    """
    if text or not action.takes.prompt:
        return text
    numbers = selection.numbers
    if len(numbers) == 1:
        await action.asked(call_of(screen), numbers[0])
    prompt = action.takes.prompt.format(job_names(numbers))
    return await screen.ask(PromptDialog(prompt, action.takes.example)) or ""


async def perform_each(
    screen: BaseScreen,
    action: Action[Row, ..., Any],
    rows: Sequence[Row],
    do: Callable[[Row], Awaitable[ActionResult[Any]]],
    *,
    job: Callable[[Row], int] = lambda row: row,  # type: ignore[assignment,return-value]
) -> list[ActionResult[Any]]:
    """Act on each row in turn until Escape, continuing after a refusal; show what was done.

    `job` returns the job of a row. Refused rows and rows that were not tried stay marked.
    """
    results: dict[Row, ActionResult[Any]] = {}
    refused: dict[Row, DraftsmanError] = {}
    progress = ProgressDialog(action.progress or action.label, len(rows))
    timer = None
    if len(rows) > 1:
        timer = screen.set_timer(PROGRESS_DELAY, lambda: _show(screen, progress))
    try:
        for row in rows:
            try:
                results[row] = await do(row)
            except DatabaseUnreachable as error:
                screen.show_error(screen.error_text(error))
                break
            except DraftsmanError as error:
                refused[row] = error
            progress.show(len(results) + len(refused), len(refused))
            if progress.stopped:
                break
    finally:
        if timer is not None:
            timer.stop()
        if progress.is_attached:
            progress.dismiss(None)
    screen.keep_marked([job(row) for row in rows if row not in results])
    _report(screen, [*results.values()])
    if untried := len(rows) - len(results) - len(refused):
        screen.show_error(
            f"Stopped; {untried:,} of {len(rows):,} {action.about}s not processed; they stay marked"
        )
    _report_refusals(screen, {name_of(action.about, row): refused[row] for row in refused})
    return [*results.values()]


def job_command(
    name: str,
    action: Action[int, ..., Any],
    *,
    on: AbstractSet[str],
    keys: str = "",
    footer: bool = False,
) -> None:
    """Declare the command of an action on the selected jobs that it fits."""

    async def run(screen: BaseScreen, text: str) -> None:
        selection = await select(screen.rt, action, screen.jobs())
        numbers = selection.numbers
        text = await typed(screen, action, selection, text)
        if action.takes.prompt and not text:
            return
        arguments = action.takes.parse(text)
        consequence = f"Reason: {text}" if text else ""
        if not (action.question or len(numbers) > 1) or await confirmed(
            screen, selection, consequence
        ):
            call = call_of(screen, action)
            await perform_each(
                screen, action, numbers, lambda job: action.run(call, job, **arguments)
            )

    dashboard_command(name, CommandGroup.JOBS, does=action, keys=keys, on=on, footer=footer)(run)


def row_command(
    name: str,
    group: CommandGroup,
    action: Action[Any, ..., Any],
    *,
    on: AbstractSet[str],
    row: Callable[[Any], Any],
    keys: str = "",
    footer: bool = False,
) -> None:
    """Declare the command of an action on the row under the cursor; `row` makes it of that."""

    async def run(screen: MainScreen, text: str) -> None:
        await act(screen, action, row(screen.chosen(str(action.about))), text)

    dashboard_command(name, group, does=action, keys=keys, on=on, footer=footer)(run)


def typed_command(name: str, group: CommandGroup, action: Action[Any, ..., Any]) -> None:
    """Declare the command of an action on what no table shows."""

    async def run(screen: BaseScreen, text: str) -> None:
        await act_on_typed(screen, action, text)

    dashboard_command(name, group, does=action, writes=action.right is None)(run)


def _report(screen: BaseScreen, results: Sequence[ActionResult[Any]]) -> None:
    """Show what was done; the undo line shows what can be undone."""
    held = [result for result in results if isinstance(result.value, PendingDecision)]
    if held:
        screen.session.undo.hold(results_text(held), [result.value for result in held])
    if done := [result for result in results if result not in held]:
        screen.show_message(results_text(done))


def _report_refusals(screen: BaseScreen, refused: Mapping[str, DraftsmanError]) -> None:
    """Show the refused rows, by name: a line for each reason, or a dialog if there are many."""
    reasons: dict[str, list[str]] = {}
    for name, error in refused.items():
        text = screen.error_text(error, printed_subject=name)
        reasons.setdefault(text, []).append(name)
    lines = [
        reason
        if reason.startswith(listed(names))
        else f"{'each of ' if names[1:] else ''}{listed(names)} {reason}"
        for reason, names in reasons.items()
    ]
    if len(lines) > MAX_NAMED:
        title = f"{len(refused):,} refused; they stay marked"
        screen.app.push_screen(TextDialog(title, "\n".join(lines)))
        return
    for line in lines:
        screen.show_error(line)


def _show(screen: BaseScreen, progress: ProgressDialog) -> None:
    screen.app.push_screen(progress)
