"""Overview: statistics at the start, their cost while idle, and problems."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID

from textual.message import Message

from draftsman.jobs.details.service.read_model import BUCKET_SECONDS
from draftsman.jobs.details.stats import ActivityBucket, RecentActivity
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from draftsman_tui.dashboard.frame import dashboard_stats
from draftsman_tui.dashboard.frame.connection import DatabaseClock
from draftsman_tui.dashboard.frame.dashboard_stats import DashboardStats, WorkerStats
from draftsman_tui.dashboard.frame.messages import StatsUpdated
from draftsman_tui.dashboard.frame.stats_poller import StatsPoller
from draftsman_tui.dashboard.widgets.overview import lines
from tests.support.cases import cases
from tests.support.event_history import wait_for_feed
from tests.tui.dashboard.pilot import connected

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
AT = int(NOW.timestamp()) // BUCKET_SECONDS


def _counting(rt: Runtime, owner: Actor) -> tuple[StatsPoller, list[Message]]:
    posted: list[Message] = []
    return StatsPoller(connected(rt, owner), DatabaseClock(), posted.append), posted


def _last(posted: list[Message]) -> DashboardStats:
    message = posted[-1]
    assert isinstance(message, StatsUpdated)
    return message.stats


async def test_activity_before_the_start_is_counted(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    await make.completed()
    await make.failed()
    job = (await make.asked()).number
    await make.answer(job, "red")
    await wait_for_feed(rt)
    counting, posted = _counting(rt, owner)
    await counting.count()
    assert _last(posted).activity is None
    assert _last(posted).jobs["completed"] == 1
    await counting.load_activity()
    assert (pulse := _last(posted).activity) is not None
    assert dashboard_stats.finished(pulse, counting._clock.now) == 2
    assert dashboard_stats.answer_time(pulse, counting._clock.now) is not None


async def test_new_activity_is_added_once(make: Factory, rt: Runtime, owner: Actor) -> None:
    await make.completed()
    await wait_for_feed(rt)
    counting, posted = _counting(rt, owner)
    await counting.count()
    await counting.load_activity()
    for ended in (2, 3):
        await make.completed()

        async def is_added(expected: int = ended) -> bool:
            # a transaction of another database may hold the end of the events back
            counting.changed()
            await counting.count()
            activity = _last(posted).activity
            return activity is not None and (
                dashboard_stats.finished(activity, counting._clock.now) == expected
            )

        await until(is_added, f"{ended} finished jobs")


async def test_jobs_are_not_counted_without_events(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    counting, posted = _counting(rt, owner)
    await counting.count()
    await make.queued()
    await counting.count()
    assert _last(posted).jobs["queued"] == 0
    counting.changed()
    await counting.count()
    assert _last(posted).jobs["queued"] == 1


def test_activity_outside_the_window_is_dropped() -> None:
    old = RecentActivity(
        {1: ActivityBucket(1, 5, []), 7: ActivityBucket(7, 1, [2.0])}, (1, 1, 0), 1
    )
    new = dashboard_stats.merge_activity(
        old,
        RecentActivity({7: ActivityBucket(7, 2, [4.0]), 8: ActivityBucket(8, 3, [])}, (1, 9, 0), 6),
    )
    assert new == RecentActivity(
        {7: ActivityBucket(7, 3, [4.0, 2.0]), 8: ActivityBucket(8, 3, [])}, (1, 9, 0), 6
    )


def test_bars_split_half_an_hour_newest_last() -> None:
    spans = {AT: ActivityBucket(AT, 2, [10.0, 30.0]), AT - 6: ActivityBucket(AT - 6, 5, [])}
    pulse = RecentActivity(spans, (1, 1, 0), AT - 179)
    assert dashboard_stats.throughput(pulse, NOW, 30)[-2:] == [5, 2]
    assert dashboard_stats.throughput(pulse, NOW, 10) == [0] * 9 + [7]
    assert dashboard_stats.answer_times(pulse, NOW, 6) == [None] * 5 + [20.0]
    assert dashboard_stats.finished(pulse, NOW) == 7


def test_unknown_intervals_have_no_bar() -> None:
    pulse = RecentActivity({}, (1, 1, 0), AT - 59)
    assert dashboard_stats.throughput(pulse, NOW, 6) == [None] * 4 + [0, 0]


def _second(crew: WorkerStats, width: int = 78, skew: float = 0, stale: float = 0) -> str:
    pulse = RecentActivity({AT: ActivityBucket(AT, 12, [95.0])}, (1, 1, 0), AT - 179)
    drawn = lines(DashboardStats({}, crew, skew, pulse), NOW, stale, width=width)
    return drawn.plain.partition("\n")[2]


def test_overview_fits_the_width() -> None:
    crew = WorkerStats({"alive": 2}, 13, 20, "6d0f9a1c", 2)
    for width, bars in ((78, 5), (98, 6), (118, 10), (158, 30)):
        assert len(_second(crew, width)) <= width
        assert _second(crew, width).count("▁") + 1 == bars
    assert _second(crew).startswith(
        "2 alive, 13/20 busy  leader 6d0f9a1c, 2 s  finished 12 in 30 min ▁"
    )


def test_a_narrow_overview_keeps_the_counts_of_jobs_that_need_attention() -> None:
    names = ("queued", "scheduled", "retrying", "running", "waiting_for_input", "failed")
    jobs = dict.fromkeys((*names, "dead_letter", "completed", "canceled"), 12)
    for width, shown in (
        (50, "running 12  failures 12"),
        (78, "queued 12  retrying 12  running 12  failures 12"),
        (200, "queued 12  scheduled 12  retrying 12  running 12  waiting 12  failures 12"),
    ):
        drawn = lines(
            DashboardStats(jobs, WorkerStats(), open_failures={"failed": 12}),
            NOW,
            width=width,
            waiting=9,
        )
        first = drawn.plain.partition("\n")[0]
        assert first.startswith(f" 9 questions for you   {shown}"), first
        assert len(first) <= width


@cases(("health", "late"), [("alive", False), ("silent", True)])
def test_leader_is_late_when_its_heartbeat_is(health: str, late: bool) -> None:
    leader = SimpleNamespace(
        leader=True, id=UUID(int=7), host="build-1", heartbeat_age=29.0, busy=0, slots=2
    )
    crew = dashboard_stats.worker_stats([(leader, health)])
    assert crew.leader_late is late
    drawn = lines(DashboardStats({}, crew), NOW, width=120)
    reversed_ = [
        drawn.plain[span.start : span.end] for span in drawn.spans if "reverse" in str(span.style)
    ]
    assert ("leader 00000007, 29 s" in reversed_) is late


def test_problems_come_first() -> None:
    assert _second(WorkerStats({"alive": 1}, 0, 10)).startswith(" no leader ")
    assert _second(WorkerStats({"silent": 2, "lost": 1})).startswith(
        " no leader    2 workers not responding    1 worker lost "
    )
    assert _second(WorkerStats(), skew=-4).startswith(
        " your clock is 4 s behind   no workers; to start one: draftsman up"
    )
    assert _second(WorkerStats(), stale=30).startswith(" as of 30 s ago ")
    starting = lines(DashboardStats({}, WorkerStats()), NOW, width=120, supervised=True)
    assert "no workers; its worker is starting" in starting.plain
