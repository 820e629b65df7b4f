"""Ten jobs at once on a repository: no two published branches conflict without a notice."""

from __future__ import annotations

import subprocess
import time
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.agent_runs.profiled_jobs import WRITE, commit_files
from tests.core.worker.agent_jobs import agent_worker, git, submit_agent_job
from tests.core.worker.workers import wait_for_end

pytestmark = pytest.mark.timeout(400)
JOBS: Final = 10
FILES: Final = {f"f{number}.txt": "one\n" for number in range(JOBS)}
CODE: Final = f"""{WRITE}
write({{name: start["branch"] + "\\n" for name in start["request"]["text"].split()}})
say("result", summary="done")
"""


async def run_jobs(
    rt: Runtime, make: Factory, folder: Path, *, slots: int
) -> tuple[Path, dict[str, dict[str, Any]], float]:
    """Run the jobs, each with two of the files; return the results by branch, and the seconds."""
    repo = commit_files(folder / "repo", FILES)
    names = sorted(FILES)
    numbers = [
        await submit_agent_job(make, repo, text=f"{names[at]} {names[(at + 1) % JOBS]}")
        for at in range(JOBS)
    ]
    begin = time.monotonic()
    results = {}
    async with agent_worker(rt, folder / "data", CODE, slots=slots):
        for number in numbers:
            job = await wait_for_end(rt, number)
            assert job.status is Status.COMPLETED, job.last_error
            results[f"draftsman/D-{number}"] = job.result or {}
    return repo, results, time.monotonic() - begin


def conflict(repo: Path, one: str, other: str) -> bool:
    done = subprocess.run(
        ["git", "merge-tree", "--write-tree", one, other],
        cwd=repo,
        capture_output=True,
        check=False,
    )
    return done.returncode == 1


async def test_of_ten_branches_no_two_conflict_without_a_notice(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    for folder in ("together", "serial"):
        (tmp_path / folder).mkdir()
    repo, results, seconds = await run_jobs(rt, make, tmp_path / "together", slots=JOBS)
    found = 0
    for one, other in combinations(results, 2):
        named = {
            frozenset((branch, item["branch"]))
            for branch in (one, other)
            for item in results[branch].get("conflicts", ())
        }
        conflicts = conflict(repo, one, other)
        assert (frozenset((one, other)) in named) is conflicts, (one, other)
        found += conflicts
    assert found == JOBS
    _, _, serial = await run_jobs(rt, make, tmp_path / "serial", slots=1)
    print(f"{JOBS} jobs at once {seconds:.1f} s, one at a time {serial:.1f} s")  # noqa: T201


async def test_merged_and_deleted_branches_are_not_compared(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    repo = commit_files(tmp_path / "repo", FILES)
    async with agent_worker(rt, tmp_path / "data", CODE):
        for title, named in (("merged", []), ("deleted", []), ("open", []), ("last", ["open"])):
            number = await submit_agent_job(make, repo, text="f1.txt", title=title)
            result = (await wait_for_end(rt, number)).result or {}
            assert [item["title"] for item in result.get("conflicts", ())] == named
            branch = f"draftsman/D-{number}"
            if title == "merged":
                git("merge", "-q", branch, cwd=repo)
            elif title == "deleted":
                git("branch", "-qD", branch, cwd=repo)
