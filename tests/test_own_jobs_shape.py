"""Jobs of a type of one's own have nothing of a request of an agent, wherever they are read.

The fields are those of the models, and the places those of `tests/test_visibility.py`, where what
people read is complete.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final

from rich.console import Console

from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.documents.json import message_json
from draftsman.deliveries.service.message_builder import build_result
from draftsman.formats.json_data import OPTIONAL, as_data
from draftsman.handlers.context import RunContext
from draftsman.jobs.details.sections.section import Reader
from draftsman.jobs.job import AgentRequest, Job, Status
from draftsman.jobs.job_summary import FinishedJob, JobFigures, JobSummary
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.questions.question import OpenQuestion
from draftsman.queues.queue_models import QueuedJob
from draftsman.runtime import Runtime
from draftsman.testing import run_handler
from draftsman_bots.web.job_pages import details_page
from draftsman_testing.factories import GATE, Factory
from draftsman_tui.cli.jobs.show import _data, job_lines
from draftsman_tui.dashboard.jobs.details import header
from draftsman_tui.dashboard.jobs.details.job_tabs import JOB_TABS
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from tests.bots.test_documents import MEDIA
from tests.test_visibility import JOBLESS, READS

TYPE: Final = "report:weekly"
TITLE: Final = "Report of week 31"
MODELS: Final = (Job, JobSummary, JobFigures, FinishedJob, QueuedJob, OpenQuestion)
FIELDS: Final = frozenset(
    {field.name for field in fields(AgentRequest)} - {"text"}  # which questions have, too
    | {field.name for model in MODELS for field in fields(model) if field.metadata == OPTIONAL}
    | {"repo", "ticket", "ticket_title", "requested_skills", "diff", "sandbox", "pull_request"}
)
EVENTS: Final = {
    *("event feed", "events of kinds", "common events", "table events", "list events"),
}
"""Lists that name jobs by their number alone."""
WORDS: Final = re.compile(
    r"\b(mode|repo|repository|ticket|skills?|agents?|diff|branch|sandbox|pull requests?)\b", re.I
)


async def _jobs(rt: Runtime, make: Factory) -> list[int]:
    """Make own jobs in every status, and with answered, asked and paused questions."""
    of_type: dict[str, Any] = {"type": TYPE, "title": TITLE, "payload": {"week": 31}}
    numbers = [await make.job_in(status, **of_type) for status in Status]
    numbers.append(await make.completed(**of_type, group={"name": "release", "kind": "parallel"}))
    numbers.append((await make.asked(GATE, **of_type)).number)
    answered = await make.asked(**of_type)
    await make.answer(answered.number, "red")
    paused = await make.queued(**of_type)
    await rt.job_control.pause(paused, make.owner, "noon")
    return [*numbers, answered.number, paused]


def _keys(value: Any) -> Iterator[str]:
    match value:
        case dict():
            yield from value
            for item in value.values():
                yield from _keys(item)
        case list():
            for item in value:
                yield from _keys(item)


async def test_no_document_has_a_field_of_a_request(rt: Runtime, make: Factory) -> None:
    documents: dict[str, Any] = {}
    numbers = await _jobs(rt, make)
    for name, read in READS.items():
        if name not in JOBLESS:
            documents[name] = await read(rt, make.owner)
    for number in numbers:
        details = await rt.read_model.details(number)
        documents[f"show D-{number}"] = _data(details)
        message = build_result(details.job, details.questions)
        for kind in DeliveryKind:
            question = details.questions[0] if details.questions else None
            documents[f"{kind} D-{number}"] = message_json(
                replace(message, kind=kind, question=question)
            )
    found = {name: FIELDS & {*_keys(as_data(document))} for name, document in documents.items()}
    assert not {name: keys for name, keys in found.items() if keys}
    of_agent = await make.asked(GATE, type="run_agent", agent="tidy", text="Tidy up")
    details = await rt.read_model.details(of_agent.number)
    assert {"request", "mode", "agent", "skills"} <= {*_keys(as_data(_data(details)))}


async def test_no_medium_has_a_word_of_a_request(rt: Runtime, make: Factory) -> None:
    for number in await _jobs(rt, make):
        details = await rt.read_model.details(number)
        snapshot = JobSnapshot(details, details.at, {})
        output = io.StringIO()
        Console(file=output, width=200).print(*job_lines(details, Reader(details.at)), sep="\n")
        rows = [
            *header.head(snapshot, details.at, 200),
            *(
                row
                for tab in JOB_TABS.values()
                if tab.name not in ("log", "diff", "usage")
                for item in tab.items(snapshot, 200, details.at)
                for row in item.rows
            ),
        ]
        page = bytes(details_page(None, details, Reader(details.at), [], "").body).decode()
        message = build_result(details.job, details.questions)
        shown = {
            "terminal": output.getvalue(),
            "dashboard": "\n".join("".join(cell.text for cell in row) for row in rows),
            "web": re.sub(r"<[^>]*>", " ", page[page.index("<main") :]),
        }
        for kind in (DeliveryKind.STATUS, DeliveryKind.RESULT):
            of_kind = replace(message, kind=kind)
            shown |= {f"{kind} {medium}": render(of_kind) for medium, render in MEDIA.items()}
        for medium, text in shown.items():
            assert TITLE in text or medium == "dashboard", medium  # its title bar has it
            assert not (found := WORDS.search(text)), (medium, found, text)


async def test_a_handler_has_no_attribute_of_a_request() -> None:
    async def handler(ctx: RunContext) -> Outcome:
        assert ctx.job.request is None
        assert not FIELDS - {"request"} & {*dir(ctx.job)}
        return Done({"title": ctx.job.title})

    ran = await run_handler(handler, type=TYPE, title=TITLE)
    assert ran.outcome == Done({"title": TITLE})


async def test_each_list_of_jobs_names_them_by_their_title(rt: Runtime, make: Factory) -> None:
    await _jobs(rt, make)
    named: set[str] = set()
    titled: set[str] = set()
    for name, read in READS.items():
        text = str(as_data(await read(rt, make.owner)))
        named |= {name} if re.search(r"D-\d|'(number|job)': \d", text) else set()
        titled |= {name} if TITLE in text else set()
    assert named - titled == EVENTS
    assert {"table jobs", "list jobs", "table inbox", "questions", "order of queues"} <= titled
