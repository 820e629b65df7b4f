"""Methods of the client on queues, the order of jobs, templates and schedules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from draftsman import BlockingClient, Client, Draftsman
from draftsman.database.database import Connection
from draftsman.errors import Conflict, NotFound, NotPermitted, Refused, UsageError
from draftsman.processes.host import login
from draftsman.queues.service.queues import Place
from draftsman.runtime import Runtime
from draftsman.schedules.schedule import Schedule
from draftsman_testing.factories import Factory
from tests.support.limits import set_limits


@pytest.fixture
def operator(tmp_path: Path, database_url: str) -> Draftsman:
    return _draftsman(tmp_path, database_url, '"invoker", "operator"')


@pytest.fixture
async def client(operator: Draftsman) -> AsyncIterator[Client]:
    async with operator as client:
        yield client


@pytest.fixture
def blocking(operator: Draftsman) -> Iterator[BlockingClient]:
    with operator as client:
        yield client


def _draftsman(folder: Path, url: str, roles: str) -> Draftsman:
    config = folder / "draftsman.toml"
    config.write_text(f'[people.me]\nlogin = "{login()}"\nroles = [{roles}]\n[types.noop]\n')
    return Draftsman(url, config=config)


async def test_a_queue_is_paused_and_resumed(client: Client, make: Factory) -> None:
    await make.queued(queue="q")
    await client.pause_queue("q", "disk is full")
    await client.pause_queue("q", "model is down", type="noop")
    (summary,) = await client.queues()
    assert [pause.reason for pause in summary.pauses] == ["disk is full", "model is down"]
    with pytest.raises(Refused, match="already paused"):
        await client.pause_queue("q", "again")
    await client.resume_queue("q", type="noop")
    await client.resume_queue("q")
    (summary,) = await client.queues()
    assert (summary.queued, summary.pauses) == (1, ())


async def test_limits_have_their_use(
    client: Client, rt: Runtime, make: Factory, conn: Connection
) -> None:
    assert await client.limits() == []
    await set_limits(rt, conn, queue={"q": {"running": 1}, "other": {"rate": "20/1h"}})
    first, _ = [await make.queued(queue="q") for _ in range(2)]
    other, used = await client.limits()
    assert (other.name, other.rate, other.free, other.jobs) == ("queue:other", 20, 20, [])
    assert (used.name, used.running, used.taken, used.free) == ("queue:q", 1, 1, 0)
    assert (used.waiting, used.jobs) == (1, [first])


async def test_a_drain_waits_for_running_jobs(client: Client, make: Factory) -> None:
    await make.running(queue="q")
    with pytest.raises(TimeoutError):
        await client.drain_queue("q", timeout=0.2)
    with pytest.raises(NotFound, match="unknown queue 'other'"):
        await client.drain_queue("other")
    with pytest.raises(NotFound, match="unknown queue 'oter'"):
        await client.pause_queue("oter", "r")
    await client.drain_queue("other", "maintenance", timeout=20, unchecked=True)
    pauses = {queue.name: queue.pause for queue in await client.queues()}
    assert {name: pause and pause.reason for name, pause in pauses.items()} == {
        "q": "draining",
        "other": "maintenance",
    }


async def test_jobs_are_moved_and_prioritized(client: Client, rt: Runtime) -> None:
    first, second, third = [await client.submit(type="noop", queue="q") for _ in range(3)]
    await client.move(third, "top")
    await client.move(first, "after", second)
    assert [job.number for job in await rt.queues.order()] == [3, 2, 1]
    await client.prioritize("D-1", 5)
    assert [job.number for job in await rt.queues.order()] == [1, 3, 2]
    with pytest.raises(NotFound):
        await client.move(99, "top")


@pytest.mark.parametrize(("place", "anchor"), [("top", 1), ("before", None)])
async def test_a_place_has_its_anchor(client: Client, place: Place, anchor: int | None) -> None:
    job = await client.submit(type="noop")
    with pytest.raises(UsageError, match="anchor"):
        await client.move(job, place, anchor)


async def test_a_job_reserves_its_queue(client: Client, rt: Runtime) -> None:
    job = await client.submit(type="noop", queue="q", reserve=900)
    (reservation,) = await rt.reservations.all()
    assert (reservation.job, reservation.seconds) == (job.number, 900)
    with pytest.raises(Refused, match=job.name):
        await client.submit(type="noop", queue="q", reserve=900)
    await client.release_queue("q")
    assert await rt.reservations.all() == []


async def test_a_reservation_is_not_made_in_the_transaction_of_the_caller(
    client: Client, rt: Runtime
) -> None:
    async with rt.db.transaction() as connection:
        with pytest.raises(UsageError, match="reserve cannot be combined"):
            await client.submit(type="noop", reserve=900, connection=connection)


async def test_the_queues_need_an_operator(tmp_path: Path, database_url: str, rt: Runtime) -> None:
    async with _draftsman(tmp_path, database_url, '"invoker"') as client:
        for call in (
            client.pause_queue("q", "r"),
            client.resume_queue("q"),
            client.drain_queue("q"),
            client.release_queue("q"),
            client.submit(type="noop", reserve=600),
        ):
            with pytest.raises(NotPermitted):
                await call
    assert await rt.read_model.jobs() == []


def test_the_blocking_client_has_the_same_methods(blocking: BlockingClient) -> None:
    first, second = [blocking.submit(type="noop", queue="q") for _ in range(2)]
    blocking.move(second, "before", first)
    blocking.prioritize(first, -1)
    assert [job.number for job in blocking.order(queue="q")] == [second.number, first.number]
    assert blocking.order(queue="other") == []
    blocking.drain_queue("q", timeout=20)
    blocking.resume_queue("q")
    blocking.pause_queue("q", "r", type="noop")
    blocking.resume_queue("q", type="noop")
    blocking.submit(type="noop", queue="q", reserve=600)
    (summary,) = blocking.queues()
    assert summary.reservation is not None
    blocking.release_queue("q")
    assert (blocking.templates(), blocking.schedules(), blocking.limits()) == ([], [], [])


async def test_templates_and_schedules_are_listed_run_and_paused(client: Client) -> None:
    await client.add_template("report", type="noop", text="Report")
    with pytest.raises(Conflict):
        await client.add_template("report", type="noop", text="Report it")
    edited = await client.add_template("report", type="noop", text="Report it", replace=True)
    await client.add_schedule("nightly", "@daily", template="report")
    with pytest.raises(Conflict):
        await client.add_schedule("nightly", "0 2 * * *", template="report")
    changed = await client.add_schedule(
        "nightly", "0 2 * * *", zone="Asia/Tokyo", template="report", overlap="queue", replace=True
    )
    times = await client.occurrences("nightly", 2)
    assert [(time.hour, time.minute) for time in times] == [(17, 0), (17, 0)]
    assert (edited.version, changed.overlap, changed.created_by) == (2, "queue", "me")
    assert [template.name for template in await client.templates()] == ["report"]
    assert [schedule.name for schedule in await client.schedules()] == ["nightly"]
    job = await client.run_schedule("nightly")
    assert (await client.get(job)).template == "report"
    assert (await client.why(job)).reason == "no_worker"
    assert [waiting.number for waiting in await client.order()] == [job.number]
    assert [fire.job for fire in await client.schedule_history("nightly")] == [job.number]
    paused: Schedule = await client.pause_schedule("nightly", "freeze")
    assert paused.pause_reason == "freeze"
    assert (await client.resume_schedule("nightly")).paused_at is None
    with pytest.raises(NotFound):
        await client.run_schedule("weekly")
    await client.remove_schedule("nightly")
    await client.remove_template("report")
    assert (await client.schedules(), await client.templates()) == ([], [])


def test_the_blocking_client_runs_and_pauses_schedules(blocking: BlockingClient) -> None:
    with pytest.raises(NotFound):
        blocking.run_schedule("weekly")
    with pytest.raises(NotFound):
        blocking.pause_schedule("weekly")
    with pytest.raises(NotFound):
        blocking.resume_schedule("weekly")
    request = {"type": "noop", "text": "Report"}
    blocking.add_schedule("nightly", "@every 90m", request=request, misfire="skip", jitter=60)
    job = blocking.run_schedule("nightly")
    assert (len(blocking.occurrences("nightly", 3)), len(blocking.schedule_history())) == (3, 1)
    assert (blocking.why(job).reason, [item.number for item in blocking.order()]) == (
        "no_worker", [job.number],
    )  # fmt: skip
    blocking.remove_schedule("nightly")
    assert blocking.schedules() == []
    with pytest.raises(UsageError, match="week"):
        blocking.add_template("report", type="noop", week=31)
    with pytest.raises(NotFound):
        blocking.remove_template("report")
