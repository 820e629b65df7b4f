"""The `show` command: details of a job."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman.formats.invisible import one_line
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name, unknown_question
from draftsman.jobs.details.job_details import MAX_STEPS, JobDetails
from draftsman.jobs.details.sections.facts import status
from draftsman.jobs.details.sections.section import (
    Entry,
    JobSection,
    Reader,
    SectionPart,
    faint,
    name,
)
from draftsman.jobs.job import Status
from draftsman.text import humanize
from draftsman.workflows.dependencies import Parent
from draftsman.workflows.groups import JobGroup
from draftsman_tui.cli.app import App, command, number_of
from draftsman_tui.common.jobs import reason_data
from draftsman_tui.common.questions import answer_command, owner_name
from draftsman_tui.common.sections import line_text, part_lines
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from rich.console import RenderableType

    from draftsman.ids import JobRef


MAX_ENTRIES: Final = 8
"""Maximum number of the newest entries that are shown, if another command lists all."""
SAYS_NEXT: Final = {Status.COMPLETED, Status.EXPIRED}
"""Final statuses whose details name what to do, or need nothing."""
ALL_STEPS: Final = 1000
"""Maximum number of steps in the JSON output."""


@command(
    "show",
    section="Jobs",
    examples=(
        "draftsman show D-142",
        "draftsman show D-142 --json | jq .result",
        "draftsman show D-142 --tree",
        "draftsman show D-142/1",
    ),
)
@click.argument("job", metavar="JOB[/QUESTION]", type=params.JOB_OR_QUESTION)
@click.option("--tree", is_flag=True, help="Show the jobs that wait for it, directly or not.")
async def show(app: App, job: tuple[JobRef, int | None], tree: bool) -> None:
    """Show the details of a job.

    A question that is named, such as D-142/1, stands before the others.

    Includes its status, questions, answers, result, artifacts, request, attachments, messages,
    runs, steps, checkpoints, retries, group, parents, children, deliveries and newest events. With
    --tree, lists the jobs that wait for it, each under its newest parent.
    """
    if tree:
        await _show_tree(app, job[0])
        return
    from draftsman.jobs.details.sections.facts import is_open_failure
    from draftsman.jobs.details.sections.questions import responders
    from draftsman.jobs.details.sections.runs import is_empty_patch

    async with app.runtime(read_only=app.json) as rt:
        steps = ALL_STEPS if app.json else MAX_STEPS + 1
        details = await rt.read_model.details(await number_of(rt, job[0]), steps=steps)
        first = None if job[1] is None else _question(details, job[1])
        if app.json:
            app.out.document(_data(details))
            return
        asked = responders(details, rt.policy, owner_name(rt))
        reader = Reader(details.at, asked, name_of=rt.policy.name_of)
        if details.open_questions:
            await rt.figures.record_views(details.open_questions, await rt.actor())
    lines = list(job_lines(details, reader, first))
    with app.out.paged():
        app.out.print(*lines)
    if files := [item.name for item in details.artifacts if not is_empty_patch(item)]:
        file = shlex.quote(one_line(files[0]))
        app.out.info(f"for an artifact: draftsman artifacts get {details.job.name} {file}")
    why = details.wait_reason
    is_told = (
        details.job.status in SAYS_NEXT or why.reason == "no_program" or is_open_failure(details)
    )
    if details.is_over and not is_told:
        app.out.info(why.next_step)


def _data(details: JobDetails) -> dict[str, Any]:
    """Return the JSON object of a job: its columns, and everything that belongs to it."""
    from draftsman.deliveries.documents.json import question_json

    group = details.group
    joined_requests = [
        event.payload | {"at": event.created_at} for event in details.joined_requests
    ]
    belonging = {
        "runs": details.runs,
        "questions": [*map(question_json, details.questions)],
        "answers": details.answers,
        "artifacts": details.artifacts,
        "joined_requests": joined_requests,
        "steps": details.steps,
        "checkpoints": details.checkpoints,
        "messages": details.messages,
        "attachments": details.attachments,
        "archives": details.archives,
        "deliveries": details.deliveries,
        "retry_chain": details.retry_chain,
        "parents": parents_data(details.tree.parents),
        "group": None if group is None else group_data(group),
        "occurrence": details.occurrence,
        "unique_key": details.replacement.key,
        "replaces": details.replacement.replaces,
        "replaced_by": details.replacement.replaced_by,
        "attention": [*details.attention.values()],
        "wait_reason": None if details.is_over else reason_data(details.wait_reason),
    }
    optional: dict[str, Any] = {
        "pull_request": details.family,
        "sandbox": details.sandbox,
        "works_without": details.works_without,
    }
    present = {name: value for name, value in optional.items() if value is not None}
    data: dict[str, Any] = as_data(details.job) | as_data(belonging) | as_data(present)
    return data


def _question(details: JobDetails, ordinal: int) -> str:
    """Return the name of a question of the job; raises NotFound."""
    for question in details.questions:
        if question.ordinal == ordinal:
            return question.name
    raise unknown_question(details.job.number, ordinal)


def job_lines(
    details: JobDetails, reader: Reader, first: str | None = None
) -> Iterator[RenderableType]:
    """Yield the heading of a job and its sections; of an open question also how to answer it.

    The question with the name `first` is before all others.
    """
    from draftsman.jobs.details.sections.order import sections

    job = details.job
    title = f"  {one_line(job.title)}  "
    yield line_text(name(job.name), title, status(details))
    hints = {question.name: answer_command(question) for question in details.open_questions}
    for section in _beginning_with(first, sections(details, reader)):
        if section.title:
            yield styled("")
            yield styled(section.title, "bold underline")
        yield from part_lines(_newest(section), hints)


def _beginning_with(question: str | None, listed: Iterable[JobSection]) -> Iterator[JobSection]:
    """Yield the sections of a job, before them that of a question, which is in no other."""
    rest = []
    for section in listed:
        chosen = tuple(
            part for part in section.parts if isinstance(part, Entry) and part.name == question
        )
        if chosen and section.name == "questions":
            yield JobSection("question", "Question", parts=chosen)
            others = tuple(part for part in section.parts if part not in chosen)
            section = replace(section, title="Other questions", parts=others)
        if section.parts:
            rest.append(section)
    yield from rest


def _newest(section: JobSection) -> Sequence[SectionPart]:
    """Return the parts of a section with its newest entries, and the command for the others."""
    entries = [part for part in section.parts if isinstance(part, Entry) and part.name]
    if not section.more or len(entries) <= MAX_ENTRIES:
        return section.parts
    others = [part for part in section.parts if part not in entries]
    note = Entry("", ((faint(f"… {len(entries) - MAX_ENTRIES:,} more: {section.more}"),),))
    if section.newest_last:
        return [*others, note, *entries[-MAX_ENTRIES:]]
    return [*others, *entries[:MAX_ENTRIES], note]


async def _show_tree(app: App, job: JobRef) -> None:
    from draftsman.jobs.details.sections.related import tree_lines

    async with app.runtime(read_only=True) as rt:
        tree = await rt.workflows.tree(await number_of(rt, job))
    if app.json:
        app.out.document(as_data(tree) | {"parents": parents_data(tree.parents)})
        return
    if tree.parents:
        app.out.print(styled(f"after {parents_text(tree.parents)}", "dim"))
    if tree.spawned_by is not None:
        app.out.print(styled(f"spawned by {job_name(tree.spawned_by)}", "dim"))
    app.out.print(*(line_text(*job_line) for _, job_line in tree_lines(tree)))


MAX_PARENTS: Final = 8
"""Maximum number of parents named on a line."""


def parents_text(parents: Sequence[Parent]) -> str:
    """List the parents of a job with their statuses."""
    names = [f"{parent.name} {humanize(parent.status)}" for parent in parents[:MAX_PARENTS]]
    if len(parents) > MAX_PARENTS:
        names.append(f"{len(parents) - MAX_PARENTS:,} more")
    conditions = {str(parent.condition) for parent in parents} - {"success"}
    on = f" (on {', '.join(sorted(conditions))})" if conditions else ""
    return ", ".join(names) + on


def parents_data(parents: Sequence[Parent]) -> list[dict[str, Any]]:
    """Return the JSON objects of parents, without their results."""
    return [
        {
            "number": parent.number,
            "condition": parent.condition,
            "met": parent.met,
            "status": parent.status,
        }
        for parent in parents
    ]


def group_data(group: JobGroup) -> dict[str, Any]:
    """Return the JSON object of the group of a job."""
    names = ("name", "kind", "on_failure", "state", "progress")
    return {name: getattr(group, name) for name in names}
