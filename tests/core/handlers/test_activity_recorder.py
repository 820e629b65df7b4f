"""The activity of a run: stored in few commits, bounded, fenced, and complete in its transcript."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from draftsman.agent_runs.activity.activity import Activity, ActivityKind, ActivityState
from draftsman.agent_runs.activity.service import ActivityStream
from draftsman.database.database import Connection
from draftsman.handlers import activity_recorder
from draftsman.handlers.activity_recorder import TRUNCATED, ActivityRecorder
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm, Lease
from draftsman.runtime import Runtime
from draftsman.settings.quotas import QuotaSettings
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until, wait_blocked
from tests.core.worker.workers import before_deadline
from tests.support.statements import rows, value

K = ActivityKind
CHUNKS = 20_000
"""Chunks of an agent that sends a thousand a second for twenty seconds."""


def recorder(rt: Runtime, work: ClaimedJob, **quotas: int) -> ActivityRecorder:
    return ActivityRecorder(rt.activity, work.lease, QuotaSettings(**quotas))


def call(n: int, text: str = "make") -> Activity:
    return Activity(K.TOOL, text, ActivityState.RUNNING, key=str(n))


async def transcript_of(rt: Runtime, number: int) -> list[dict[str, Any]]:
    artifact, data = await rt.checkpoints.read_artifact(number, "transcript.jsonl")
    assert (artifact.kind, artifact.size) == ("transcript", len(data))
    assert artifact.sha256 == hashlib.sha256(data).hexdigest()
    return [json.loads(line) for line in data.splitlines()]


async def test_a_thousand_chunks_a_second_are_a_bounded_number_of_commits_and_rows(
    rt: Runtime, make: Factory, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty seconds of chunks as ten batches, without the time between them."""
    monkeypatch.setattr(activity_recorder, "DELAY", 60)
    commits = 0
    append = rt.activity.append

    async def counted(*arguments: Any) -> Any:
        nonlocal commits
        commits += 1
        return await append(*arguments)

    monkeypatch.setattr(rt.activity, "append", counted)
    work = await make.running()
    limits = {"activity_rows": 50, "activity_bytes": 100_000, "transcript_bytes": 200_000}
    activity = recorder(rt, work, **limits)
    for n in range(CHUNKS):
        activity.add(Activity(K.MESSAGE, f"chunk {n}\n", continues=n > 0))
        activity.add(call(n))
        if n % (CHUNKS // 10) == 0:
            await activity._flush()
    await activity.close()
    assert commits == 11
    query = "SELECT count(*), sum(octet_length(text)) FROM draftsman.run_activity"
    [(count, size)] = await rows(conn, query)
    assert (count, int(size) <= 100_000) == (50, True)
    query = "SELECT sum(octet_length(data)) FROM draftsman.artifact_chunks"
    assert await value(conn, query) <= 200_000 + len(TRUNCATED)
    newest = await rt.activity.newest(work.number)
    assert newest[-1].kind == "note"


async def test_activity_is_stored_soon_and_the_newest_rows_stay_over_runs(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_recorder, "DELAY", 0.01)
    work = await make.running(on_lost="resume")
    activity = recorder(rt, work, activity_rows=10)

    async def stored(n: int) -> bool:
        found = await rt.activity.page(work.number)
        return bool(found) and found[-1].key == str(n)

    for n in range(12):
        activity.add(call(n))
    await until(lambda: stored(11), "the last call")
    await activity.close()
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    second = await make.running(work.number)
    later = recorder(rt, second, activity_rows=10)
    later.add(Activity(K.MESSAGE, "again"))
    await later.close()
    page = await rt.activity.page(work.number)
    assert [(row.run, row.seq) for row in page] == [*((1, seq) for seq in range(4, 13)), (2, 1)]
    assert page[-1].text == "again"
    assert await rt.activity.page(work.number, (1, 12)) == page[-1:]
    assert await rt.activity.newest(work.number, limit=2) == page[-2:]
    assert [line["key"] for line in await transcript_of_run(rt, work, 1)] == [
        str(n) for n in range(12)
    ]
    assert [line["text"] for line in await transcript_of(rt, work.number)] == ["again"]


async def transcript_of_run(rt: Runtime, work: ClaimedJob, run: int) -> list[dict[str, Any]]:
    found = [
        artifact
        for artifact in await rt.checkpoints.artifacts(work.number)
        if (artifact.kind, artifact.run) == ("transcript", run)
    ]
    data = await rt.checkpoints.content(found[0])
    return [json.loads(line) for line in data.splitlines()]


async def test_a_batch_that_waits_for_the_database_is_stored_once_and_delays_nothing(
    rt: Runtime, make: Factory, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_recorder, "DELAY", 0.01)
    work = await make.running()
    activity = recorder(rt, work)
    async with rt.db.connection() as other, other.transaction():
        await other.execute(
            "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE", (work.number,)
        )
        activity.add(call(1))
        await wait_blocked(conn, by=other.info.backend_pid)
        activity.add(call(2))
    await before_deadline(activity.close())
    page = await rt.activity.page(work.number)
    assert [(row.seq, row.key) for row in page] == [(1, "1"), (2, "2")]
    assert [line["seq"] for line in await transcript_of(rt, work.number)] == [1, 2]


async def test_chats_show_progress_rarely_and_less_often_in_a_long_run(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    shown = list[float]()

    async def show(lease: Lease, plan: str, line: str) -> int:
        shown.append(now)
        assert (plan, line[:1]) == ("0 of 1 step: write", "▸")
        return 1

    monkeypatch.setattr(activity_recorder, "time", SimpleNamespace(monotonic=lambda: now))
    stream = ActivityStream(rt.db)
    monkeypatch.setattr(stream, "show", show)
    chat = activity_recorder._ChatProgress(stream, Lease(1, 1, 1))
    entries = [{"text": "write", "state": "running"}]
    chat.add([Activity(K.PLAN, "", key="plan", detail={"entries": entries})])
    for n in range(2 * 3600):  # an hour
        chat.add([call(n, f"make {n}")])
        await chat.show()
        now += 0.5
    assert (shown[0], shown[1]) == (5, 10)
    assert len(shown) < 100
    assert max(after - before for before, after in pairwise(shown)) < 200
    count = len(shown)
    now += 10_000
    await chat.show()
    await chat.show()
    assert len(shown) == count + 1  # no edit without a change


async def test_a_run_without_its_lease_stores_nothing_and_ends_quietly(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running(on_lost="resume")
    activity = recorder(rt, work)
    activity.add(call(1))
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    await before_deadline(activity.close())
    assert await rt.activity.page(work.number) == []
    assert await value(conn, "SELECT count(*) FROM draftsman.artifacts") == 0


async def test_transcripts_grow_by_parts_up_to_the_quota_of_the_job(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_recorder, "TRANSCRIPT_PART", 500)
    work = await make.running()
    activity = recorder(rt, work, transcript_bytes=2048)
    for n in range(20):
        activity.add(call(n, "x" * 50))
        await activity._flush()
    await activity.close()
    lines = await transcript_of(rt, work.number)
    assert lines[-1] == json.loads(TRUNCATED)
    assert [line["key"] for line in lines[:-1]] == [str(n) for n in range(len(lines) - 1)]
    other = await make.running()
    limited = recorder(rt, other, transcript_bytes=1500, job_transcript_bytes=1024)
    for n in range(20):
        limited.add(call(n, "x" * 50))
        await limited._flush()
    await limited.close()
    assert 0 < len(await transcript_of(rt, other.number)) < 10
    assert len(await rt.activity.page(other.number)) == 20
