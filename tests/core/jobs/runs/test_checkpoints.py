"""Data saved by runs: checkpoints, steps, artifacts, logs."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.errors import NotFound
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.statements import rows, value


async def test_the_newest_checkpoint_counts_and_the_latest_five_stay(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work = await make.running()
    assert await rt.checkpoints.latest(work.number) == (None, None)
    for n in range(8):
        await rt.checkpoints.save(work.lease, {"n": n})
    assert await rt.checkpoints.latest(work.number) == ({"n": 7}, None)
    checkpoints = await rows(conn, "SELECT data -> 'n' FROM draftsman.job_checkpoints ORDER BY id")
    assert checkpoints == [(n,) for n in range(3, 8)]


async def test_checkpoints_of_other_jobs_are_not_dropped(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    first = await make.running()
    second = await make.running()
    await rt.checkpoints.save(first.lease, {"n": 0})
    for n in range(8):
        await rt.checkpoints.save(second.lease, {"n": n})
    assert await rt.checkpoints.latest(first.number) == ({"n": 0}, None)


@pytest.mark.parametrize("size", [0, 1, 1024 * 1024, 1024 * 1024 + 1, 3_000_000])
async def test_a_work_bundle_is_returned_unchanged(make: Factory, rt: Runtime, size: int) -> None:
    bundle = bytes(range(256)) * (size // 256) + bytes(size % 256)
    work = await make.running()
    await rt.checkpoints.save(work.lease, {}, bundle)
    assert await rt.checkpoints.latest(work.number) == ({}, bundle)
    await rt.checkpoints.save(work.lease, {"n": 2}, b"short")
    assert await rt.checkpoints.latest(work.number) == ({"n": 2}, b"short")
    assert await rt.checkpoints.artifacts(work.number) == [], "bundles are not listed"


async def test_a_later_run_gets_the_checkpoint_of_an_earlier_run(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.save(work.lease, {"n": 1}, b"bundle")
    await rt.settlement.release_run(work, "shutdown")
    next_run = await make.running(work.number)
    assert await rt.checkpoints.latest(next_run.number) == ({"n": 1}, b"bundle")


async def test_a_step_is_recorded_before_and_after_its_effect(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    known, new = await rt.checkpoints.begin_step(work.lease, "push")
    assert (known.status, new) == ("pending", True)
    await rt.settlement.release_run(work, "shutdown")
    next_run = await make.running(work.number)
    pending, new = await rt.checkpoints.begin_step(next_run.lease, "push")
    assert (pending.status, pending.invocation_id, new) == ("pending", known.invocation_id, False)
    await rt.checkpoints.finish_step(next_run.lease, "push", {"sha": "abc"})
    done, new = await rt.checkpoints.begin_step(next_run.lease, "push")
    assert (done.status, done.result, new) == ("done", {"sha": "abc"}, False)


async def test_the_first_result_of_a_step_stays(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.checkpoints.begin_step(work.lease, "push")
    for result in (None, "second"):
        await rt.checkpoints.finish_step(work.lease, "push", result)
    (step,) = await rt.checkpoints.steps(work.number)
    assert (step.status, step.result) == ("done", None)


@pytest.mark.parametrize("size", [0, 10, 1024 * 1024, 2_500_000])
async def test_an_artifact_is_returned_unchanged(make: Factory, rt: Runtime, size: int) -> None:
    work = await make.running()
    await rt.checkpoints.artifact(work.lease, "a.bin", "file", b"\xff" * size)
    artifact, data = await rt.checkpoints.read_artifact(work.number, "a.bin")
    assert (artifact.size, artifact.run, artifact.kind, len(artifact.sha256)) == (
        size,
        1,
        "file",
        64,
    )
    assert data == b"\xff" * size


async def test_the_beginning_of_an_artifact_is_read_without_the_rest(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.artifact(work.lease, "a", "file", b"x" * 3_000_000)
    artifact, data = await rt.checkpoints.read_artifact(work.number, "a", most=1)
    assert (artifact.size, len(data)) == (3_000_000, 1024 * 1024)


async def test_the_same_name_again_replaces_the_artifact(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work = await make.running()
    await rt.checkpoints.artifact(work.lease, "a", "file", b"x" * 3_000_000)
    await rt.checkpoints.artifact(work.lease, "a", "report", b"y")
    (artifact,) = await rt.checkpoints.artifacts(work.number)
    assert (artifact.kind, artifact.size) == ("report", 1)
    assert (await rt.checkpoints.read_artifact(work.number, "a"))[1] == b"y"
    assert await value(conn, "SELECT count(*) FROM draftsman.artifact_chunks") == 1


async def test_an_artifact_of_a_later_run_comes_first(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.checkpoints.artifact(work.lease, "a", "file", b"first")
    await rt.settlement.release_run(work, "shutdown")
    next_run = await make.running(work.number)
    await rt.checkpoints.artifact(next_run.lease, "a", "file", b"second")
    assert (await rt.checkpoints.read_artifact(work.number, "a"))[1] == b"second"
    assert [artifact.run for artifact in await rt.checkpoints.artifacts(work.number)] == [1, 2]


async def test_a_missing_artifact_is_refused_with_the_existing_names(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    with pytest.raises(NotFound, match="artifacts: none"):
        await rt.checkpoints.read_artifact(work.number, "a")
    await rt.checkpoints.artifact(work.lease, "b", "file", b"")
    with pytest.raises(NotFound, match="artifacts: b"):
        await rt.checkpoints.read_artifact(work.number, "a")


async def test_logs_come_in_the_order_of_runs_and_chunks(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    for seq in (2, 1, 10):
        await rt.checkpoints.log(work.lease, seq, f"1.{seq}")
    await rt.settlement.release_run(work, "shutdown")
    next_run = await make.running(work.number)
    await rt.checkpoints.log(next_run.lease, 1, "2.1")
    chunks = await rt.checkpoints.logs(work.number)
    assert [chunk.text for chunk in chunks] == ["1.1", "1.2", "1.10", "2.1"]
    rest = await rt.checkpoints.logs(work.number, (1, 2), 1)
    assert [(chunk.run, chunk.seq) for chunk in rest] == [(1, 10)]
    end = await rt.checkpoints.log_end(work.number, limit=2)
    assert [chunk.text for chunk in end] == ["1.10", "2.1"]
    between = await rt.checkpoints.log_end(work.number, (1, 1), (2, 1))
    assert [chunk.text for chunk in between] == ["1.2", "1.10"]


async def test_a_chunk_sent_twice_is_stored_once(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    for text in ("first", "again"):
        await rt.checkpoints.log(work.lease, 1, text)
    assert [chunk.text for chunk in await rt.checkpoints.logs(work.number)] == ["first"]


async def test_the_usage_of_a_run_is_stored(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.model_calls.record(work.lease, {"input_tokens": 10, "cost_usd": 0.25})
    (run,) = await rt.read_model.runs(work.number)
    assert run.usage == {"input_tokens": 10, "cost_usd": 0.25}
