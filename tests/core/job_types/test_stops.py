"""What cancel, timeout and shutdown stop in each isolation: the table of docs/own-jobs.md."""

from __future__ import annotations

from draftsman.job_types import declaration
from draftsman.job_types.app import handlers_of
from draftsman.job_types.process_runs import ProcessRuns
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.job_types import stopped_jobs
from tests.core.worker.workers import running_worker, runtime_with, wait_for_status

TYPES = {
    type.name: type for type in (stopped_jobs.coroutine, stopped_jobs.thread, stopped_jobs.process)
}
for _name in TYPES:  # a worker of another test in this process would find them
    declaration.declared_types.pop(_name, None)


async def test_each_stop_ends_a_run_in_each_isolation(rt: Runtime, make: Factory) -> None:
    """All at once: nine cells, of which the shutdown ends the last three."""

    async def began(number: int) -> None:
        async def look() -> bool:
            events = await rt.read_model.job_events(number)
            return any(event.kind == "began" for event in events)

        await until(look, "the beginning of the run")

    async def queued(**fields: object) -> dict[str, int]:
        return {
            type: await make.queued(type=type, queue="default", overrides=fields) for type in TYPES
        }

    stopped_jobs.INTERRUPTED.clear()
    async with ProcessRuns([stopped_jobs.__name__]) as processes:
        handlers = handlers_of(TYPES, {}, processes)
        async with running_worker(runtime_with(rt), handlers, slots=9):
            canceled, released = await queued(), await queued()
            timed_out = await queued(timeout=1)
            for number in (*canceled.values(), *released.values()):
                await began(number)
            for number in canceled.values():
                await rt.job_control.cancel(number, make.owner)
                await wait_for_status(rt, number, Status.CANCELED)
            for number in timed_out.values():
                job = await wait_for_status(rt, number, Status.FAILED)
                assert (job.last_error or "").startswith("ran for 1 s (job limit")
    stops = (canceled, timed_out, released)
    assert {*stopped_jobs.INTERRUPTED} == {numbers["stop:thread"] for numbers in stops}
    for type, number in released.items():
        job = await rt.read_model.job(number)
        assert (job.status, job.attempts, job.last_error) == (Status.RESUMED, 0, None), type
