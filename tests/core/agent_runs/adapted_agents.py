"""Workers and jobs of agents with an adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from draftsman.handlers import registry
from draftsman.jobs.job import Job, Status
from draftsman.questions.question import Question
from draftsman.runtime import Runtime
from draftsman.worker.worker_process import WorkerProcess
from tests.core.worker.agent_jobs import git
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end, wait_for_question


@asynccontextmanager
async def adapted_worker(
    rt: Runtime, data: Path, agents: dict[str, Any], ask_grace: float = 0
) -> AsyncIterator[WorkerProcess]:
    """Run a worker with a slot and these agents."""
    configured = runtime_with(rt, data_dir=data, agents=agents, ask_grace=ask_grace)
    async with running_worker(configured, registry.load({}), leader=False, slots=1) as process:
        yield process


async def questions_of(rt: Runtime, number: int) -> list[Question]:
    """Return the questions of a job."""
    return (await rt.questions.of_job(number))[0]


async def asked(rt: Runtime, number: int, ordinal: int = 1) -> Question:
    """Wait for an open question."""
    await wait_for_question(rt, number, ordinal)
    return await rt.questions.get(number, ordinal)


async def ended(rt: Runtime, number: int) -> Job:
    """Wait for the end of a job that completes."""
    job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    return job


def lines_of(repo: Path, number: int, name: str = "ran.txt") -> list[str]:
    """Return the lines of a file on the branch of a job."""
    return git("show", f"draftsman/D-{number}:{name}", cwd=repo).splitlines()
