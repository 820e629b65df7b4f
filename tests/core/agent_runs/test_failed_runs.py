"""Runs of agents that fail or are stopped, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.session import agent_session
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.agent_runs.test_run_agent import WORK, done, guards
from tests.core.worker.agent_jobs import (
    agent_worker,
    git,
    make_repository,
    submit_agent_job,
    wait_for_exit,
)
from tests.core.worker.workers import RARELY, rescue_live, run_of, wait_for_end, wait_for_status
from tests.support.clock import skip

S = Status
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    time.sleep(60)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", a="one\n")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def log_of(rt: Runtime, number: int) -> str:
    return "".join(chunk.text for chunk in await rt.checkpoints.logs(number))


FAILURES: tuple[tuple[str, Status, str, str, int | None], ...] = (
    ("", S.FAILED, "INVALID_OUTPUT", "the agent exited with code 0 without a result", 0),
    ("sys.exit(3)", S.RETRYING, "TRANSIENT_INFRA", "the agent exited with code 3 without a", 3),
    (
        "sys.exit(127)",
        S.FAILED,
        "PERMANENT",
        "the agent exited with code 127 without a result: its program is not found in the sandbox",
        127,
    ),
    (
        "os.kill(os.getpid(), 9)",
        S.RETRYING,
        "TRANSIENT_INFRA",
        "the agent exited with code 137 without a result",
        137,
    ),
    (
        'say("error", **{"class": "PERMANENT"}, code="no_such_tool", message="no ruff here")',
        S.FAILED,
        "PERMANENT",
        "no ruff here",
        0,
    ),
    (
        'say("error", **{"class": "TRANSIENT_APP"}, message="busy", retry_after=900)',
        S.RETRYING,
        "TRANSIENT_APP",
        "busy",
        0,
    ),
)
"""Ends of agents: code, then status, class, error and exit code."""


async def test_an_agent_that_fails_fails_its_run(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    ends = [code for code, *_ in FAILURES]
    code = f"""
print("about to", file=sys.stderr, flush=True)
exec({ends!r}[int(start["request"]["title"])])
"""
    numbers = [await submit_agent_job(make, repo, title=str(n)) for n in range(len(FAILURES))]
    async with agent_worker(rt, data, code):
        for number, (end, status, error_class, expected, exit_code) in zip(
            numbers, FAILURES, strict=True
        ):
            job = await wait_for_status(rt, number, status)
            assert job.error_class == error_class, end
            assert (job.last_error or "").startswith(expected), end
            assert await log_of(rt, number) == "about to\n", end
            assert (await run_of(rt, number)).exit_code == exit_code, end
            if "retry_after" in end:
                assert job.next_retry_at is not None
                wait = (job.next_retry_at - job.updated_at).total_seconds()
                assert wait == pytest.approx(900, abs=1)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker wait for a moment only until it ends an agent."""
    monkeypatch.setattr(agent_session, "PARK_TIMEOUT", 0.05)
    monkeypatch.setattr(agent_session, "TERMINATE_TIMEOUT", 0.05)


async def test_an_agent_that_does_not_exit_after_its_result_is_killed(
    rt: Runtime, make: Factory, data: Path, repo: Path, impatient: None
) -> None:
    job = await done(rt, make, data, repo, f"{WORK}\n{STUBBORN}")
    assert (job.status, (job.result or {})["files_changed"]) == (S.COMPLETED, 2)


async def test_an_agent_that_closes_its_output_ends(
    rt: Runtime, make: Factory, data: Path, repo: Path, impatient: None
) -> None:
    """It cannot say anything more, so the run does not wait for its time limit."""
    job = await done(rt, make, data, repo, f"os.close(1)\n{STUBBORN}")
    assert (job.status, job.error_class) == (S.FAILED, "INVALID_OUTPUT")
    assert job.last_error == "the agent closed its output without a result, and did not exit"


IMPOSSIBLE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"repo": None}, "no repository for this job; submit it with a repository"),
    ({"repo": "/nonexistent/folder"}, "/nonexistent/folder is not a folder; use the top folder of"),
    (
        {"repo": "EMPTY"},
        "'EMPTY' does not appear to be a git repository; use the top folder of a repository",
    ),
    ({"ref": "no-such-branch"}, "no-such-branch"),
    ({"ref": "--upload-pack=x"}, "invalid branch, tag or commit '--upload-pack=x'"),
)
"""Fields of requests, and the errors of their jobs."""


async def test_an_impossible_request_fails_at_once_with_the_reason(
    rt: Runtime, make: Factory, data: Path, repo: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    numbers = []
    for fields, _ in IMPOSSIBLE:
        values = {"repo": repo} | fields
        source = values.pop("repo")
        source = empty if source == "EMPTY" else source
        numbers.append(await submit_agent_job(make, source, **values))
    async with agent_worker(rt, data, WORK):
        jobs = [await wait_for_end(rt, number) for number in numbers]
    for job, (fields, expected) in zip(jobs, IMPOSSIBLE, strict=True):
        assert (job.status, job.error_class, job.attempts) == (S.FAILED, "PERMANENT", 0), fields
        assert expected.replace("EMPTY", str(empty)) in (job.last_error or "")
        assert "\n" not in (job.last_error or ""), fields


# --- stops ------------------------------------------------------------------------

FAMILY = """
import subprocess, time
child = subprocess.Popen(["setsid", "sh", "-c", "sleep 600 & wait"], start_new_session=True)
open(start["request"]["text"], "w").write(f"{os.getpid()} {child.pid}\\n")
"""


async def made_by_agent(data: Path, name: str) -> None:
    async def is_written() -> bool:
        return any(path.read_text() for path in (data / "runs").glob(f"*/repo/{name}"))

    await until(is_written, name)


async def family(data: Path) -> list[int]:
    """Return the process ids of the running agent on the host."""
    await made_by_agent(data, "pids")
    guard = guards()[0]
    return [child.pid for child in guard.children(recursive=True)]


async def test_a_cancel_kills_the_agent_and_its_children(
    rt: Runtime, make: Factory, data: Path, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo, text="pids")
    async with agent_worker(rt, data, f"{FAMILY}\n{STUBBORN}"):
        pids = await family(data)
        await rt.job_control.cancel(number, make.owner)
        assert (await wait_for_end(rt, number)).status is S.CANCELED
        await wait_for_exit(*pids)
    assert list((data / "runs").iterdir()) == []
    assert git("branch", "--list", "draftsman/*", cwd=repo) == ""


async def test_an_agent_that_times_out_is_killed_and_its_job_fails(
    rt: Runtime, make: Factory, data: Path, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo, text="pids")
    limits = {"run_agent": {"timeout": RARELY / 2}}
    async with agent_worker(rt, data, f"{FAMILY}\ntime.sleep(600)", types=limits):
        pids = await family(data)
        skip(RARELY / 2)
        job = await wait_for_end(rt, number)
        await wait_for_exit(*pids)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")


async def test_a_shutdown_lets_the_agent_save_and_releases_the_job(
    rt: Runtime, make: Factory, data: Path, repo: Path, tmp_path: Path
) -> None:
    code = """
if start["run"] == 1:
    open("half.txt", "w").write("half\\n")
    open("ready", "w").write("ready\\n")
    os.rename("ready", "half.ready")
    assert hear() == {"type": "park", "id": None}
    say("checkpoint", id="c", data="half way")
    hear()
    sys.exit(0)
say("result", summary="", data={"half": open("half.txt").read(), "at": start["checkpoint"]})
"""
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, data, code) as process:
        await made_by_agent(data, "half.ready")
        process.stop.set()
        job = await wait_for_status(rt, number, S.RESUMED)
    assert (job.attempts, job.retry_count) == (0, 0)
    async with agent_worker(rt, tmp_path / "elsewhere", code):
        job = await wait_for_end(rt, number)
    assert (job.result or {})["data"] == {"half": "half\n", "at": "half way"}


async def test_an_agent_that_ignores_the_shutdown_is_killed(
    rt: Runtime, make: Factory, data: Path, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo, text="pids")
    async with agent_worker(rt, data, f"{FAMILY}\ntime.sleep(600)", abort=0.2) as process:
        pids = await family(data)
        process.stop.set()
        await wait_for_status(rt, number, S.RESUMED)
        await wait_for_exit(*pids)


async def test_a_run_that_lost_its_lease_kills_its_agent(
    rt: Runtime, make: Factory, data: Path, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo, text="pids", on_lost="fail")
    async with agent_worker(rt, data, f"{FAMILY}\ntime.sleep(600)") as process:
        pids = await family(data)
        await rescue_live(rt, process.id)
        await wait_for_exit(*pids)
    assert (await rt.read_model.job(number)).last_error == "the worker was lost"


async def test_clones_of_a_killed_worker_are_removed_by_the_next_worker(
    rt: Runtime, make: Factory, data: Path, repo: Path
) -> None:
    over = await rt.read_model.job(await make.completed())
    running = await make.running()
    keep = [
        f"D-{running.number}.1-{running.id.hex[-12:]}",
        f"D-{over.number}.1-{'0' * 12}",  # of another database
        f"D-999.1-{over.id.hex[-12:]}",
        "mine",
    ]
    gone_now = [
        f"D-{over.number}.1-{over.id.hex[-12:]}",
        f"D-{running.number}.0-{running.id.hex[-12:]}",
    ]
    for name in keep + gone_now:
        (data / "runs" / name / "repo").mkdir(parents=True)
    async with agent_worker(rt, data, WORK):
        await wait_for_end(rt, await submit_agent_job(make, repo))
    assert sorted(path.name for path in (data / "runs").iterdir()) == sorted(keep)
