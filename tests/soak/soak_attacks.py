"""Attacks by volume: a gigabyte of output, and a line without an end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from draftsman.jobs.job import Job, Status
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import agent_worker, make_repository, submit_agent_job

pytestmark = pytest.mark.timeout(900)
SECONDS: Final = 600.0
MEGABYTE: Final = 1 << 20
GROWTH: Final = 256 * MEGABYTE
"""Maximum growth of the worker's memory, in bytes: a quarter of the output."""
WRITE: Final = """
def write(descriptor, piece):
    for _ in range(1024):
        data = piece
        while data: data = data[os.write(descriptor, data):]
"""
FINISH: Final = 'say("result", summary="done")'
OUTPUTS: Final = {
    "line": f"{WRITE}write(1, b'x' * (1 << 20))\nprint()\n{FINISH}",
    "lines": f"{WRITE}write(1, b'not JSON ' * 116508 + b'\\n')\n{FINISH}",
    "log": f"{WRITE}write(2, b'noise\\n' * 174763)\n{FINISH}",
}


def peak() -> int:
    """Return the largest resident memory of this process since the last reset, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


async def memory_of_job(rt: Runtime, make: Factory, repo: Path, code: str) -> tuple[Job, int]:
    """Return the ended job of an agent, and the growth of the worker's memory in this process."""
    number = await submit_agent_job(make, str(repo))
    async with agent_worker(rt, repo.parent / "data", code):
        Path("/proc/self/clear_refs").write_text("5")
        before = peak()

        async def ended() -> bool:
            return (await rt.read_model.job(number)).finished_at is not None

        await until(ended, f"the end of D-{number}", SECONDS)
        job = await rt.read_model.job(number)
    return job, peak() - before


@attack(
    "An agent writes a line without an end: a gigabyte without a newline",
    surface="quota",
    with_sandbox="the line is dropped and logged as malformed; memory is bounded",
)
@attack(
    "An agent writes a gigabyte of lines that are no messages, or of log",
    surface="quota",
    with_sandbox="they are cut at the quotas of the log and of messages; memory is bounded",
)
@pytest.mark.parametrize("output", OUTPUTS)
async def test_a_gigabyte_of_output_does_not_fill_the_memory(
    rt: Runtime, make: Factory, tmp_path: Path, output: str
) -> None:
    repo = make_repository(tmp_path / "repo")
    job, growth = await memory_of_job(rt, make, repo, OUTPUTS[output])
    assert job.status is Status.COMPLETED, job.last_error
    assert growth < GROWTH, f"{growth:,} bytes"


@attack(
    "A command of the repository's profile writes a gigabyte",
    surface="quota",
    with_sandbox="the start and the end of the output are kept",
)
async def test_a_gigabyte_of_a_command_does_not_fill_the_memory(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "repo")
    code = f"import os{WRITE}write(1, b'x' * (1 << 20))"
    command = {"name": "noise", "command": ["{python}", "-I", "-S", "-c", code]}
    fields = {"setup_commands": [command], "validation_commands": []}
    await rt.repos.add(Repo.at(parse(str(repo))), profile(fields), make.owner)
    job, growth = await memory_of_job(rt, make, repo, FINISH)
    assert job.status is Status.COMPLETED, job.last_error
    assert growth < GROWTH, f"{growth:,} bytes"
