"""How it looks, of values that never change; `pictures/` has each as it should be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from draftsman.domain.actor import Actor
from draftsman.domain.job import Mode, Status
from draftsman.domain.question import OnDeny, OnExpire, Question, QuestionKind, QuestionStatus
from draftsman.runtime import Runtime
from draftsman.services.inspect import SPAN, Line, Pulse, Span
from draftsman_tui.dashboard.filter import NOTHING
from draftsman_tui.dashboard.live import Live
from draftsman_tui.dashboard.messages import Counted, Found
from draftsman_tui.dashboard.resource import Query, Rows
from draftsman_tui.dashboard.screens.answer import Answer
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.vitals import Crew, Vitals
from tests.tui.dashboard.pictures import is_as_pictured
from tests.tui.dashboard.seeing import Seen, looking

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
TITLES = ("Tidy the inventory service", "Fix the flaky test", "Münze ⚙ zählen", "Ship it")


def _job(number: int, status: Status) -> Line:
    at = NOW - timedelta(minutes=7 * (20 - number))
    error = "the disk of the build host is full" if status in ("failed", "dead_letter") else None
    return Line(
        number=number,
        id=UUID(int=number),
        type="run_agent",
        queue="default",
        status=status,
        mode=Mode.FIX,
        source="cli",
        agent="tidy",
        repo_owner="acme",
        repo_name="pay",
        ticket_title=TITLES[number % 4],
        invoker_id="anna",
        tags=[],
        attempts=0,
        max_attempts=3,
        retry_count=0,
        max_retries=3,
        run_count=1,
        next_retry_at=None,
        run_at=None,
        last_error=error,
        error_class=None,
        created_at=at,
        started_at=at,
        finished_at=None,
        due_in=90.0 if status in ("retrying", "scheduled") else None,
    )


def _question() -> Question:
    choices: list[dict[str, Any]] = [
        {"value": "all", "label": "all fixes", "description": "also those that change behaviour"},
        {"value": "safe", "label": "safe fixes", "description": None},
    ]
    return Question(
        job=7,
        ordinal=1,
        run=1,
        key="what",
        kind=QuestionKind.INPUT,
        status=QuestionStatus.OPEN,
        text="Which fixes should be applied?",
        choices=choices,
        freeform_allowed=True,
        context_snippet="inventory/stock.py:12: unused import",
        approvers=[],
        quorum=1,
        on_expire=OnExpire.EXPIRE,
        default_value=None,
        on_deny=OnDeny.FAIL,
        digest="",
        action=None,
        resolution=None,
        asked_at=NOW - timedelta(minutes=3),
        expires_at=None,
        answered_at=None,
    )


ROWS: dict[str, list[Any]] = {
    "jobs": [_job(number, status) for number, status in zip(range(13, 0, -1), Status, strict=True)],
    "inbox": [_question()],
}


def _pulse() -> Pulse:
    """Jobs that ended more and more often, and an answer every few minutes."""
    now = int(NOW.timestamp()) // SPAN
    ended = {now - nth: (180 - nth) // 9 % 14 for nth in range(180)}
    took = {now - nth: [20.0 + nth] for nth in range(0, 180, 25)}
    spans = {at: Span(at, count, took.get(at, [])) for at, count in ended.items()}
    return Pulse(spans, (1, 1, 1), now - 180)


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be looked at, and the clock stand."""

    async def nothing(live: Live) -> None:
        """Never look."""

    monkeypatch.setattr(Live, "run", nothing)
    monkeypatch.setattr(Live, "now", NOW)


async def _show(seen: Seen, view: str) -> None:
    jobs = dict.fromkeys(map(str, Status), 3)
    found = Found(VIEWS[view], Query(NOTHING, NOW), Rows(ROWS[view]))
    seen.app.main.post_message(found)
    crew = Crew({"alive": 2, "silent": 1}, 3, 8, "build-1", 2.0)
    seen.app.main.post_message(Counted(Vitals(jobs, ["completed"], crew, 4.0, _pulse())))
    await seen.see("this clock is +4 s off", VIEWS[view].key(ROWS[view][0]))
    await seen.pilot.pause()


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("size", [(80, 24), (120, 30)], ids=["80x24", "120x30"])
@pytest.mark.parametrize("view", ROWS)
async def test_a_table(
    rt: Runtime,
    owner: Actor,
    view: str,
    size: tuple[int, int],
    theme: str,
) -> None:
    async with looking(rt, owner, view=view, size=size, theme=theme) as seen:
        await _show(seen, view)
        is_as_pictured(f"{view}-{size[0]}x{size[1]}-{theme}", seen)


async def test_an_answer(rt: Runtime, owner: Actor) -> None:
    async with looking(rt, owner, view="inbox", theme="contrast", size=(80, 24)) as seen:
        await _show(seen, "inbox")
        await seen.app.push_screen(Answer(_question(), "anna, ben"))
        await seen.see("2  safe fixes", "own words")
        await seen.pilot.pause()
        is_as_pictured("answer-80x24-contrast", seen)
