"""`merge`, and the checks of a forge by `doctor` and `repos check`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from draftsman.jobs.reserved_names import PULL_REQUEST, Owner
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings import load
from draftsman_testing.factories import Factory
from draftsman_tui.cli.setup.doctor import _forges
from tests.core.forges.api_contract import forge_harness
from tests.tui.cli.cli_runner import Cli

PASSES = {"validation_commands": [{"name": "ok", "command": ["true"]}]}
URL = "https://git.example/acme/pay/pull/7"


async def published(rt: Runtime, make: Factory, result: dict[str, Any] | None) -> ClaimedJob:
    """Return a completed job whose run recorded this about its pull request."""
    work = await make.running(notify=("log",))
    if result is not None:
        await rt.checkpoints.begin_step(work.lease, PULL_REQUEST, None, Owner.WORKER)
        await rt.checkpoints.finish_step(work.lease, PULL_REQUEST, result, Owner.WORKER)
    await rt.settlement.outcome(work, Done({}))
    return work


async def test_merge_submits_one_job_that_asks_in_the_channels_of_the_work(
    cli: Cli, rt: Runtime, make: Factory
) -> None:
    work = await published(rt, make, {"number": 7, "url": URL})
    done = await cli("merge", work.name, "--json")
    number = done.json["number"]
    again = await cli("merge", work.name)
    assert again.out == f"D-{number} asks for the merge of {URL} once its checks have passed\n"
    job = await rt.read_model.job(number)
    assert (job.type, job.payload) == ("merge_pull_request", {"job": work.number})
    assert (job.url, job.queue) == (URL, work.queue), "its workers know the forge"
    assert [target.channel for target in await rt.outbox.targets(number)] == ["log"]
    failed = await published(rt, make, {"problem": "not opened: 403 no"})
    refused = await cli("merge", failed.name)
    refused.refused(1, f"{failed.name} has no pull request to merge: not opened: 403 no; see:")
    none = await published(rt, make, None)
    (await cli("merge", none.name)).refused(1, "it opened none on a forge of [forges]")


async def test_merge_takes_the_work_of_the_newest_follow_up(
    cli: Cli, rt: Runtime, make: Factory
) -> None:
    first = await published(rt, make, {"number": 7, "url": URL})
    latest = await published(rt, make, {"number": 7, "url": URL})
    unchanged = await published(rt, make, None)
    pull = {"root": first.number, "url": URL}
    async with rt.db.connection() as conn:
        await conn.execute(
            "INSERT INTO draftsman.pull_requests (root, forge, project, number, url, branch, base,"
            " head) VALUES (%(root)s, 'acme', 'acme/pay', 7, %(url)s, 'b', 'main', %(head)s)",
            pull | {"head": "a" * 40},
        )
        jobs = (first.number, latest.number, unchanged.number)
        for ordinal, (parent, job) in enumerate(pairwise(jobs), 1):
            await conn.execute(
                "INSERT INTO draftsman.follow_ups (job, root, ordinal, parent)"
                " VALUES (%(job)s, %(root)s, %(ordinal)s, %(parent)s)",
                pull | {"job": job, "ordinal": ordinal, "parent": parent},
            )
    number = (await cli("merge", first.name, "--json")).json["number"]
    assert (await rt.read_model.job(number)).payload == {"job": latest.number}
    async with rt.db.connection() as conn:
        await conn.execute(
            "UPDATE draftsman.pull_requests SET state = 'merged', ended_at = draftsman.now()"
        )
    (await cli("merge", first.name)).refused(1, f"{URL} is merged already; see:")
    async with rt.db.connection() as conn:
        await conn.execute("UPDATE draftsman.pull_requests SET state = 'closed'")
    before = len(await rt.read_model.jobs())
    (await cli("merge", first.name)).refused(1, f"{URL} is closed: open it again on the forge")
    assert len(await rt.read_model.jobs()) == before


async def test_doctor_and_repos_check_name_the_missing_rights(
    cli: Cli, rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with forge_harness("github", tmp_path, monkeypatch) as site:
        world = site.fake.world
        with cli.config.open("a", encoding="utf-8") as config:
            config.write(
                f'\n[forges.acme]\nkind = "github"\nurl = "{world.base}"\n'
                'token = { env = "FORGE_TOKEN" }\n[http]\nallow = ["127.0.0.1"]\n'
            )

        configured = replace(rt, settings=load(cli.config))

        async def finding() -> tuple[str, str]:
            [found] = await _forges(configured)
            assert found.name == "forge acme"
            return found.status, found.text

        assert await finding() == ("warn", f"no registered repository is on {world.base}")
        await configured.repos.add(Repo.at(parse(site.fake.url)), profile(PASSES), make.owner)
        assert await finding() == ("ok", "acme/pay: draftsman-bot")
        done = await cli("repos", "check", "pay")
        assert (done.code, "forge acme: acme/pay: draftsman-bot\n" in done.out) == (0, True)
        world.may_push = False
        lacks = "acme/pay: draftsman-bot lacks Contents: Read and write"
        assert await finding() == ("warn", lacks)
        refused = await cli("repos", "check", "pay")
        refused.refused(1, lacks, "draftsman help --page forges#tokens")
        monkeypatch.setenv("FORGE_TOKEN", "wrong")
        status, text = await finding()
        assert (status, text) == ("fail", "acme/pay: acme: GET /api/v3/user: 401 Bad credentials")
        person = next(iter(rt.policy.people.values()))
        rt.policy.people = {"anna": replace(person, ids={"forge": "acmee:anna"})}
        unknown, _ = await _forges(configured)
        assert unknown.text == "no table of [forges] has the name in: acmee:anna"
        rt.policy.people = {}
        monkeypatch.delenv("FORGE_TOKEN")
        problem = "forges.acme.token: the variable FORGE_TOKEN holds no secret"
        assert await finding() == ("warn", problem)
