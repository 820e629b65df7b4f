"""A job that publishes to a forge, through faults: one pull request."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_url import parse
from draftsman_testing.forges.github import FakeGitHub
from tests.core.worker.agent_jobs import PRELUDE, make_repository
from tests.kill.agent_work import VALIDATED
from tests.kill.campaign import Campaign, all_ended, people_answer
from tests.kill.faults import AGENT
from tests.kill.notifications import OWNER

CODE: Final = """
open("last.txt", "w").write(f"of run {start['run']}")
say("result", summary="done")
"""


@dataclass(frozen=True, slots=True)
class ServedForge:
    """A fake forge, and the configuration of workers for it."""

    fake: FakeGitHub
    settings: dict[str, Any]


@asynccontextmanager
async def serving_forge(folder: Path) -> AsyncIterator[ServedForge]:
    """Serve a forge; its token is in the environment of processes that start meanwhile."""
    async with FakeGitHub(folder / "forge") as fake:
        fake.publish(make_repository(folder / "source"))
        os.environ["FORGE_TOKEN"] = fake.world.token
        try:
            table = fake.settings() | {"labels": ["draftsman"], "reviewers": ["anna"]}
            command = ["{python}", "-I", "-S", "-c", PRELUDE + CODE, AGENT]
            yield ServedForge(
                fake,
                {
                    "forges": {"acme": table},
                    "http": {"allow": ["127.0.0.1"]},
                    "agents": {"test": {"command": command}},
                },
            )
        finally:
            del os.environ["FORGE_TOKEN"]


async def open_pull_requests(campaign: Campaign, forge: ServedForge) -> None:
    """Run a job on the forge through faults."""
    rt = campaign.rt
    world = forge.fake.world
    repo = Repo.at(parse(forge.fake.url))
    await rt.repos.add(repo, VALIDATED, OWNER)
    request = invocation(
        type="run_agent", agent="test", repo=repo.remote_url, max_attempts=100, max_retries=100
    )
    number = (await rt.submissions.submit(request, OWNER)).number
    async with people_answer(rt):
        await campaign.work(lambda: all_ended(rt))
    job = await rt.read_model.job(number)
    assert job.status is Status.COMPLETED, job.last_error
    result = job.result or {}
    [pull] = world.pulls
    assert job.pr_url == result["pr_url"] == f"{world.base}/acme/pay/pull/1"
    assert "pull_request_problem" not in result
    assert (pull.labels, pull.reviewers) == (["draftsman"], ["anna"])
    assert world.head(f"draftsman/D-{number}") == result["commit"]
    assert f"head={result['commit']} -->" in pull.body
    assert {item["state"] for item in world.latest(result["commit"])} == {"success"}
