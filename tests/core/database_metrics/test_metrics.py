"""Metrics that are read from the database."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import TERMINAL, Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.statements import run


def _value(text: str, metric: str, **labels: str) -> float | None:
    """Return the value of a sample."""
    pairs = ",".join(f'{name}="{value}"' for name, value in labels.items())
    head = f"draftsman_{metric}{{{pairs}}} " if pairs else f"draftsman_{metric} "
    values = [line for line in text.splitlines() if line.startswith(head)]
    return float(values[0].removeprefix(head)) if values else None


async def test_jobs_are_counted_by_queue_type_and_status_until_they_end(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    jobs = {status: await make.job_in(status) for status in Status}
    queues = {status: (await rt.read_model.job(number)).queue for status, number in jobs.items()}
    await run(
        conn,
        "UPDATE draftsman.job_states SET queued_at = draftsman.now() - interval '1 hour'"
        " WHERE number = %(job)s",
        {"job": jobs[Status.QUEUED]},
    )
    text = await rt.database_metrics.metrics()
    for status, queue in queues.items():
        count = _value(text, "jobs", queue=queue, type="noop", status=status)
        assert count == (None if status in TERMINAL else 1), status
    queued = {"queue": queues[Status.QUEUED], "type": "noop", "status": "queued"}
    assert _value(text, "jobs_oldest_seconds", **queued) == pytest.approx(3600, abs=60)
    later = {"queue": queues[Status.SCHEDULED], "type": "noop", "status": "scheduled"}
    assert _value(text, "jobs_oldest_seconds", **later) == 0, "it is not due yet"
    assert _value(text, "open_failures", status="dead_letter") == 1
    assert _value(text, "open_failures", status="failed") == 1


async def test_questions_deliveries_and_workers_are_counted(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.asked(notify=("log",))
    silent = await make.worker_row(host="silent")
    await run(
        conn,
        "UPDATE draftsman.workers SET heartbeat_at = draftsman.now() - interval '1 day'"
        " WHERE id = %(id)s",
        {"id": silent},
    )
    await run(
        conn,
        "UPDATE draftsman.deliveries SET next_attempt_at = draftsman.now() - interval '1 hour'"
        " WHERE job = %(job)s AND next_attempt_at IS NOT NULL",
        {"job": work.number},
    )
    text = await rt.database_metrics.metrics()
    assert _value(text, "open_questions", kind="input") == 1
    assert _value(text, "open_questions_oldest_seconds", kind="input") is not None
    assert (_value(text, "deliveries", channel="log", status="pending") or 0) > 0
    late = _value(text, "deliveries_late_seconds", channel="log", status="pending")
    assert late == pytest.approx(3600, abs=60)
    assert _value(text, "workers", state="silent") == 1
    assert _value(text, "workers_heartbeat_age_seconds", state="silent") == pytest.approx(
        86_400, abs=60
    )
    assert _value(text, "leader") == 0


async def test_the_use_of_models_is_that_of_today(rt: Runtime, conn: Connection) -> None:
    for day, cost in (("", 2), (" - 1", 40)):
        await run(
            conn,
            "INSERT INTO draftsman.daily_costs VALUES"
            f" (draftsman.budget_day(){day}, 'r', 'anna', 'coder', 'm', 3, %(cost)s, 100, 10)",
            {"cost": cost},
        )
    text = await rt.database_metrics.metrics()
    assert _value(text, "model_cost_usd_today", agent="coder", model="m") == 2
    assert _value(text, "model_calls_today", agent="coder", model="m") == 3
    tokens = {"agent": "coder", "model": "m", "direction": "input"}
    assert _value(text, "model_tokens_today", **tokens) == 100


async def test_no_more_rows_are_read_than_are_asked_for(rt: Runtime, make: Factory) -> None:
    for _ in range(3):
        await make.queued(queue="work")
    state = await rt.database_metrics.read(2)
    assert [(row.group, row.count) for row in state.jobs] == [(("work", "noop"), 2)]
