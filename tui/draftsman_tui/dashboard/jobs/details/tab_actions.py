"""Commands of the job screen: tabs, items and neighboring jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from draftsman.deliveries.question_text import closed_locally, visible_context
from draftsman.errors import Refused, UsageError
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name
from draftsman.jobs.details.sections.event_sentences import event_sentence
from draftsman.jobs.details.sections.events import detail_lines
from draftsman.jobs.details.sections.related import GROUP
from draftsman.jobs.details.sections.runs import EARLIER_STEPS
from draftsman.jobs.details.sections.section import plain
from draftsman_tui.dashboard.command import JOB, JOBS, CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import TextDialog
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.jobs.details.job_tabs import JOB_TABS
from draftsman_tui.dashboard.jobs.details.screen import JobScreen
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.questions import actions as question_actions
from draftsman_tui.dashboard.tables.filter import Filter

MAX_TEXT: Final = 100_000
ALL_STEPS: Final = 1000
"""Newest steps that are listed."""
"""Maximum characters of a text to show."""


@dashboard_command("log", CommandGroup.JOBS, keys="l", on=JOBS, takes="RUN|all")
async def log(screen: BaseScreen, text: str) -> None:
    """Follow the log of a job or a run."""
    run = text.rpartition(".")[2]
    if text not in ("", "all") and not run.isdecimal():
        raise UsageError(f"invalid run {text!r}; expected a number or all")
    if isinstance(screen, JobScreen):
        screen.show_run(int(run) if run.isdecimal() else None)
    else:
        screen.open_job(screen.job(), "log")


@dashboard_command("previous-tab", CommandGroup.JOB, keys="left,h", on=JOB)
async def previous_tab(screen: JobScreen, text: str) -> None:
    """Go to the previous tab."""
    screen.switch_tab(-1)


@dashboard_command("next-tab", CommandGroup.JOB, keys="right", on=JOB)
async def next_tab(screen: JobScreen, text: str) -> None:
    """Go to the next tab."""
    screen.switch_tab(1)


@dashboard_command("follow", CommandGroup.JOB, keys="f", on=JOB)
async def follow(screen: JobScreen, text: str) -> None:
    """Keep the end of the log or the timeline in view.

    Opens the log from other tabs.
    """
    if not JOB_TABS[screen.tab].follows:
        screen.show_tab("log")
    screen.item_list.follow()


@dashboard_command("find", CommandGroup.JOB, keys="slash", on=JOB, takes="TEXT")
async def find(screen: JobScreen, text: str) -> None:
    """Search the tab; n and N go through the matches of a log.

    Without `text`, the search line opens.
    """
    if text:
        screen.search(text)
    else:
        screen.type("/", screen.search_text, lambda _: ())


@dashboard_command("next-match", CommandGroup.JOB, keys="n", on=JOB, footer=True)
async def next_match(screen: JobScreen, text: str) -> None:
    """Go to the next match of a search in the log or the diff."""
    screen.show_match(1)


@dashboard_command("previous-match", CommandGroup.JOB, keys="N", on=JOB, footer=True)
async def previous_match(screen: JobScreen, text: str) -> None:
    """Go to the previous match of a search in the log or the diff."""
    screen.show_match(-1)


@dashboard_command("back", CommandGroup.JOB, keys="escape", on=JOB, footer=True)
async def back(screen: JobScreen, text: str) -> None:
    """Go back to the table.

    Clears the search first, if there is one.
    """
    if screen.search_text:
        screen.search("")
    else:
        screen.app.pop_screen()


@dashboard_command("next-job", CommandGroup.JOB, keys="right_square_bracket,J", on=JOB)
async def next_job(screen: JobScreen, text: str) -> None:
    """Go to the next job in the table."""
    _step(screen, 1)


@dashboard_command("previous-job", CommandGroup.JOB, keys="left_square_bracket,K", on=JOB)
async def previous_job(screen: JobScreen, text: str) -> None:
    """Go to the previous job in the table."""
    _step(screen, -1)


async def open_item(screen: JobScreen) -> None:
    """Open the item under the cursor; in the log, the folded texts."""
    if screen.tab == "log":
        screen.fold_log()
        return
    snapshot = screen.snapshot
    key = screen.selected_key
    if snapshot is None or key is None:
        raise Refused("nothing to open here")
    match screen.tab:
        case "questions" if screen.question is not None:
            await question_actions.answer(screen, "")
        case "questions":
            question = next(
                question for question in snapshot.details.questions if question.name == key
            )
            context = visible_context(question) or "No further context."
            _show_text(screen, closed_locally(question), f"{question.text}\n\n{context}")
        case "timeline":
            event = next(event for event in snapshot.details.events if key.endswith(f"#{event.id}"))
            sentence = plain(event_sentence(event, snapshot.reader(snapshot.at)))
            _show_text(screen, sentence, "\n".join(detail_lines(event)))
        case "deliveries":
            delivery = next(
                delivery for delivery in snapshot.details.deliveries if str(delivery.seq) == key
            )
            _show_text(screen, f"Delivery {key}", format_fields(as_data(delivery)))
        case "runs" if key == EARLIER_STEPS:
            await _show_steps(screen)
        case "runs" | "usage":
            screen.show_run(int(key.rpartition(".")[2]))
        case "related" if key.startswith(GROUP):
            screen.show_table("jobs", Filter(group=key.removeprefix(GROUP)))
        case "related":
            screen.open_job(int(key.rpartition("D-")[2]), "related")
        case "artifacts" if "/" in key:
            await _open_artifact(screen, snapshot, key)


async def _open_artifact(screen: JobScreen, snapshot: JobSnapshot, key: str) -> None:
    """Show a file, or the diff for a patch."""
    run, _, name = key.partition("/")
    if any(
        (str(file.run), file.name, file.kind) == (run, name, "patch")
        for file in snapshot.details.artifacts
    ):
        screen.show_tab("diff")
    else:
        await _show_file(screen, name)


async def _show_steps(screen: JobScreen) -> None:
    details = await screen.rt.read_model.details(screen.number, steps=ALL_STEPS)
    lines = [f"{step.status:<8}  .{step.run}  {step.key}" for step in details.steps]
    _show_text(screen, f"Steps of {job_name(screen.number)}, newest first", "\n".join(lines))


async def _show_file(screen: JobScreen, name: str) -> None:
    _, content = await screen.rt.checkpoints.read_artifact(screen.number, name, most=1)
    command = f"draftsman artifacts get {job_name(screen.number)} {name}"
    if b"\0" in content:
        raise Refused(f"{name} is not a text file; to download it: {command}")
    text = content.decode("utf-8", "replace")
    note = f"\n… truncated; full file: {command}" if len(text) > MAX_TEXT else ""
    await screen.app.push_screen(TextDialog(name, text[:MAX_TEXT] + note))


def format_fields(fields: Mapping[str, Any]) -> str:
    """Format fields as one per line; a multi-line text starts below its name."""
    lines = []
    for key, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        lines.append(f"{key}:\n{text}\n" if "\n" in text else f"{key}: {text}")
    return "\n".join(lines) or "No details."


def _show_text(screen: JobScreen, title: str, text: str) -> None:
    screen.app.push_screen(TextDialog(title, text[:MAX_TEXT]))


def _step(screen: JobScreen, by: int) -> None:
    number = screen.main.next_job(by, screen.number)
    if number is None:
        raise Refused(f"this is the {'last' if by > 0 else 'first'} job in the table")
    screen.open_job(number, screen.tab)
