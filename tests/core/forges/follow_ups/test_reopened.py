"""Pull requests that people close, open again and close again: each change counts once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.forges.follow_up_jobs.service import FollowUpSweep
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman_bots.forges.receiver import ForgeReceiver
from draftsman_testing.factories import Factory
from tests.core.forges.api_contract import BRANCH, forge_harness
from tests.core.worker.workers import event_kinds
from tests.support.slow import slow_except


@pytest.mark.parametrize("kind", slow_except(["github"], ["github", "gitlab", "gitea"]))
async def test_a_reopened_pull_request_is_followed_up_again(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rt: Runtime,
    make: Factory,
    conn: Connection,
) -> None:
    async with forge_harness(kind, tmp_path, monkeypatch) as site:
        number = (await site.open(site.push())).pull.number
        [pull] = site.fake.world.pulls
        table = site.table(events="poll", follow_up_delay=0, delete_branch=False)
        update = {"forges": {"acme": table}, "http": site.settings.http}
        own = replace(rt, settings=rt.settings.model_copy(update=update))
        receiver = ForgeReceiver(own)
        job = await make.job_in(Status.COMPLETED, notify=("log",))
        await conn.execute(
            "INSERT INTO draftsman.pull_requests"
            " (root, forge, project, number, url, branch, base, head)"
            " VALUES (%s, 'acme', 'acme/pay', %s, 'u', %s, 'main', %s)",
            (job, number, BRANCH, site.fake.world.head(BRANCH)),
        )

        async def step() -> str:
            """Read the forge and sweep, twice; return the state of the pull request."""
            for _ in range(2):
                receiver._due["acme"] = receiver._closed_due["acme"] = 0.0
                await receiver.read_due(polls=True)
                await FollowUpSweep(own.db, own.policy, own.settings.read_forges).sweep(
                    LeaderTerm()
                )
            family = await own.forge_events.follow_ups.family(job)
            assert family is not None
            return family.pull.state

        assert await step() == "open"
        for day in (1, 2):
            pull.state = "closed"
            pull.closed_at = f"2026-01-0{day}T03:04:05Z"
            assert await step() == "closed"
            await own.forge_events.follow_ups.branch_deleted(job)
            pull.state = "open"
            assert await step() == "open"
            await own.forge_events.follow_ups.branch_deleted(job)  # by a process that was late
            deleted = await conn.execute("SELECT branch_deleted_at FROM draftsman.pull_requests")
            assert await deleted.fetchall() == [(None,)], "it is deleted at its next end"
        site.fake.world.checks.append({"name": "ci", "state": "failed", "commit": "*"})
        await step()
        family = await own.forge_events.follow_ups.family(job)
        assert family is not None
        assert len(family.jobs) == 2, "it is followed up again"
        pull.state = "merged"
        pull.merged_head = site.fake.world.head(BRANCH) or ""
        assert await step() == "merged"
        pull.state = "open"  # which no forge can do
        assert await step() == "merged"
    kinds = await event_kinds(own, job)
    assert (kinds.count("pull_request_ended"), kinds.count("pull_request_reopened")) == (2, 2)
    notices = [d for d in await own.outbox.all(job) if d.kind is DeliveryKind.NOTICE]
    assert len(notices) == 5, "each change is announced once"
