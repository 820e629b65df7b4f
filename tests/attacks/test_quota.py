"""Attacks of an agent on shared resources: database, memory and disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.session import quota_tracker
from draftsman.database.database import Connection
from draftsman.jobs.job import Job, Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import (
    agent_worker,
    make_repository,
    running_with,
    submit_agent_job,
)
from tests.core.worker.workers import wait_for_end, wait_for_question
from tests.support.slow import slow_except
from tests.support.statements import rows

S = Status
RESULT = '\nsay("result", summary="")'
COUNTS = {
    "events": "SELECT count(*) FROM draftsman.job_events WHERE kind LIKE 'agent.%%' AND job = %s",
    "steps": "SELECT count(*) FROM draftsman.job_steps WHERE owner = 'handler' AND job = %s",
    "artifacts": "SELECT count(*) FROM draftsman.artifacts WHERE kind = 'file' AND job = %s",
    "checkpoints": "SELECT count(*) FROM draftsman.job_checkpoints WHERE job = %s",
}
FLOODS = {
    "events": 'say("event", kind="spam", payload={"n": n})',
    "steps": 'say("step", key=f"k{n}", state="pending")',
    "artifacts": 'say("artifact", path="a.txt", name=f"copy{n}")',
    "checkpoints": 'say("checkpoint", data=n)',
}
MANY = 100_000
"""Messages of a flood."""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", a="x" * 5000)


async def run_flood(
    rt: Runtime, make: Factory, repo: Path, code: str, quotas: dict[str, Any]
) -> Job:
    """Return the job after its end."""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code, quotas=quotas):
        return await wait_for_end(rt, number)


async def run_floods(
    rt: Runtime,
    make: Factory,
    repo: Path,
    codes: dict[str, str],
    count: int,
    quotas: dict[str, Any],
) -> dict[str, Job]:
    """Return the job of each code, which an agent of a single worker repeats, after its end."""
    code = f"code = compile({codes!r}[start['request']['text']], 'flood', 'exec')\n"
    code += f"for n in range({count}):\n    exec(code){RESULT}"
    numbers = {kind: await submit_agent_job(make, repo, text=kind) for kind in codes}
    async with agent_worker(rt, repo.parent / "data", code, quotas=quotas):
        return {kind: await wait_for_end(rt, number) for kind, number in numbers.items()}


def assert_quota_failure(job: Job, setting: str) -> None:
    """Check that the job failed permanently because of this setting."""
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT"), job.last_error
    assert "quota: " in (job.last_error or "")
    assert f"[quotas] {setting}" in (job.last_error or "")


@attack(
    "An agent floods the database with events, steps, artifacts or checkpoints",
    surface="quota",
    with_sandbox="the run fails at the quota of the job; no more rows are stored",
)
@pytest.mark.parametrize("kind", slow_except(["events"], FLOODS))
async def test_a_flood_of_messages_ends_at_its_quota(
    rt: Runtime, make: Factory, repo: Path, conn: Connection, kind: str
) -> None:
    code = f"for n in range({MANY}):\n    {FLOODS[kind]}{RESULT}"
    job = await run_flood(rt, make, repo, code, {kind: 3})
    assert_quota_failure(job, kind)
    [(count,)] = await rows(conn, COUNTS[kind], (job.number,))
    assert count == 3


@attack(
    "An agent fills the database with large messages",
    surface="quota",
    with_sandbox="the run fails at the quota of bytes of steps, artifacts or checkpoints",
)
async def test_bytes_of_messages_are_limited(
    rt: Runtime, make: Factory, repo: Path, conn: Connection
) -> None:
    kinds = {
        "step": 'say("step", key=f"k{n}", state="done", result="x" * 3000)',
        "artifact": 'say("artifact", path="a.txt", name=f"copy{n}")',
        "checkpoint": 'say("checkpoint", data="x" * 3000)',
    }
    quotas = {f"{kind}_bytes": 10_000 for kind in kinds}
    for kind, job in (await run_floods(rt, make, repo, kinds, MANY, quotas)).items():
        assert_quota_failure(job, f"{kind}s and {kind}_bytes")
        [(used,)] = await rows(
            conn,
            "SELECT bytes FROM draftsman.job_quotas WHERE job = %s AND quota = %s",
            (job.number, f"{kind}s"),
        )
        assert 5000 <= used <= 10_000, kind


@attack(
    "An agent sends an unlimited number of messages that are not stored",
    surface="quota",
    with_sandbox="the run fails at the quota of messages; the usage has a limited number of models",
)
async def test_messages_of_a_run_are_limited(
    rt: Runtime, make: Factory, repo: Path, conn: Connection
) -> None:
    codes = {
        "usage": 'say("usage", input_tokens=1, model=f"m{n}" * 40)',
        "invalid": 'print("{", flush=True)',
    }
    for job in (await run_floods(rt, make, repo, codes, MANY, {"messages": 50})).values():
        assert_quota_failure(job, "messages")
        query = "SELECT usage FROM draftsman.job_runs WHERE job = %s"
        [(usage,)] = await rows(conn, query, (job.number,))
        assert len((usage or {}).get("models", ())) <= 20


@attack(
    "An agent writes unlimited logs, by messages and on standard error",
    surface="quota",
    with_sandbox="the log is truncated at the quota, with a note at its end, and the run continues",
)
async def test_a_log_is_truncated_at_its_quota(rt: Runtime, make: Factory, repo: Path) -> None:
    codes = {
        "message": 'say("log", text="x" * 1000)',
        "standard error": 'sys.stderr.write("é" * 500 + "\\n")',
    }
    for job in (await run_floods(rt, make, repo, codes, 3000, {"log_bytes": 100_000})).values():
        assert job.status is S.COMPLETED, job.last_error
        log = "".join(chunk.text for chunk in await rt.checkpoints.logs(job.number, limit=1000))
        assert 99_000 <= len(log.encode()) <= 100_200
        assert log.count("log truncated") == 1
        assert log.endswith(
            "log truncated: limit of 100,000 bytes per run reached ([quotas] log_bytes)]\n"
        )


@attack(
    "An agent distributes its log over the runs of a job",
    surface="quota",
    with_sandbox="the logs of all runs are truncated at the quota of the job",
)
async def test_the_logs_of_a_job_are_truncated_at_its_quota(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    code = f"""
sys.stderr.write("x" * 6000 + "\\n"); sys.stderr.flush()
parked(ask(f"q{{min(start['run'], 3)}}")){RESULT}"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code, quotas={"job_log_bytes": 10_000}):
        for ordinal in (1, 2, 3):
            await wait_for_question(rt, number, ordinal)
            await make.answer(number, "red", n=ordinal)
        await wait_for_end(rt, number)
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number, limit=1000))
    assert len(log) <= 10_200
    assert "limit of 10,000 bytes per job reached ([quotas] job_log_bytes)" in log


@attack(
    "An agent asks an unlimited number of questions",
    surface="quota",
    with_sandbox="the run fails at the quota of questions",
)
async def test_questions_of_a_job_are_limited(rt: Runtime, make: Factory, repo: Path) -> None:
    code = "parked(ask(f\"q{start['run']}\"))" + RESULT
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", code, quotas={"questions": 1}):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
    assert_quota_failure(job, "questions")
    assert len((await rt.questions.of_job(number))[0]) == 1


@attack(
    "An agent fills the disk of its worker",
    surface="quota",
    with_sandbox="the agent is killed and the run fails at the disk quota",
)
@pytest.mark.parametrize("where", ["os.getcwd()", "os.environ['HOME']"])
async def test_an_agent_that_fills_the_disk_is_killed(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, where: str
) -> None:
    mark = f"mark = {str(tmp_path)!r}"
    code = f"""
{mark}
for n in range(30):
    os.makedirs(f"{{{where}}}/d/{{n}}")
    open(f"{{{where}}}/d/{{n}}/big", "wb").write(os.urandom(2**20))
os.read(0, 1)
"""
    job = await run_flood(rt, make, repo, code, {"disk_bytes": 20 * 2**20, "disk_interval": 0.05})
    assert_quota_failure(job, "disk_bytes")
    assert running_with(mark) == []
    assert list((tmp_path / "data" / "runs").iterdir()) == []


def test_disk_usage_is_measured(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").write_bytes(b"x" * 10_000)
    (inner / "same").hardlink_to(inner / "file")
    (tmp_path / "out").symlink_to("/usr")
    size = quota_tracker.disk_usage(tmp_path, 2**40)
    assert 10_000 <= size <= 50_000
    assert quota_tracker.disk_usage(tmp_path, 5000) > 5000


def test_a_tree_too_deep_to_be_measured_is_over_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    descriptor = os.open(".", os.O_RDONLY)
    name = "d" * 200
    for _ in range(30):
        os.mkdir(name, dir_fd=descriptor)
        child = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = child
    os.close(descriptor)
    assert quota_tracker.disk_usage(tmp_path, 2**40) > 2**40
