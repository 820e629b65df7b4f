"""`send_notification` jobs, which enqueue a message exactly once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.errors import LeaseLost, UsageError
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Job, Status
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime, wire
from draftsman.settings import settings_model
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.handlers.job_types.web_jobs import built_in, done
from tests.core.worker.workers import runtime_with, wait_for_status

S = Status
HOOK = {"url": "http://127.0.0.1:9/", "secret": {"env": "NO_SUCH_SECRET"}}


@pytest.fixture
def notifier(rt: Runtime, tmp_path: Path) -> Runtime:
    """Give services with a private log and a webhook."""
    changes = {"data_dir": tmp_path, "webhooks": {"ops": HOOK}}
    settings = settings_model().model_validate(runtime_with(rt).settings.model_dump() | changes)
    return wire(settings, rt.db, False)


def people(notifier: Runtime, make: Factory) -> Factory:
    """Return a factory for these services."""
    return Factory(notifier, make.owner)


async def sent(notifier: Runtime, make: Factory, payload: dict[str, Any], **fields: Any) -> Job:
    """Run a notification job."""
    return await done(notifier, people(notifier, make), "send_notification", payload, **fields)


async def notices(rt: Runtime, job: int) -> list[tuple[str, str]]:
    """Return the targets and texts of the notices of a job."""
    async with rt.db.connection() as conn:
        rows = await conn.execute(
            "SELECT channel || ':' || target, payload->>'text' FROM draftsman.deliveries"
            " WHERE job = %s AND original IS NULL AND kind = 'notice' ORDER BY seq",
            [job],
        )
        return await rows.fetchall()


async def test_notification_goes_to_its_named_targets_only(
    notifier: Runtime, make: Factory
) -> None:
    payload = {"text": "the mill is down", "targets": ["log", "webhook:ops"]}
    job = await sent(notifier, make, payload, notify=("slack:C1",))
    assert (job.status, job.last_error) == (S.COMPLETED, None)
    assert job.result is not None
    assert len(job.result["deliveries"]) == 2
    assert await notices(notifier, job.number) == [
        ("log:log", "the mill is down"),
        ("webhook:ops", "the mill is down"),
    ]


async def test_notification_goes_to_the_targets_of_its_job(
    notifier: Runtime, make: Factory
) -> None:
    job = await sent(notifier, make, {"text": "up"}, notify=("slack:C1", "log"))
    assert await notices(notifier, job.number) == [("slack:C1", "up"), ("log:log", "up")]


async def test_notification_is_written_to_the_log(
    notifier: Runtime, make: Factory, tmp_path: Path
) -> None:
    job = await sent(notifier, make, {"text": "a\u202e\x00b", "targets": ["log"]})
    [number] = (job.result or {})["deliveries"]
    file = tmp_path / "notifications.jsonl"

    async def written() -> bool:
        [row] = [item for item in await notifier.outbox.all(job.number) if item.seq == number]
        return row.status is DeliveryStatus.SENT

    async with built_in(notifier):
        await until(written, "the notice")
    [line] = [json.loads(item) for item in file.read_text(encoding="utf-8").splitlines()]
    assert (line["type"], line["data"]["job"]["number"]) == ("job.notice", job.number)
    assert line["data"]["text"].endswith("b")


@pytest.mark.parametrize("notify", [(), ("none",)])
async def test_a_message_without_targets_is_refused(
    notifier: Runtime, make: Factory, notify: tuple[str, ...]
) -> None:
    with pytest.raises(
        UsageError, match="the notification has no targets; add targets to its payload"
    ):
        await people(notifier, make).queued(
            type="send_notification", payload={"text": "up"}, notify=notify
        )


async def test_a_handler_without_targets_fails_with_a_hint(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    with pytest.raises(UsageError, match=rf"{work.name} has no targets; name targets, or submit"):
        await rt.outbox.notify(work.lease, "k", [], "up")


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (["mail"], "payload of send_notification: targets: 'mail' is not a target; use log,"),
        (["webhook:gone"], "unknown webhook 'gone'; configured: ops"),
        (["none"], "'none' is not a target"),
        ([7], "targets.0"),
        ("log", "targets 'log'"),
    ],
)
async def test_an_invalid_target_is_refused_at_submission(
    notifier: Runtime, make: Factory, targets: Any, expected: str
) -> None:
    with pytest.raises(UsageError) as refused:
        await people(notifier, make).queued(
            type="send_notification", payload={"text": "up", "targets": targets}
        )
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_a_webhook_that_the_worker_lacks_is_reported(
    rt: Runtime, notifier: Runtime, make: Factory
) -> None:
    payload = {"text": "up", "targets": ["webhook:ops"]}
    number = await people(notifier, make).queued(
        type="send_notification", queue="default", payload=payload
    )
    async with built_in(runtime_with(rt)):
        job = await wait_for_status(rt, number, S.FAILED)
    assert job.last_error == "unknown webhook 'ops'; configured: none: add [webhooks.NAME]"


async def test_a_key_notifies_once_and_only_with_the_lease(rt: Runtime, make: Factory) -> None:
    work = await make.running(notify=("log",))
    first = await rt.outbox.notify(work.lease, "k", ["slack:C1", "slack:C2"], "once")
    assert await rt.outbox.notify(work.lease, "k", ["slack:C1", "slack:C2"], "again") == first
    assert await rt.outbox.notify(work.lease, "other", [], "twice") != first
    await rt.settlement.outcome(work, Done({}))
    with pytest.raises(LeaseLost):
        await rt.outbox.notify(work.lease, "late", ["slack:C1"], "late")
    assert await notices(rt, work.number) == [
        ("slack:C1", "once"),
        ("slack:C2", "once"),
        ("log:log", "twice"),
    ]


async def test_a_run_lost_before_its_step_was_recorded_sends_no_second_message(
    notifier: Runtime, make: Factory
) -> None:
    payload = {"text": "up", "targets": ["log"]}
    work = await people(notifier, make).running(
        type="send_notification", queue="default", payload=payload
    )
    step, _ = await notifier.checkpoints.begin_step(work.lease, "notify")
    first = await notifier.outbox.notify(work.lease, step.invocation_id, ["log"], "up")
    assert await notifier.settlement.release_run(work, "shutdown") is S.RESUMED
    async with built_in(notifier):
        job = await wait_for_status(notifier, work.number, S.COMPLETED)
    assert job.result == {"deliveries": first}
    assert await notices(notifier, work.number) == [("log:log", "up")]


async def test_any_handler_can_send_a_notification(notifier: Runtime, make: Factory) -> None:
    async def handler(ctx: RunContext) -> Done:
        return Done({"told": await ctx.notify("half way", ["log"])})

    number = await people(notifier, make).queued(type="mine", queue="default")
    async with built_in(notifier, {"mine": handler}):
        await wait_for_status(notifier, number, S.COMPLETED)
    assert await notices(notifier, number) == [("log:log", "half way")]
