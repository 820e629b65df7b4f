"""On-call schedules of calendars: files, URLs, outages, and `@oncall` in a ladder."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from draftsman.attention.service import oncall as service
from draftsman.attention.service.oncall import OnCall
from draftsman.errors import DraftsmanError
from draftsman.jobs.runs.run import LeaderTerm
from draftsman_testing.factories import QUESTION
from draftsman_testing.http_server import Reply, Request, serving
from tests.core.attention.conftest import MakeWith, TeamRuntime, person
from tests.core.attention.test_ladders import sent
from tests.core.outbound.test_icalendar import calendar

NOW = datetime(2026, 6, 3, 12, tzinfo=UTC)
WEEKS = (
    "SUMMARY:On call: ben\r\nDTSTART:20260601T090000\r\nDTEND:20260608T090000",
    "SUMMARY:carol\r\nDTSTART:20260608T090000\r\nDTEND:20260615T090000",
    "SUMMARY:Summer party\r\nDTSTART:20260601T090000\r\nDTEND:20260602T090000",
)


async def test_a_file_has_the_duties_in_local_time(team: TeamRuntime, tmp_path: Path) -> None:
    path = tmp_path / "oncall.ics"
    path.write_bytes(calendar(*WEEKS))
    rt = await team(oncall={"default": {"file": str(path), "timezone": "Europe/Berlin"}})
    schedules = rt.oncall
    duties, later = await schedules.duties("default", NOW)
    assert [(duty.person, duty.end.hour) for duty in duties] == [("ben", 7)]
    assert later is not None
    assert (later.person, later.start) == ("carol", datetime(2026, 6, 8, 7, tzinfo=UTC))
    assert await schedules.on_duty(NOW + timedelta(days=20)) == {"default": ()}


async def test_an_outage_of_a_calendar_keeps_the_events_of_the_last_time(
    team: TeamRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Request] = []
    status = 200

    async def answer(request: Request) -> Reply:
        requests.append(request)
        return Reply(status, calendar(*WEEKS))

    async with serving(answer) as url:
        monkeypatch.setenv("ONCALL_URL", f"{url}/calendar.ics?key=secret")
        rt = await team(oncall={"default": {"url": {"env": "ONCALL_URL"}}})
        schedules = rt.oncall
        for _ in range(3):
            assert await schedules.on_duty(NOW) == {"default": ("ben",)}
        assert [request.path for request in requests] == ["/calendar.ics?key=secret"], "kept"
        monkeypatch.setattr(service, "CALENDAR_AGE", 0.0)
        status = 503
        assert await schedules.on_duty(NOW) == {"default": ("ben",)}
        fresh = OnCall(rt.settings, rt.policy)
        assert await fresh.on_duty(NOW) == {"default": ()}
        with pytest.raises(DraftsmanError, match="HTTP 503"):
            await fresh.duties("default", NOW)


async def test_a_slow_calendar_delays_no_other(
    team: TeamRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read at the same time."""
    both = asyncio.Barrier(2)

    async def answer(request: Request) -> Reply:
        async with asyncio.timeout(10):
            await both.wait()
        return Reply(200, calendar(*WEEKS))

    async with serving(answer) as url:
        monkeypatch.setenv("ONCALL_URL", url)
        table = {"url": {"env": "ONCALL_URL"}}
        rt = await team(oncall={"default": table, "night": table})
        assert await rt.oncall.on_duty(NOW) == {"default": ("ben",), "night": ("ben",)}


async def test_the_person_on_duty_is_notified(team: TeamRuntime, make_with: MakeWith) -> None:
    start = datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(days=10)
    rt = await team(
        ladders={"default": {"steps": [{"notify": ["@oncall", "@oncall:night"]}]}},
        questions={"ladders": {"input": "default"}},
        oncall={
            "default": {"people": ["ben", "carol"], "start": start},
            "night": {"people": ["ben", "carol"], "start": start, "days": 100},
        },
    )
    work = await make_with(rt).asked(QUESTION, actor=person(rt, "anna"))
    await rt.sweeps.run("ladders", LeaderTerm())
    assert await sent(rt, work.number) == ["U0CAROL", "U0BEN"]
