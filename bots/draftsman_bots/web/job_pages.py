"""The list of jobs, and a job with its questions, events and log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote, urlencode

from starlette.responses import RedirectResponse, StreamingResponse
from starlette.responses import Response as PlainResponse

from draftsman.actions import jobs as actions
from draftsman.actions.action import Action, Call
from draftsman.agent_runs.activity.activity import ActivityKind
from draftsman.agent_runs.activity.log_entries import OUTPUT, LogEntry, entry_text, join_message
from draftsman.agent_runs.changes.shown_diff import shown_diff
from draftsman.deliveries.documents.builder import job_controls
from draftsman.entities.filter_values import FILTER_VALUES, unknown_value
from draftsman.entities.jobs import JOBS
from draftsman.errors import DraftsmanError, NotFound, NotPermitted, Refused, UsageError
from draftsman.formats.amounts import COUNT_LIMIT, count_text
from draftsman.formats.invisible import escape_invisible, line_ends
from draftsman.ids import job_name, job_number
from draftsman.jobs.counts import WORDS
from draftsman.jobs.details.log_lines import FOLDED_LINES, fold, markdown_lines
from draftsman.jobs.details.sections.events import event_line
from draftsman.jobs.details.sections.facts import status as status_of
from draftsman.jobs.details.sections.order import sections
from draftsman.jobs.details.service.log_feed import LogCursor
from draftsman.jobs.job import FAILURES, Status
from draftsman.jobs.job_summary import JobFilters
from draftsman.jobs.status_display import STATUSES
from draftsman.text import is_link
from draftsman_bots.web.access import client_address
from draftsman_bots.web.context import MAX_ALL_STREAMS, MAX_STREAMS
from draftsman_bots.web.list_pages import MAX_FILTER, UNFILTERED, examples, table
from draftsman_bots.web.pages import page, read_form
from draftsman_bots.web.plugin import WEB
from draftsman_bots.web.problems import PageProblem, error_text
from draftsman_bots.web.section_html import page_reader

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from draftsman.jobs.details.job_details import JobDetails
    from draftsman.jobs.details.sections.section import Reader
    from draftsman_bots.web.access import Visit
    from draftsman_bots.web.context import WebContext


# Items of a log as lines, and their position as text.


_CURSOR: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})-([0-9]{1,9})\.([0-9]{1,9})")
_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
"""Sequences that color or move the text of a terminal."""


@dataclass(frozen=True, slots=True)
class LogLines:
    """The lines of an entry of a log; `hidden` lines are between the text and the `end`."""

    kind: str
    id: str
    state: str
    text: str
    hidden: str = ""
    end: str = ""

    @property
    def hidden_lines(self) -> int:
        """How many lines are hidden."""
        return self.hidden.count("\n") + 1

    @property
    def spans(self) -> Sequence[tuple[str, bool]]:
        """The text in parts, and whether each is strong: a message is Markdown."""
        if self.kind != ActivityKind.MESSAGE:
            return ((self.text, False),)
        return tuple(_markdown_spans(self.text))


def log_lines(entries: Iterable[LogEntry], now: datetime | None = None) -> list[LogLines]:
    """Return entries as lines: calls as they ended, and long texts folded where an agent works.

    `now`: how long an open call runs.
    """
    shown: dict[str, LogLines] = {}
    message: LogEntry | None = None
    open_output = ""
    for entry in entries:
        if entry.kind == ActivityKind.MESSAGE:
            entry = message = join_message(message, entry)
        lines = _lines(entry, now)
        if open_output and entry.kind == OUTPUT:
            lines = replace(shown[open_output], text=shown[open_output].text + lines.text)
        shown[lines.id] = lines
        open_output = "" if entry.kind != OUTPUT or lines.text.endswith("\n") else lines.id
    found = [replace(lines, text=lines.text.removesuffix("\n")) for lines in shown.values()]
    has_agent = any(lines.kind != OUTPUT for lines in found)
    return [_folded(lines) if has_agent else lines for lines in found if lines.text.strip("\n")]


def _folded(lines: LogLines) -> LogLines:
    most = FOLDED_LINES.get(lines.kind)
    texts = lines.text.split("\n")
    begin, count, end = fold(texts, most or len(texts))
    if not count:
        return lines
    hidden = texts[len(begin) : len(begin) + count]
    return replace(lines, text="\n".join(begin), hidden="\n".join(hidden), end="\n".join(end))


def _lines(entry: LogEntry, now: datetime | None) -> LogLines:
    """Return an entry without control sequences."""
    return LogLines(entry.kind, entry.id, entry.state or "", visible(entry_text(entry, now)))


def _markdown_spans(text: str) -> Iterator[tuple[str, bool]]:
    for nth, line in enumerate(markdown_lines(text)):
        if nth:
            yield "\n", False
        for span in line:
            yield (span, False) if isinstance(span, str) else (span.text, span.is_name)


def visible(text: str) -> str:
    """Return visible text without sequences of terminals; a line that was rewritten is another."""
    return escape_invisible(line_ends(_ESCAPE.sub("", text)).replace("\r", "\n"))


def encode_cursor(cursor: LogCursor) -> str:
    """Return a position as text: `1.7-1.3`."""
    return "-".join(f"{run}.{seq}" for run, seq in (cursor.output, cursor.activity))


def parse_cursor(text: str) -> LogCursor:
    """Return the position of a text; the start of the log for any other text."""
    match = _CURSOR.fullmatch(text)
    if match is None:
        return LogCursor()
    chunk_run, chunk_seq, row_run, row_seq = map(int, match.groups())
    return LogCursor((chunk_run, chunk_seq), (row_run, row_seq))


PAGE_SIZE: Final = 50
EVENTS: Final = 25
"""Newest events of a job that its page shows."""
ALL_EVENTS: Final = 200
"""Events of a page of all events of a job."""
LOG_ITEMS: Final = 200
"""Newest chunks of output and rows of activity that its page shows, of each."""
PATCH_MEBIBYTES: Final = 4
PICTURE_MEBIBYTES: Final = 10
ARTIFACT_MEBIBYTES: Final = 100
PICTURES: Final = (
    (rb"\x89PNG\r\n\x1a\n", "png"),
    (rb"\xff\xd8\xff", "jpeg"),
    (rb"GIF8[79]a", "gif"),
    (rb"(?s)RIFF.{4}WEBP", "webp"),
)
"""How the formats of pictures begin; a browser believes no other (`nosniff`)."""
_GROUPS: Final = {
    "": ("All", None),
    "waiting": ("Waiting", WORDS["waiting"]),
    "failures": ("Failures", FAILURES),
    "active": ("Not finished", WORDS["not finished"]),
    "finished": ("Finished", WORDS["finished"]),
}
"""Filters of several statuses, by name: their text and statuses."""
VALUES: Final[Sequence[Literal["group", "type", "queue", "repo"]]] = (
    "group",
    "type",
    "queue",
    "repo",
)
"""Filters whose value is a name; lists of these lead to their jobs."""


ACTIONS: Final[dict[str, Action[int, ..., Any]]] = {
    action.name: action
    for action in (actions.retry, actions.dismiss, actions.undismiss, actions.cancel)
}
"""The actions of the forms of a job, by the names of its controls."""


async def jobs(context: WebContext, request: Request) -> Response:
    """Show jobs, newest first, that match the filter."""
    visit = await context.visit(request)
    query = request.query_params
    filters, entered, problem = _filters(query.get, visit)
    rt = context.rt_of(visit)
    search = entered["where"]
    filters["limit"] = COUNT_LIMIT if search else PAGE_SIZE
    jobs_page = await rt.read_model.page(**filters)
    rows = await rt.read_model.with_figures(jobs_page.jobs)
    counted: JobFilters = {**filters, "before": None}
    counts = None if search else await rt.read_model.counts(**counted)
    in_all: JobFilters = {**counted, "statuses": None, "failures": False}
    by_status = None if search else await rt.read_model.counts(**in_all)
    is_narrowed = any(text for name, text in entered.items() if name != "status")
    failures = {} if is_narrowed else await rt.read_model.open_failures()
    now = await rt.checkpoints.now()
    older = jobs_page.scanned_to
    if older is None and len(jobs_page.jobs) == filters["limit"]:
        older = jobs_page.jobs[-1].number
    hints = examples(JOBS, rows, now)
    if not problem:
        try:
            rows = [*JOBS.select(rows, now, search=search)]
        except UsageError as error:
            problem = f"{error_text(error)} {UNFILTERED}"
    if len(rows) > PAGE_SIZE:
        rows = rows[:PAGE_SIZE]
        older = rows[-1].number
    kept = {name: text for name, text in entered.items() if text}
    is_empty = not jobs_page.jobs and older is None
    return page(
        "jobs",
        visit,
        live=True,
        active="jobs",
        unknown=await unknown_value(rt, filters) if is_empty else "",
        table=table(JOBS, rows, now),
        examples=hints,
        repos=sorted(await FILTER_VALUES["repo"].read(rt, "")),
        more=[*_more(entered)],
        statuses=[
            *((name, text) for name, (text, _) in _GROUPS.items()),
            *((str(status), display.word.capitalize()) for status, display in STATUSES.items()),
        ],
        groups=[*_group_links(entered, by_status or {}, failures)],
        total="" if counts is None else count_text(sum(counts.values())),
        shown=len(rows),
        entered=entered,
        problem=problem,
        is_filtered=bool(kept),
        is_first="before" not in query,
        older=None if older is None else urlencode({**kept, "before": older}),
    )


async def show(context: WebContext, request: Request) -> Response:
    """Show a job."""
    visit = await context.visit(request)
    return await _job_page(context, visit, await _number(request))


async def _job_page(
    context: WebContext, visit: Visit, number: int, *, status: int = 200, problem: str = ""
) -> Response:
    rt = context.rt_of(visit)
    details = await rt.read_model.details(number, events=EVENTS)
    entries, cursor = await rt.log_feed.tail(number, LOG_ITEMS)
    return details_page(
        visit,
        details,
        page_reader(rt, details),
        log_lines(entries, details.at),
        encode_cursor(cursor),
        to_answer={
            question.name: rt.figures.refusal(question, visit.actor) is None
            for question in details.open_questions
        },
        controls=controls_of(context, visit, details),
        status=status,
        problem=problem,
    )


async def act(context: WebContext, request: Request) -> Response:
    """Take an action on a job, then show the job, or its retry."""
    visit = await context.visit(request)
    fields = await read_form(request)
    context.access.check_form(visit, fields)
    context.limits.count_form(visit.session.id, client_address(request, context.settings))
    number = await _number(request)
    name = fields.get("action", "")
    if name not in ACTIONS:
        raise PageProblem(400, "The form is incomplete.", "Open the page again.")
    call = Call(context.rt_of(visit), visit.actor)
    try:
        result = await ACTIONS[name].typed(call, number, fields.get("reason", ""))
    except Refused as error:
        problem = error_text(error)
        return await _job_page(context, visit, number, status=409, problem=problem)
    shown = result.value.number if name == actions.retry.name else number
    return RedirectResponse(f"/jobs/{job_name(shown)}", 303)


def details_page(
    visit: Visit | None,
    details: JobDetails,
    reader: Reader,
    lines: Sequence[LogLines],
    cursor: str,
    *,
    to_answer: Mapping[str, bool] = MappingProxyType({}),
    controls: Sequence[Action[int, ..., Any]] = (),
    status: int = 200,
    problem: str = "",
) -> Response:
    """Return the page of a job with the end of its log, and the controls of its actions.

    `to_answer`: whether the visitor may answer each open question, by name.
    """
    return page(
        "job",
        visit,
        status=status,
        live=status == 200,
        active="jobs",
        job=details.job,
        state=status_of(details),
        pull_request=job_pull(details),
        is_final=details.is_over,
        sections=[*sections(details, reader)],
        lines=lines,
        cursor=cursor,
        to_answer=to_answer,
        controls=controls,
        problem=problem,
        has_patch=any(artifact.kind == "patch" for artifact in details.artifacts),
    )


def job_pull(details: JobDetails) -> str:
    """Return the address of the pull request of a job, "" without one."""
    family = details.family
    url = details.job.pr_url or (family.pull.url if family is not None else "")
    return url if url and is_link(url) else ""


def controls_of(
    context: WebContext, visit: Visit, details: JobDetails
) -> Sequence[Action[int, ..., Any]]:
    """Return the actions that a person may take on a job; one that was retried has its retry."""
    job = details.job
    if details.wait_reason.retried_as is not None:
        return ()
    shown = job_controls(job.name, job.status, failure_open=details.failure_open)
    names = [control.action.value for control in shown]
    if details.wait_reason.dismissal is not None:
        names.append(actions.undismiss.name)
    return [ACTIONS[name] for name in names if _may(context, visit, ACTIONS[name], job.invoker_id)]


def _may(context: WebContext, visit: Visit, action: Action[int, ..., Any], invoker: str) -> bool:
    try:
        if action.right is not None:
            context.rt.policy.check(visit.actor, action.right, invoker=invoker)
    except NotPermitted:
        return False
    return True


async def events(context: WebContext, request: Request) -> Response:
    """Show all events of a job, oldest first."""
    visit = await context.visit(request)
    number = await _number(request)
    rt = context.rt_of(visit)
    job = await rt.read_model.job(number)
    text = request.query_params.get("after", "")
    after = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
    read = await rt.read_model.job_events(number, after, ALL_EVENTS + 1)
    shown = read[:ALL_EVENTS]
    reader = page_reader(rt, await rt.read_model.details(number, events=1))
    return page(
        "events",
        visit,
        active="jobs",
        job=job,
        events=[(event_line(event, reader), event) for event in shown],
        is_first=not after,
        next_after=shown[-1].id if len(read) > ALL_EVENTS else None,
    )


async def changes(context: WebContext, request: Request) -> Response:
    """Show the newest changes of a job."""
    visit = await context.visit(request)
    number = await _number(request)
    rt = context.rt_of(visit)
    job = await rt.read_model.job(number)
    patch = await rt.changes.patch(number)
    if patch is None:
        raise NotFound(f"D-{number} has no changes")
    is_large = patch.size > PATCH_MEBIBYTES * 1024 * 1024
    content = b"" if is_large else await rt.checkpoints.content(patch)
    diff = shown_diff(content.decode("utf-8", "surrogateescape"))
    return page("changes", visit, active="jobs", job=job, diff=diff, is_large=is_large)


async def picture(context: WebContext, request: Request) -> Response:
    """Return a file of a job, if it is a picture in a format without programs."""
    visit = await context.access.required(request)
    number = await _number(request)
    name = request.path_params["name"]
    rt = context.rt_of(visit)
    await rt.read_model.job(number)
    _, content = await rt.checkpoints.read_artifact(number, name, PICTURE_MEBIBYTES)
    for start, kind in PICTURES:
        if re.match(start, content):
            return PlainResponse(content, media_type=f"image/{kind}")
    raise NotFound(f"{name!r} is no picture: only PNG, JPEG, GIF and WebP are shown")


async def artifact(context: WebContext, request: Request) -> Response:
    """Return an artifact of a run as a file, which no browser opens as a page."""
    visit = await context.access.required(request)
    number = await _number(request)
    run, name = request.path_params["run"], request.path_params["name"]
    rt = context.rt_of(visit)
    await rt.read_model.job(number)
    for item in await rt.checkpoints.artifacts(number):
        if (item.run, item.name) == (run, name):
            content = await rt.checkpoints.content(item, ARTIFACT_MEBIBYTES)
            headers = {
                "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"
            }
            return PlainResponse(content, headers=headers, media_type="application/octet-stream")
    raise NotFound(f"run {run} of {job_name(number)} has no artifact {name!r}")


async def _number(request: Request) -> int:
    number = job_number(request.path_params["job"])
    if number is None:
        raise NotFound("there is no such job")
    return number


def _filters(get: Any, visit: Visit) -> tuple[JobFilters, dict[str, str], str]:
    """Return the filters of a query, their texts in the form, and the problem of a bad value."""
    names = ("where", "status", *VALUES, "mine")
    if any("\x00" in str(get(name) or "") for name in names):
        raise PageProblem(400, "The filter has a character that no text may have.", "Open /jobs.")
    entered = {name: str(get(name) or "").strip()[:MAX_FILTER] for name in names}
    filters: JobFilters = {"limit": PAGE_SIZE}
    problem = ""
    status = entered["status"]
    if status in _GROUPS:
        filters["statuses"] = _statuses(_GROUPS[status][1])
        filters["failures"] = status == "failures"
    elif status in set(Status):
        filters["statuses"] = [Status(status)]
    else:
        problem = f"There is no status {status[:40]!r}. The list below has jobs of every status."
        entered["status"] = ""
    for name in VALUES:
        if entered[name]:
            filters[name] = entered[name]
    if entered["mine"]:
        filters["invoker"] = visit.actor.voter
    before = str(get("before") or "")
    if before.isascii() and before.isdigit() and len(before) < 19:
        filters["before"] = int(before)
    return filters, entered, problem


def _more(entered: Mapping[str, str]) -> Iterator[str]:
    """Yield the filters of a page that its form has folded."""
    if entered["status"] not in _GROUPS:
        yield f"status {STATUSES[Status(entered['status'])].word}"
    yield from (f"{name} {entered[name]}" for name in VALUES if entered[name])
    if entered["mine"]:
        yield "only mine"


def _group_links(
    entered: Mapping[str, str], counts: Mapping[str, int], failures: Mapping[str, int]
) -> Iterator[tuple[str, str, int, bool]]:
    """Yield the text and the query of each group, its number of jobs, and whether it is shown.

    Its number is 0 where it is unknown. Of the failures it is that of `failures`, the open ones.
    """
    for name, (text, group) in _GROUPS.items():
        kept = {key: value for key, value in {**entered, "status": name}.items() if value}
        known = failures if name == "failures" else counts
        count = sum(number for status, number in known.items() if not group or status in group)
        yield text, urlencode(kept), count, entered["status"] == name


def _statuses(group: frozenset[Status] | None) -> list[Status] | None:
    return None if group is None else [status for status in Status if status in group]


# The live log of a job as server-sent events.


_Read = tuple[LogLines, LogCursor | None]
"""Lines, and the position after them; None for an earlier line that changed."""

HEARTBEAT: Final = 15.0
"""Seconds between comments in a silent stream, and between checks of its session."""
LIFETIME: Final = 600.0
"""Seconds after which a stream ends; the browser connects again."""
_BUFFER: Final = 200
"""Items that wait for a slow browser."""


async def stream(context: WebContext, request: Request) -> Response:
    """Send the log after `after`, or after the last event that the browser received."""
    visit = await context.access.required(request)
    number = job_number(request.path_params["job"])
    if number is None:
        raise NotFound("there is no such job")
    rt = context.rt_of(visit)
    await rt.read_model.job(number)
    session_streams = context.streams[visit.session.id]
    total = context.streams.total()
    if session_streams >= MAX_STREAMS or total >= MAX_ALL_STREAMS:
        raise PageProblem(429, "Too many live logs are open.", "Close a page.", retry_after=30)
    after = request.headers.get("last-event-id") or request.query_params.get("after", "")
    events = _events(context, visit, number, parse_cursor(after))
    return _LogResponse(context, visit.session.id, events)


class _LogResponse(StreamingResponse):
    """A stream that counts from its creation until its end, or until its browser reads no more."""

    def __init__(self, context: WebContext, session: int, events: AsyncIterator[str]) -> None:
        headers = {"x-accel-buffering": "no"}  # nginx would hold the events back
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._streams = context.streams
        self._session = session
        self._streams[session] += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; a browser that does not read them in time is disconnected."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LIFETIME + HEARTBEAT):
                    await super().__call__(scope, receive, send)
        finally:
            self._streams[self._session] -= 1
            if self._streams[self._session] <= 0:
                del self._streams[self._session]


async def _events(
    context: WebContext, visit: Visit, number: int, after: LogCursor
) -> AsyncIterator[str]:
    """Yield events; the last has the name `end`, if the job has ended."""
    queue: asyncio.Queue[_Read | None] = asyncio.Queue(_BUFFER)
    reader = asyncio.create_task(_read(context, number, after, queue))
    loop = asyncio.get_running_loop()
    end = loop.time() + LIFETIME
    checked = loop.time()
    try:
        yield "retry: 3000\n\n"
        while not context.stop and loop.time() < end:
            if loop.time() >= checked + HEARTBEAT:
                checked = loop.time()
                if await context.sessions.find(visit.token, WEB.name) is None:
                    return
                yield ": alive\n\n"
            try:
                async with asyncio.timeout(1):
                    read = await queue.get()
            except TimeoutError:
                continue
            if read is None:
                yield "event: end\ndata: {}\n\n"
                return
            lines, cursor = read
            fields = {
                "kind": lines.kind,
                "id": lines.id,
                "state": lines.state,
                "spans": lines.spans,
            }
            position = "" if cursor is None else f"id: {encode_cursor(cursor)}\n"
            yield f"{position}data: {json.dumps(fields)}\n\n"
    except DraftsmanError:  # of the check of the session: the browser connects again
        return
    finally:
        reader.cancel()


async def _read(
    context: WebContext, number: int, after: LogCursor, queue: asyncio.Queue[_Read | None]
) -> None:
    """Put the entries of the log into the queue, then None; ends silently with the database.

    A message comes again with each of its pieces, and the line of an open call whenever its time
    has another text.
    """
    sent: dict[str, str] = {}
    with contextlib.suppress(DraftsmanError):
        feed = context.rt.log_feed
        ahead = await context.rt.checkpoints.now() - datetime.now(UTC)
        known = await feed.reader(number, LOG_ITEMS, after)

        def update_open_calls() -> None:
            for call in known.open_calls:
                lines = _lines(call, datetime.now(UTC) + ahead)
                if sent.get(call.id) != lines.text and not queue.full():
                    sent[call.id] = lines.text
                    queue.put_nowait((lines, None))

        async for entry, cursor in feed.entries(
            number, follow=True, after=after, reader=known, on_complete=update_open_calls
        ):
            if entry.kind == ActivityKind.MESSAGE and known.message is not None:
                entry = known.message
            await queue.put((_lines(entry, datetime.now(UTC) + ahead), cursor))
        await queue.put(None)
