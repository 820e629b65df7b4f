"""A dead letter is reported where its job was requested, else to the fallback."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from draftsman.channels import ChannelName
from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.target import Targets
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime, wire
from draftsman.settings import Settings
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import deliveries_of
from tests.support.statements import value

NOTED = "SELECT count(*) FROM draftsman.unnotified_jobs"


async def results(rt: Runtime, job: int) -> list[ChannelName]:
    """Return the targets of a job's result."""
    return [
        delivery.channel
        for delivery in await deliveries_of(rt, job)
        if delivery.kind is DeliveryKind.RESULT
    ]


async def test_a_request_without_targets_is_reported_to_the_fallback_once(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    number = await make.dead()
    due = await rt.sweeps.next_due()
    assert due is not None
    assert due <= 0, "the leader does it at once"
    assert await rt.dead_letters.notify(LeaderTerm(make.worker, 1)) == 0, "it no longer leads"
    assert await rt.dead_letters.notify(LeaderTerm()) == 1
    assert await results(rt, number) == ["log"]
    assert await rt.dead_letters.notify(LeaderTerm()) == 0
    assert await value(conn, NOTED) == 0
    (item,) = await rt.delivery_sender.claim("log", free=9, share=9)
    assert item.job == number


async def test_a_job_of_a_lost_worker_is_reported_too(make: Factory, rt: Runtime) -> None:
    work = await make.running(max_attempts=1)
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 1
    assert (await rt.read_model.job(work.number)).status is Status.DEAD_LETTER
    assert await rt.dead_letters.notify(LeaderTerm()) == 1
    assert await results(rt, work.number) == ["log"]


@pytest.mark.parametrize("notify", [("none",), ("slack:C1/1700000000.1",), ("trello:" + "5" * 24,)])
async def test_a_request_with_targets_or_without_notifications_is_not_reported_to_the_fallback(
    make: Factory, rt: Runtime, conn: Connection, notify: tuple[str, ...]
) -> None:
    number = await make.dead(notify=notify)
    assert await value(conn, NOTED) == 0
    channels = [target.partition(":")[0] for target in notify if target != "none"]
    assert await results(rt, number) == channels


async def test_a_target_for_other_outcomes_does_not_count(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = Targets((), {"ops": ("completed",)})
    monkeypatch.setattr(rt.submissions, "_targets", hooks)
    number = await make.dead()
    assert await rt.dead_letters.notify(LeaderTerm()) == 1
    assert await results(rt, number) == ["log"]


@pytest.mark.parametrize("end", ["failed", "canceled", "completed"])
async def test_only_dead_letters_are_reported(
    make: Factory, rt: Runtime, conn: Connection, end: str
) -> None:
    await getattr(make, end)()
    assert await value(conn, NOTED) == 0


async def test_a_retry_of_a_request_without_notifications_has_none(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    number = await make.dead(notify=("none",))
    retry = await rt.job_control.retry(number, make.owner)
    await make.running(retry.number)
    assert (await rt.read_model.job(retry.number)).overrides == {"notify": "none"}


async def test_a_dead_letter_without_a_fallback_is_logged(
    make: Factory, rt: Runtime, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    changed: dict[str, Any] = {"fallback": "none"}
    notifications = settings.notifications.model_copy(update=changed)
    without = wire(settings.model_copy(update={"notifications": notifications}), rt.db, False)
    number = await make.dead()
    assert await without.dead_letters.notify(LeaderTerm()) == 1
    assert await results(rt, number) == []
    assert f"D-{number} of root is a dead letter and has no notification target" in caplog.text
