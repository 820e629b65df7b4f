"""Queries of the front ends: job references, pages, filters, counts, waiting."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import NotFound, UsageError
from draftsman.ids import parse_job
from draftsman.jobs.details import store
from draftsman.jobs.details.stats import RecentActivity
from draftsman.jobs.job import WAITING, Status
from draftsman.jobs.job_summary import JobVersion
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.store.checkpoints import now
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.waits import until
from draftsman_tui.dashboard.jobs.view import page as dashboard_page
from tests.support.clock import Clock
from tests.support.event_history import wait_for_feed
from tests.support.raw_jobs import insert_job
from tests.support.statements import run


async def test_a_job_is_found_by_number_and_id_and_prefix(make: Factory, rt: Runtime) -> None:
    number = await make.queued()
    id = str((await rt.read_model.job(number)).id)
    for name in (f"D-{number}", f"d-{number}", f" {number} ", id, id.upper(), id[:18]):
        assert await rt.read_model.resolve(parse_job(name)) == number
    for name in ("D-999", "999", "ffffffff", "ffffffff-ffff-ffff-ffff-ffffffffffff"):
        with pytest.raises(NotFound, match="draftsman jobs"):
            await rt.read_model.resolve(parse_job(name))


async def test_a_prefix_of_two_ids_is_ambiguous(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    number = await make.queued()
    await run(
        conn,
        insert_job(
            {
                "id": "(left(id::text, 24) || '000000000000')::uuid",
                "type": "'noop'",
                "idempotency_key": "'twin'",
                "request_digest": "''",
                "source": "'cli'",
                "invoker_id": "'a'",
            },
            "draftsman.jobs",
        ),
    )
    id = str((await rt.read_model.job(number)).id)
    with pytest.raises(UsageError, match="several job ids"):
        await rt.read_model.resolve(parse_job(id[:12]))
    assert await rt.read_model.resolve(parse_job(id)) == number


async def test_the_newest_jobs_come_first_page_by_page(make: Factory, rt: Runtime) -> None:
    numbers = [await make.queued() for _ in range(5)]
    first = await rt.read_model.jobs(limit=2)
    second = await rt.read_model.jobs(limit=9, before=first[-1].number)
    assert [job.number for job in [*first, *second]] == numbers[::-1]


async def test_jobs_are_filtered(make: Factory, rt: Runtime) -> None:
    tidy = await make.queued(agent="tidy", repo="https://host/acme/app", tags=["a", "b"], key="k1")
    done = await make.completed(
        repo="/srv/app", type="report", queue="slow", tags=["team=pay"], key="k1"
    )
    expected = {
        "agent": ({"agent": "tidy"}, [tidy]),
        "repo": ({"repo": "app"}, [done, tidy]),
        "owner and repo": ({"repo": "acme/app"}, [tidy]),
        "tag": ({"tags": ["b"]}, [tidy]),
        "all tags": ({"tags": ["b", "a"]}, [tidy]),
        "not all tags": ({"tags": ["b", "none"]}, []),
        "key of a tag": ({"tags": ["team"]}, [done]),
        "key and value of a tag": ({"tags": ["team=pay"]}, [done]),
        "another value": ({"tags": ["team=p"]}, []),
        "type": ({"type": "report"}, [done]),
        "queue": ({"queue": "slow"}, [done]),
        "source": ({"source": "cli"}, [done, tidy]),
        "another source": ({"source": "slack"}, []),
        "idempotency key": ({"key": "k1"}, [done, tidy]),
        "idempotency key and type": ({"key": "k1", "type": "report"}, [done]),
        "idempotency key before": ({"key": "k1", "before": done}, [tidy]),
        "generated key": ({"key": "auto:x"}, []),
        "status": ({"statuses": [Status.COMPLETED, Status.FAILED]}, [done]),
        "no status": ({"statuses": []}, []),
        "since": ({"since": datetime.now(UTC) - timedelta(hours=1)}, [done, tidy]),
        "since later": ({"since": datetime.now(UTC) + timedelta(hours=1)}, []),
    }
    for name, (filters, numbers) in expected.items():
        jobs = await rt.read_model.jobs(**filters)  # type: ignore[arg-type]
        assert [job.number for job in jobs] == numbers, name


async def test_a_rare_tag_is_searched_for_in_bounded_steps(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftsman.jobs.details.service.read_model.SCAN_LIMIT", 2)
    first = await make.queued(tags=["rare"])
    numbers = [await make.queued() for _ in range(3)]
    page = await rt.read_model.page(tags=["rare"])
    assert (page.jobs, page.scanned_to) == ([], numbers[-2])
    page = await rt.read_model.page(tags=["rare"], before=page.scanned_to)
    assert ([job.number for job in page.jobs], page.scanned_to) == ([first], None)
    assert len((await rt.read_model.page()).jobs) == 4


async def test_since_is_found_by_binary_search(
    make: Factory, rt: Runtime, clock: Clock, conn: Connection
) -> None:
    old = [await make.queued() for _ in range(3)]
    await clock.forward(7200)
    new = [await make.queued() for _ in range(3)]
    await clock.tell(conn)
    since = await now(conn)
    await clock.forward(7200)
    late = await make.queued()
    times = [since - timedelta(days=1), since - timedelta(minutes=30), since + timedelta(hours=2)]
    numbers = [await store.first_since(conn, at) for at in times]
    assert numbers == [old[0], new[0], late]
    assert await store.first_since(conn, since + timedelta(days=1)) == late + 1
    assert [job.number for job in await rt.read_model.jobs(since=times[1])] == [late, *new[::-1]]


async def test_jobs_are_counted_up_to_a_limit(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftsman.jobs.details.service.read_model.COUNT_LIMIT", 2)
    for _ in range(3):
        await make.canceled()
        await make.queued()
    await make.completed()
    stats = await rt.read_model.stats()
    assert (stats.jobs["canceled"], stats.jobs["queued"], stats.jobs["completed"]) == (2, 2, 1)
    assert stats.capped == ["queued", "canceled"]


async def test_an_unknown_job_is_not_found(rt: Runtime) -> None:
    with pytest.raises(NotFound, match="D-999"):
        await rt.read_model.job(999)
    with pytest.raises(NotFound, match="D-999"):
        await rt.read_model.wait(999)


async def test_wait_ends_with_the_job(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    waiting = asyncio.ensure_future(rt.read_model.wait(work.number))
    assert not (await asyncio.wait([waiting], timeout=0.01))[0]
    await rt.settlement.outcome(work, Done())
    assert await waiting is Status.COMPLETED


async def test_wait_can_end_at_a_question(make: Factory, rt: Runtime) -> None:
    asked = await make.asked()
    gate = await make.asked(GATE)
    waits = [rt.read_model.wait(work.number, questions_too=True) for work in (asked, gate)]
    assert await asyncio.gather(*waits) == [
        Status.WAITING_FOR_INPUT,
        Status.WAITING_FOR_APPROVAL,
    ]


async def test_overview_counts_all_objects(make: Factory, rt: Runtime, clock: Clock) -> None:
    await make.worker_row(id=make.worker, slots=4)
    await make.worker_row(slots=9)
    await clock.forward(301)
    await rt.claim(make.worker, ()).heartbeat([], draining=False)
    await make.running()
    await make.asked(QUESTION.model_copy(update={"expires_in": 60.0}))
    await make.asked(QUESTION.model_copy(update={"never_expires": True}))
    answered = await make.asked()
    await clock.forward(100)
    await make.answer(answered.number, "red")
    await rt.claim(make.worker, ()).heartbeat([], draining=False)
    stats = await rt.read_model.stats()
    assert sum(stats.jobs.values()) == 4
    assert (stats.jobs["running"], stats.jobs["resumed"], stats.jobs["expired"]) == (1, 1, 0)
    assert (stats.open_questions, stats.expiring_within_an_hour) == (2, 1)
    assert stats.next_expiry is not None
    assert (stats.workers, stats.slots, stats.busy) == (1, 4, 1)
    assert stats.answers_last_day == 1
    assert stats.answer_seconds == pytest.approx(100, abs=5)


async def test_overview_of_an_empty_database_has_zero_counts(rt: Runtime) -> None:
    stats = await rt.read_model.stats()
    assert set(stats.jobs) == {str(status) for status in Status}
    assert sum(stats.jobs.values()) == stats.open_questions == stats.workers == 0
    assert (stats.next_expiry, stats.answer_seconds) == (None, None)


@pytest.mark.machine_clock("it compares with the time of the server")
async def test_server_information_has_the_version_and_the_clock_difference(rt: Runtime) -> None:
    health, ahead = await rt.read_model.health()
    assert int(health.version.split(".")[0]) >= 15
    assert abs(ahead) < 2


async def test_the_latest_runs_come_in_pages(make: Factory, rt: Runtime) -> None:
    numbers = [(await make.running()).number for _ in range(3)]
    first = await rt.read_model.latest_runs(limit=2)
    assert [run.job for run in first] == [numbers[2], numbers[1]]
    rest = await rt.read_model.latest_runs((first[-1].job, first[-1].ordinal), limit=2)
    assert [run.job for run in rest] == [numbers[0]]


async def test_latest_events_of_a_job_are_in_their_order(make: Factory, rt: Runtime) -> None:
    number = await make.completed()
    await make.completed()
    events = await rt.read_model.job_events(number)
    assert await rt.read_model.latest_job_events(number, limit=2) == events[-2:]
    assert await rt.read_model.latest_job_events(number, events[0].id) == events[1:]
    assert await rt.read_model.latest_job_events(number, events[-1].id) == []


async def test_a_job_has_a_status_and_a_version(make: Factory, rt: Runtime) -> None:
    number = await make.queued()
    assert await rt.read_model.version(number) == JobVersion(Status.QUEUED, 1, False)
    await make.running(number)
    assert await rt.read_model.version(number) == JobVersion(Status.RUNNING, 3, False)
    with pytest.raises(NotFound, match="there is no job D-99"):
        await rt.read_model.version(99)


async def test_latest_events_are_newest_first(make: Factory, rt: Runtime) -> None:
    await make.completed()
    await wait_for_feed(rt)
    forwards = await rt.read_model.events()
    first = await rt.read_model.latest_events(limit=2)
    rest = await rt.read_model.latest_events(first[-1].cursor)
    assert [*first, *rest] == forwards[::-1]


@pytest.mark.machine_clock("events have the time of the server")
async def test_activity_is_counted_since_the_previous_call(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make.completed()
    await make.answer((await make.asked()).number, "red")
    since = datetime.now(UTC) - timedelta(minutes=30)
    first = await _activity_with(rt, since, None, (1, 1))
    monkeypatch.setattr("draftsman.jobs.details.service.read_model.ACTIVITY_PAGE_SIZE", 2)
    second = await rt.read_model.activity(since)
    assert (second.since, second.spans) == (first.since, first.spans)
    assert second.end >= first.end  # a vacuum moves it too
    await make.failed()
    await make.queued()
    await _activity_with(rt, since, first.end, (1, 0))
    monkeypatch.setattr("draftsman.jobs.details.service.read_model.ACTIVITY_MAX_PAGES", 1)
    cut = await rt.read_model.activity(since)
    assert cut.since > first.since


async def _activity_with(
    rt: Runtime, since: datetime, after: store.EventCursor | None, expected: tuple[int, int]
) -> RecentActivity:
    """Wait for the activity: the feed holds back events behind an open transaction."""

    activity: RecentActivity | None = None

    async def look() -> bool:
        nonlocal activity
        activity = await rt.read_model.activity(since, after)
        return _counts(activity) == expected

    await until(look, f"activity of {expected}")
    assert activity is not None
    return activity


def _counts(activity: RecentActivity) -> tuple[int, int]:
    spans = activity.spans.values()
    return sum(span.finished for span in spans), sum(len(span.answers) for span in spans)


async def test_jobs_that_wait_for_people_are_in_the_order_of_their_deadlines(
    make: Factory, rt: Runtime
) -> None:
    def expiring(hours: float | None) -> QuestionSpec:
        if hours is None:
            return QUESTION.model_copy(update={"never_expires": True})
        return QUESTION.model_copy(update={"expires_in": hours * 3600})

    waiting = {hours: (await make.asked(expiring(hours))).number for hours in (9, None, 1, 5)}
    gate = (await make.asked(GATE.model_copy(update={"expires_in": 7200.0}))).number
    await make.queued()
    order = [waiting[1], gate, waiting[5], waiting[9], waiting[None]]
    statuses = list(WAITING)

    async def page(**filters: Any) -> list[int]:
        return [job.number for job in await rt.read_model.jobs(statuses=statuses, **filters)]

    assert await page() == order
    assert await page(limit=2) == order[:2]
    assert await page(before=gate) == order[2:]
    assert await page(type="noop", before=order[2], limit=1) == order[3:4]
    await make.answer(waiting[5], "red")
    assert await page(before=waiting[5]) == order[3:], "its deadline is that of its last question"
    rows = await dashboard_page(rt, {}, None, 3)
    assert [job.number for job in rows.items] == [waiting[1], gate, waiting[9]]
    rows = await dashboard_page(rt, {}, rows.next, 3)
    assert rows.items[0].number == waiting[None]


async def test_an_expired_job_is_no_open_failure(make: Factory, rt: Runtime) -> None:
    expired = await make.job_in(Status.EXPIRED)
    failed = await make.failed()
    assert [job.number for job in await rt.read_model.jobs(failures=True)] == [failed]
    assert sum((await rt.read_model.open_failures()).values()) == 1
    assert not (await rt.read_model.details(expired)).failure_open
