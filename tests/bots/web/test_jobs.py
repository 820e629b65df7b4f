"""The list of jobs, a job, its changes and its live log."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import httpx
import pytest

from draftsman.agent_runs.activity.activity import (
    Activity,
    ActivityKind,
    ActivityRow,
    ActivityState,
)
from draftsman.agent_runs.activity.log_entries import LogReader
from draftsman.errors import Failure
from draftsman.formats.json_data import as_data
from draftsman.jobs.details.service.log_feed import LogCursor
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.jobs.runs.saved_data import LogChunk
from draftsman.questions.question import Decision
from draftsman.questions.review_comment import ReviewComment
from draftsman.results import Picture, Table
from draftsman.runtime import Runtime
from draftsman_bots.web import job_pages as log_stream
from draftsman_bots.web.context import MAX_STREAMS
from draftsman_bots.web.job_pages import EVENTS, encode_cursor, log_lines, parse_cursor, visible
from draftsman_bots.web.pages import page as web_page
from draftsman_bots.web.problems import PageProblem
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.bots.web.web_side import Inbox, Visitor

LIMIT = QuotaLimit(1000, 1_000_000)


async def test_jobs_are_filtered_and_paged(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    failed = await make.failed()
    done = await make.completed({"summary": "All good"})
    own = await make.queued(actor=people.anna, title="Mine & yours", type="mail", queue="slow")
    anna = await inbox.visit(people.anna)
    everything = (await anna.get("/jobs")).text
    assert all(f"D-{number}<" in everything for number in (failed, done, own))
    await rt.job_control.dismiss(dismissed := await make.failed(), make.owner)
    open_failures = (await anna.get("/jobs?status=failures")).text
    assert f"D-{failed}<" in open_failures
    assert f"D-{dismissed}<" not in open_failures
    only = (await anna.get("/jobs?status=failed")).text
    assert f"D-{failed}<" in only
    assert f"D-{own}<" not in only
    mine = (await anna.get("/jobs?mine=1")).text
    assert f"D-{own}<" in mine
    assert f"D-{done}<" not in mine
    assert "Mine &amp; yours" in mine
    by_name = (await anna.get("/jobs?where=type:mail queue:slow")).text
    assert [f"D-{number}<" in by_name for number in (own, done)] == [True, False]
    assert "No repository &#39;none/&lt;b&gt;&#39;" in (await anna.get("/jobs?repo=none/<b>")).text
    assert "match the filter" in (await anna.get("/jobs?status=running")).text
    for bad in ("status=bogus", "before=x", "before=99999999999999999999"):
        assert (await anna.get(f"/jobs?{bad}")).status_code == 200
    for bad in ("repo=%00", "repo=a%00b", "status=%00", "mine=%00"):
        refused = await anna.get(f"/jobs?{bad}")
        assert (refused.status_code, "character that no text" in refused.text) == (400, True), bad
    page = (await anna.get(f"/jobs?before={own}")).text
    assert f"D-{own}<" not in page
    assert f"D-{done}<" in page
    assert "Newest" in page
    assert (await anna.get("/jobs/x")).status_code == 404
    assert (await anna.get("/jobs/D-999999")).status_code == 404


async def test_a_job_has_result_questions_events_and_log(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.log(work.lease, 1, "first\x1b[31m red\x1b[0m\nsecond\n")
    ben = await inbox.visit(people.ben)
    page = (await ben.get(f"/jobs/{work.name}")).text
    assert "first red" in page
    assert "is running it; last heartbeat" in page
    assert "draftsman logs" not in page
    assert "second" in page
    assert "Run 1 started</span></summary>" in page
    assert f'data-stream="/jobs/{work.name}/log?after=1.1-0.0"' in page
    assert ">Refresh</a>" in page
    url = "https://forge.example/acme/shop/pull/9"
    done = await make.completed({"summary": "All <b>good</b>", "pr_url": url})
    finished = (await ben.get(f"/jobs/D-{done}")).text
    assert "All &lt;b&gt;good&lt;/b&gt;" in finished
    assert f'<a href="{url}" rel="noreferrer noopener">{url}</a>' in finished
    assert "live-log.js" not in finished
    assert 'id="log"' not in finished, "it has no output"
    assert (await ben.get(f"/jobs/D-{done}/changes")).status_code == 404


REQUEST = """Prices are **wrong** in `prices.py`, see https://t.example/S-1.

```python
{code}
```
"""


async def test_a_request_is_shown_as_its_writer_meant_it(
    inbox: Inbox, make: Factory, people: People
) -> None:
    code = "a < b"
    short = await make.queued(text=REQUEST.format(code=f"{code}\n{code}"))
    long = await make.queued(text=REQUEST.format(code="\n".join([code] * 13)))
    plain = await make.queued(text="<b>two</b>\n  lines", payload={"follow-up_of:": {"a": [1, 2]}})
    ben = await inbox.visit(people.ben)
    page = (await ben.get(f"/jobs/D-{short}")).text
    assert "Prices are <strong>wrong</strong> in <code>prices.py</code>" in page
    assert 'noopener">https://t.example/S-1</a>.' in page
    assert '<pre class="code">a &lt; b\na &lt; b</pre>' in page
    assert '<details class="fold">' not in page
    assert "<summary>Code, 13 lines</summary>" in (await ben.get(f"/jobs/D-{long}")).text
    page = (await ben.get(f"/jobs/D-{plain}")).text
    assert 'written">&lt;b&gt;two&lt;/b&gt;\n  lines</p>' in page
    assert "<dt>follow up of</dt>" in page
    assert "<dt>a</dt><dd>1, 2</dd>" in page


async def test_a_page_names_no_command_and_no_code_where_it_has_links_and_words(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.running(max_attempts=1)
    for number in range(EVENTS):
        await rt.checkpoints.event(work.lease, "page_read", {"page": number})
    await rt.settlement.failure(work, Failure("gone"))
    ben = await inbox.visit(people.ben)
    page = (await ben.get(f"/jobs/{work.name}")).text
    assert "gone (unexpected error)" in page
    assert not re.search(
        r">[^<]*(draftsman [a-z]|run \.\d|[A-Z]_[A-Z])", page[page.index("<main") :]
    )
    assert page.index("and will not be retried") < page.index("Page read: page 24"), "newest first"
    assert "Page read: page 0<" not in page
    assert f'<a href="/jobs/{work.name}/events">Older events</a>' in page
    everything = (await ben.get(f"/jobs/{work.name}/events")).text
    assert everything.index("submitted the job") < everything.index("Page read: page 0<")
    assert "and will not be retried" in everything
    (last,) = re.findall(r'id="event-(\d+)"', everything)[-1:]
    after = (await ben.get(f"/jobs/{work.name}/events?after={last}")).text
    assert "No events." in after
    assert ">Oldest</a>" in after
    assert (await ben.get("/jobs/D-999999/events")).status_code == 404


async def test_the_groups_of_jobs_are_links_with_their_numbers(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    asked = await make.asked()
    await make.completed()
    ben = await inbox.visit(people.ben)
    page = (await ben.get("/jobs?where=&status=waiting&mine=")).text
    links = page[page.index('class="chips"') : page.index("</nav>", page.index('class="chips"'))]
    assert re.findall(r'">([^<]+) <span class="count">(\d+)', links) == [
        ("All", "2"),
        ("Waiting", "1"),
        ("Not finished", "1"),
        ("Finished", "1"),
    ]
    assert 'href="/jobs?status=waiting" aria-current="page"' in links
    assert "waiting for input</span>" in page, "as on the page of the job"
    for number in [await make.failed() for _ in range(3)][1:]:
        await rt.job_control.dismiss(number, make.owner)
    assert 'Failures <span class="count">1</span>' in (await ben.get("/jobs")).text
    assert re.findall(r'<tr id="([^"]+)"', page) == [f"row-{asked.name}"]


async def _say(
    rt: Runtime, work: ClaimedJob, seq: int, text: str, *, continues: bool = False
) -> None:
    items = [Activity(ActivityKind.MESSAGE, text, continues=continues)]
    await rt.activity.append(work.lease, seq, items, LIMIT)


def _events(lines: list[str]) -> list[Any]:
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


async def test_the_live_log_follows_and_continues_after_a_break(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.log(work.lease, 1, "one\n")
    ben = await inbox.visit(people.ben)
    received: list[str] = []
    keep = received.append
    path = f"/jobs/{work.name}/log"

    async def read(**headers: str) -> None:
        timeout = httpx.Timeout(30)
        async with ben.http.stream("GET", path, headers=headers, timeout=timeout) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            async for line in response.aiter_lines():
                keep(line)

    async def has(text: str) -> None:
        async def look() -> bool:
            return any(text in line for line in received)

        await until(look, text)

    reader = asyncio.create_task(read())
    await has('"spans": [["one\\n", false]]')
    reader.cancel()
    await asyncio.wait([reader])
    last = next(line[4:] for line in reversed(received) if line.startswith("id: "))
    received.clear()
    await _say(rt, work, 1, "is **<b>")
    reader = asyncio.create_task(read(**{"last-event-id": last}))
    await has('"spans": [["is **<b>", false]]')
    await _say(rt, work, 2, "two**", continues=True)
    await has('["<b>two", true]')
    await rt.job_control.cancel(work.number, make.owner)
    await make.rt.settlement.release_run(work, "shutdown")
    assert (await rt.read_model.job(work.number)).status is Status.CANCELED
    await reader
    message, whole, run_end, end = _events(received)
    assert (message["id"], whole["id"], end) == ("activity-1-1", "activity-1-1", {})
    assert run_end["id"] == "end-1-0"
    assert run_end["spans"] == [["-- run 1 was canceled --", False]]
    assert "event: end" in received
    assert not inbox.service.context.streams


async def test_the_live_log_updates_how_long_a_call_runs(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.running()
    call = Activity(ActivityKind.TOOL, "npm test", ActivityState.RUNNING, key="1")
    await rt.activity.append(work.lease, 1, [call], LIMIT)
    ben = await inbox.visit(people.ben)
    shown = re.search(r"after=([\d.-]+)", (await ben.get(f"/jobs/{work.name}")).text)
    assert shown is not None
    lengths = []
    path = f"/jobs/{work.name}/log?after={shown[1]}"
    async with ben.http.stream("GET", path, timeout=httpx.Timeout(30)) as response:
        async for line in response.aiter_lines():
            assert not line.startswith("id:"), "the position stays that of the log"
            if " … running " in line.encode().decode("unicode_escape"):
                lengths.append(json.loads(line[6:])["spans"][0][0].rpartition("running ")[2])
            if len(lengths) == 2:
                break
    assert lengths[0] != lengths[1]


async def test_live_logs_of_a_session_are_limited(
    inbox: Inbox, make: Factory, people: People
) -> None:
    work = await make.running()
    ben = await inbox.visit(people.ben)
    async with asyncio.TaskGroup() as group:
        streams = [group.create_task(_first_line(ben, work)) for _ in range(MAX_STREAMS)]

        async def are_open() -> bool:
            return inbox.service.context.streams.total() == MAX_STREAMS

        await until(are_open, "streams")
        assert (await ben.get(f"/jobs/{work.name}/log")).status_code == 429
        for stream in streams:
            stream.cancel()

    async def are_closed() -> bool:
        return not inbox.service.context.streams

    await until(are_closed, "the end of the streams")
    nobody = await inbox.visitor().get(f"/jobs/{work.name}/log")
    assert nobody.status_code == 303


async def test_a_browser_that_does_not_read_its_log_is_disconnected(
    inbox: Inbox, make: Factory, people: People, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_stream, "LIFETIME", 2.0)
    monkeypatch.setattr(log_stream, "HEARTBEAT", 0.1)
    work = await make.running()
    for seq in range(1, 101):
        await rt.checkpoints.log(work.lease, seq, "x" * 90_000)
    streams = inbox.service.context.streams

    async def is_open() -> bool:
        return streams.total() == 1

    async def is_closed() -> bool:
        return streams.total() == 0

    request = _log_request(await inbox.visit(people.ben), work)
    with _connected(inbox) as browser:
        browser.sendall(request)
        await until(is_open, "the stream")
        await until(is_closed, "the end of the stream")


def _log_request(visitor: Visitor, work: ClaimedJob) -> bytes:
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.http.cookies.items())
    lines = (f"GET /jobs/{work.name}/log HTTP/1.1", "host: localhost", f"cookie: {cookie}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _connected(inbox: Inbox) -> socket.socket:
    browser = socket.socket()
    browser.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    browser.connect(("127.0.0.1", inbox.port))
    browser.setblocking(False)
    return browser


async def _first_line(visitor: Visitor, work: ClaimedJob) -> None:
    async with visitor.http.stream("GET", f"/jobs/{work.name}/log") as response:
        async for _ in response.aiter_lines():
            pass


def test_positions_are_text() -> None:
    cursor = LogCursor((1, 7), (2, 30))
    assert parse_cursor(encode_cursor(cursor)) == cursor
    for text in ("", "1.2", "1.2-3.4-5", "²", "1.2-3.9999999999"):
        assert parse_cursor(text) == LogCursor()


def test_control_sequences_are_removed() -> None:
    assert visible("a\x1b]8;;http://x\x07b\x1b[2Kc\rd\x00") == "abc\nd\\u{0}"
    assert log_lines([]) == []


def test_a_log_has_a_line_for_a_call_and_folds_long_output_of_an_agent() -> None:
    reader = LogReader()
    at = datetime(2026, 11, 30, tzinfo=UTC)

    def row(seq: int, kind: str, text: str, state: str | None = None) -> ActivityRow:
        return ActivityRow(1, seq, kind, state, None, text, {}, seq == 9, at)

    output = LogChunk(1, 0, "".join(f"line {n}\n" for n in range(60)), at)
    records: list[LogChunk | ActivityRow] = [
        row(1, "tool", "npm test", "running"),
        output,
        row(2, "tool", "npm test", "failed"),
        row(8, "message", "**Do\n"),
        row(9, "message", "ne**, <all>"),
        row(10, "message", "Again\n"),
    ]
    entries = [entry for record in records for entry in reader.add(record)]
    (running, *_) = log_lines(entries[:1], at + timedelta(seconds=42))
    assert running.text == "▸ npm test … running 42 s"
    lines = log_lines(entries)
    assert [(line.kind, line.state, line.text) for line in lines if line.kind != "output"] == [
        ("tool", "failed", "✗ npm test"),
        ("message", "", "**Do\nne**, <all>"),
        ("message", "", "Again"),
    ]
    (done,) = (line for line in lines if line.id == "activity-1-8")
    assert done.spans == (("Do", True), ("\n", False), ("ne", True), (", <all>", False))
    (folded,) = (line for line in lines if line.kind == "output")
    assert (folded.text[-6:], folded.hidden_lines, folded.end[:7]) == ("line 9", 40, "line 50")
    (whole,) = log_lines(reader.add(output))
    assert (whole.hidden, whole.text.count("\n")) == ("", 59)


PNG = b"\x89PNG\r\n\x1a\n and so on"


async def test_a_picture_of_a_result_is_on_its_page(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    work = await make.running()
    for name, content in {"chart.png": PNG, "a/b.png": PNG, "evil.svg": b"<svg onload=x>"}.items():
        await rt.checkpoints.artifact(work.lease, name, "file", content)
    result = {
        "chart": as_data(Picture("chart.png", "Orders & a day")),
        "far": as_data(Picture("https://pictures.example/1.png", "elsewhere")),
        "rows": as_data(Table(["<b>", "Rows", "Part"], [["&", 1204, "3.5 %"], ["b", "", "-1 %"]])),
    }
    await rt.settlement.outcome(work, Done(result))
    anna = await inbox.visit(people.anna)
    page = (await anna.get(f"/jobs/{work.name}")).text
    assert f'<img src="/jobs/{work.name}/pictures/chart.png" alt="Orders &amp; a day">' in page
    assert '<a href="https://pictures.example/1.png"' in page
    right = ' class="right"'
    assert f"<th>&lt;b&gt;</th><th{right}>Rows</th><th{right}>Part</th>" in page
    assert f"<td>&amp;</td><td{right}>1204</td><td{right}>3.5 %</td>" in page
    for name in ("chart.png", "a%2Fb.png"):
        picture = await anna.get(f"/jobs/{work.name}/pictures/{name}")
        assert (picture.content, picture.headers["content-type"]) == (PNG, "image/png")
        assert picture.headers["x-content-type-options"] == "nosniff"
    (number, file), *_ = re.findall(r'href="/jobs/(D-\d+)/artifacts/1/(evil.svg)"', page)
    download = await anna.get(f"/jobs/{number}/artifacts/1/{file}")
    assert download.content == b"<svg onload=x>"
    assert download.headers["content-type"] == "application/octet-stream"
    assert download.headers["content-disposition"] == "attachment; filename*=UTF-8''evil.svg"
    assert (await anna.get(f"/jobs/{number}/artifacts/1/a%2Fb.png")).content == PNG
    assert (await anna.get(f"/jobs/{number}/artifacts/2/{file}")).status_code == 404
    for name in ("evil.svg", "none.png"):
        assert (await anna.get(f"/jobs/{work.name}/pictures/{name}")).status_code == 404, name


def _controls(page: str) -> list[str]:
    """Return the labels of the controls of a job, in their order."""
    head = page[: page.index("</article>")]
    return re.findall(r"<(?:button|summary)[^>]*>([A-Z][^<]*)</(?:button|summary)>", head)[1:]


async def test_a_job_has_the_controls_of_its_messages_for_those_who_may_use_them(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    live = await make.queued(actor=people.anna)
    done = await make.completed(actor=people.anna)
    dead = await make.dead(actor=people.anna)
    anna, erin = await inbox.visit(people.anna), await inbox.visit(people.erin)
    labels = {
        live: ["Cancel job", "Cancel job"],
        done: [],
        dead: ["Retry", "Dismiss", "Dismiss"],
    }
    for number, expected in labels.items():
        assert _controls((await anna.get(f"/jobs/D-{number}")).text) == expected
        assert _controls((await erin.get(f"/jobs/D-{number}")).text) == []
    page = (await anna.get(f"/jobs/D-{live}")).text
    assert f"Cancel D-{live}? Work so far is kept." in page
    csrf = {"csrf": (await anna.hidden(f"/jobs/D-{live}"))["csrf"]}

    async def act(number: int, action: str) -> httpx.Response:
        return await anna.post(f"/jobs/D-{number}", csrf | {"action": action})

    assert (await act(live, "cancel")).headers["location"] == f"/jobs/D-{live}"
    assert (await rt.read_model.job(live)).status is Status.CANCELED
    refused = await act(live, "cancel")
    assert refused.status_code == 409
    assert f"D-{live} is already canceled; nothing to cancel." in refused.text
    path = (await act(dead, "retry")).headers["location"]
    assert path == f"/jobs/D-{dead + 1}"
    assert (await act(dead, "retry")).headers["location"] == path
    retried = (await anna.get(f"/jobs/D-{dead}")).text
    assert _controls(retried) == []
    assert f'href="{path}"' in retried


async def test_times_are_in_the_zone_of_the_reader(
    inbox: Inbox, make: Factory, people: People
) -> None:
    number = await make.completed()
    policy = inbox.service.context.rt.policy
    anna = replace(policy.people["anna"], zone=timezone(timedelta(hours=1), "CET"))
    policy.people = {**policy.people, "anna": anna}
    for actor, zone in ((people.anna, "CET"), (people.ben, "UTC")):
        page = (await (await inbox.visit(actor)).get(f"/jobs/D-{number}")).text
        shown = r'title="\d{4}-\d\d-\d\d [\d:]+ (\w+)">[\d -]*\d\d:\d\d:\d\d (\w+)<'
        assert {*re.findall(shown, page)} == {(zone, zone)}


async def test_the_menu_counts_the_jobs_and_questions_of_its_reader(
    inbox: Inbox, make: Factory, people: People
) -> None:
    await make.asked(actor=people.anna)
    await make.completed()
    anna, erin = await inbox.visit(people.anna), await inbox.visit(people.erin)
    jobs = '>Jobs <span class="count">2</span></a>'
    questions = '>Questions <span class="count">1<span class="spoken"> for you</span></span></a>'
    for path in ("/", "/jobs", "/lists", "/lists/queues", "/jobs/D-999"):
        assert jobs in (await erin.get(path)).text, path
        assert questions in (await anna.get(path)).text, path
    assert jobs not in (await inbox.visitor().get("/sign-in")).text


async def test_a_failure_is_dismissed_and_the_dismissal_is_taken_back(
    inbox: Inbox, make: Factory, people: People, rt: Runtime
) -> None:
    number = await make.dead(actor=people.anna)
    path = f"/jobs/D-{number}"
    anna, erin = await inbox.visit(people.anna), await inbox.visit(people.erin)
    assert ">Dismiss<" not in (await erin.get(path)).text
    form = await anna.hidden(path)
    assert form["action"] == "dismiss"
    sent = await anna.post(path, form | {"reason": "fixed <upstream>"})
    assert (sent.status_code, sent.headers["location"]) == (303, path)
    assert "by anna: fixed &lt;upstream&gt;" in (await anna.get(path)).text
    assert await rt.read_model.jobs(failures=True) == []
    back = await anna.hidden(path)
    assert back["action"] == "undismiss"
    assert (await anna.post(path, back)).status_code == 303
    assert len(await rt.read_model.jobs(failures=True)) == 1
    assert (await anna.post(path, form | {"action": "x"})).status_code == 400
    assert (await anna.post(path, form | {"csrf": "x"})).status_code == 403
    await rt.job_control.retry(number, make.owner)
    assert ">Dismiss<" not in (await anna.get(path)).text
    refused = await anna.post(path, form)
    assert "nothing to dismiss" in refused.text


async def test_a_live_page_is_sent_again_only_if_it_has_changed(
    inbox: Inbox, make: Factory, people: People
) -> None:
    number = await make.completed(actor=people.anna)
    work = await make.asked(actor=people.anna)
    anna = await inbox.visit(people.anna)
    question = f"/questions/{work.name}/1"
    for path in ("/", "/jobs", "/lists/queues", f"/jobs/D-{number}", question):
        page = await anna.get(path)
        assert "/static/live.js" in page.text, path
        assert 'id="news" role="status"' in page.text, path
    page = await anna.get("/lists/rules")  # without times
    same = await anna.get("/lists/rules", **{"if-none-match": page.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    problems = [(key, PageProblem(400, f"form {key}")) for key in ("first", "second")]
    first, second = (web_page("problem", None, live=True, key=k, problem=p) for k, p in problems)
    assert first.headers["etag"] == second.headers["etag"]
    etag = (await anna.get(question)).headers["etag"]
    await make.answer(work.number, "blue", people.anna)
    assert (await anna.get(question, **{"if-none-match": etag})).status_code == 200
    refused = await anna.answer(f"/jobs/{work.name}", action="undismiss")
    assert (refused.status_code, "/static/live.js" in refused.text) == (409, False)


async def test_a_job_leads_to_its_open_questions(
    inbox: Inbox, make: Factory, people: People
) -> None:
    gate = await make.asked(GATE, actor=people.anna)
    path = f'href="/questions/{gate.name}/1"'
    for actor, label in (
        (people.carol, f"Answer {gate.name}/1"),
        (people.ben, f"Open {gate.name}/1"),
    ):
        page = (await (await inbox.visit(actor)).get(f"/jobs/{gate.name}")).text
        assert re.search(rf'<a class="button[^>]*{path}>{label}</a>', page)


async def test_a_job_has_the_words_of_a_page(inbox: Inbox, make: Factory, people: People) -> None:
    context = "\n".join(f"fact {nth}" for nth in range(1, 15))
    actor = people.anna
    open_question = await make.asked(QUESTION.model_copy(update={"context": context}), actor=actor)
    work = await make.reviewed(actor=actor, key="cli:generated", title="Round prices")
    comments = [ReviewComment("a.py", "why?", 1), ReviewComment("a.py", "add a test")]
    more: dict[str, Any] = {"reason": "Not yet", "comments": comments}
    await make.review(work.number, Decision.REQUEST_CHANGES, people.dave, **more)
    anna = await inbox.visit(actor)
    asked = (await anna.get(f"/jobs/{open_question.name}")).text
    assert all(f">{line}<" in asked for line in context.splitlines())
    page = (await anna.get(f"/jobs/{work.name}")).text
    assert "Run 1 </strong>" in page
    assert "generated" not in page
    question = f'<a href="/questions/{work.name}/1">{work.name}/1</a>'
    assert f"can go on: changes to <strong>{question}</strong> were requested" in page
    assert "requests changes: Not yet</span>" in page
    assert "  a.py:1: why?</span></p>" in page
    questions = page.partition('id="questions"')[2].partition("</section>")[0]
    assert questions.count("a.py:1: why?") == 1
    for text in (asked, page):
        assert not re.search(r">\| |draftsman (show|events)", text)
