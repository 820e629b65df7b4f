"""Pull requests of published work, and their merge, through the worker."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.evidence.statement import parse_envelope, parse_payload
from draftsman.forges.pull_request import UNSETTLED
from draftsman.handlers.job_types import merge_pull_request
from draftsman.jobs.job import Job, Status
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.fake.faults import Fault
from draftsman_testing.outbox import deliveries_of
from tests.attacks.catalog import attack
from tests.core.forges.api_contract import COMMITS, ForgeHarness, forge_harness
from tests.core.worker.agent_jobs import agent_worker, git, submit_agent_job
from tests.core.worker.workers import (
    event_kinds,
    last_event,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)

S = Status
TWO = {"name": "tests", "command": ["grep", "-c", "two", "a.txt"]}
WORKS = """
import base64
open("a.txt", "a").write("two\\n")
color = ask("pick", "Which @color?")
parked(color)
say("usage", input_tokens=1000, cost_usd=0.5)
secret = "forge-token-of-" + "the-bot"
secrets = [secret, base64.b64encode(f"x-access-token:{secret}".encode()).decode()]
files = [os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names]
texts = [str(dict(os.environ)), *(open(file, errors="replace").read() for file in files)]
leaks = len([text for text in texts if any(secret in text for secret in secrets)])
say("result", summary=f"run {start['run']} for @anna, fixes #3", data={"leaks": leaks})
"""
FAILS = 'open("a.txt", "a").write("no\\n")\nsay("result", summary="did it")'


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ForgeHarness]:
    async with forge_harness("github", tmp_path, monkeypatch) as harness:
        yield harness


async def submit(site: ForgeHarness, rt: Runtime, make: Factory, **fields: Any) -> int:
    """Submit a job for the repository of the forge, with a profile."""
    repo = Repo.at(parse(site.fake.url))
    await rt.repos.add(repo, profile({"validation_commands": [TWO]} | fields), make.owner)
    return await submit_agent_job(make, repo.remote_url, text="Count, fixes #12")


def worker(site: ForgeHarness, rt: Runtime, code: str, leader: bool = False, **table: Any) -> Any:
    """Run a worker with the forge."""
    update = {"forges": {"acme": site.table(**table)}, "http": site.settings.http}
    configured = replace(rt, settings=rt.settings.model_copy(update=update))
    return agent_worker(configured, site.folder / "data", code, leader=leader)


async def approve(rt: Runtime, make: Factory, number: int) -> Job:
    """Approve the merge once it is asked for; return the ended job."""
    await wait_for_question(rt, number)
    response = Response(source_event_id="1", decision=Decision.APPROVE)
    assert (await rt.questions.answer(number, 1, response, make.owner)).accepted
    return await wait_for_end(rt, number)


async def test_a_squash_has_the_message_of_the_work_with_its_sign_off(
    site: ForgeHarness, rt: Runtime, make: Factory
) -> None:
    world = site.fake.world
    world.checks.append({"name": "ci", "state": "passed", "commit": "*"})
    own = {"author": "Bot <bot@acme.example>", "sign_off": True, "message": "{title}: {job}"}
    number = await submit(site, rt, make, git=own)
    code = 'open("a.txt", "a").write("two\\n")\nsay("result", summary="did it")'
    async with worker(site, rt, code, merge="ask", merge_method="squash"):
        assert (await wait_for_end(rt, number)).status is S.COMPLETED
        merge = (await rt.read_model.jobs(type="merge_pull_request"))[0].number
        assert (await approve(rt, make, merge)).status is S.COMPLETED
    [pull] = world.pulls
    assert pull.message == f"Do it: D-{number} (#1)\n\nSigned-off-by: Bot <bot@acme.example>"


@attack(
    "An agent names a page of another host as its pull request, which people then open",
    surface="input",
    with_sandbox="it counts only if host and repository are the job's; the log says so",
)
async def test_a_pull_request_of_the_agent_is_one_of_its_repository(
    site: ForgeHarness, rt: Runtime, make: Factory
) -> None:
    world = site.fake.world
    own = f"{world.base}/acme/pay/pull/7"
    code = """
open("a.txt", "a").write("two\\n")
say("result", summary="did it", data={"pr_url": start["request"]["text"]})
"""
    await submit(site, rt, make)
    found = {}
    async with worker(site, rt, code, pull_requests=False):
        for url in (own, "https://evil.example/acme/pay/pull/7", f"{world.base}/acme/other/pull/7"):
            number = await submit_agent_job(make, parse(site.fake.url).url, text=url)
            found[url] = await wait_for_end(rt, number)
    assert [job.pr_url for job in found.values()] == [own, None, None]
    assert (found[own].result or {})["pr_url"] == own
    [listed] = [item for item in await rt.read_model.jobs() if item.pr_url]
    assert listed.pr_url == own
    created = await last_event(rt, found[own].number, "pr_created")
    assert created.payload == {"pr_url": own, "files_changed": 1, "loc_delta": 1}


async def test_work_becomes_a_pull_request_that_is_merged_after_an_approval(
    site: ForgeHarness, rt: Runtime, make: Factory
) -> None:
    """The private repository is cloned and pushed to; the body tells the story; one merge."""
    world = site.fake.world
    number = await submit(site, rt, make)
    world.checks.append({"name": "ci", "state": "passed", "commit": "*"})
    async with worker(
        site, rt, WORKS, labels=["draftsman"], reviewers=["nobody"], merge="ask", events="poll"
    ):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
        result = job.result or {}
        [pull] = world.pulls
        merge = (await rt.read_model.jobs(type="merge_pull_request"))[0].number
        await wait_for_question(rt, merge)
        approval = await rt.questions.get(merge, 1)
        asked = await deliveries_of(rt, merge)
        assert world.head("main") == COMMITS[0], "not merged without an approval"
        merged = await approve(rt, make, merge)
    assert (job.status, job.run_count, job.last_error) == (S.COMPLETED, 2, None)
    assert job.pr_url == result["pr_url"] == f"{world.base}/acme/pay/pull/1"
    assert (await last_event(rt, number, "pr_created")).payload["pr_url"] == job.pr_url
    assert (pull.title, pull.draft, pull.labels) == ("Do it", False, ["draftsman"])
    assert result["pull_request_problem"].startswith("incomplete: acme: POST /api/v3/")
    assert [(item.kind, item.target) for item in asked] == [("question", "acme/acme/pay#1")]
    patch = await rt.changes.patch(number)
    assert patch is not None
    shown = hashlib.sha256(await rt.checkpoints.content(patch)).hexdigest()
    assert approval.patch_sha256 == shown, "the approval shows the diff"
    assert f"changes: draftsman diff D-{number}" in (approval.context_snippet or "")
    _, evidence = await rt.checkpoints.read_artifact(number, "evidence.json")
    digest = hashlib.sha256(evidence).hexdigest()
    for text in (
        f"D-{number}, requested by {job.invoker_id}",
        "> Count, fixes #\u200b12",
        "run 2 for @\u200banna, fixes #\u200b3",
        "| tests: `grep -c two a.txt` | passed |",
        f"SHA-256 `{digest}`",
        f"| Which @\u200bcolor? | red | {make.owner.voter} |",
        "1,000 tokens, $0.50",
        "\nCloses #12\n",
        f"<!-- draftsman job=D-{number} id={job.id} head={result['commit']} -->",
    ):
        assert text in pull.body, text
    assert (world.mentioned(), world.closing()) == (set(), ["#12"])
    assert result["data"] == {"leaks": 0}
    records = [await rt.checkpoints.steps(number), await rt.read_model.job_events(number)]
    assert world.token not in repr(records)
    [status] = world.statuses
    assert (status["state"], status["commit"]) == ("success", result["commit"])
    assert approval.action == {
        "merge": job.pr_url,
        "commit": result["commit"],
        "into": "main",
        "method": "merge",
    }
    assert (merged.status, merged.queue, merged.last_error) == (S.COMPLETED, job.queue, None)
    assert (merged.result or {})["summary"] == f"merged {result['commit'][:12]} into main"
    assert (pull.state, world.head("main")) == ("merged", result["commit"])
    message = git("log", "-1", "--format=%B", result["commit"], cwd=world.repository)
    assert "run 2 for @\u200banna, fixes #\u200b3" in message


async def test_a_job_whose_forge_was_away_opens_one_pull_request(
    site: ForgeHarness, rt: Runtime, make: Factory
) -> None:
    """The reply of the first request is lost; the agent does not run again, but the base moves."""
    code = 'open("a.txt", "a").write("two\\n")\nsay("result", summary=f"run {start[\'run\']}")'
    world = site.fake.world
    number = await submit(site, rt, make, policy={"update_base": "merge"})
    world.faults.add("create", Fault.DROP_AFTER)
    async with worker(site, rt, code):
        assert "acme/pay" in str((await wait_for_status(rt, number, S.RETRYING)).last_error)
        _, signed = await rt.checkpoints.read_artifact(number, "evidence.json")
        moved = git("commit-tree", "main^{tree}", "-p", "main", "-m", "later", cwd=world.repository)
        git("update-ref", "refs/heads/main", moved, cwd=world.repository)
        await make.due(number)
        job = await wait_for_end(rt, number)
    [pull] = site.fake.world.pulls
    assert (job.status, job.run_count, job.pr_url) == (
        S.COMPLETED,
        2,
        f"{site.fake.world.base}/acme/pay/pull/{pull.number}",
    )
    result = job.result or {}
    assert (result["summary"], result.get("pull_request_problem")) == ("run 1", None)
    assert result["commit"] == world.head(f"draftsman/D-{number}")
    assert f" head={result['commit']} -->" in pull.body
    kinds = await event_kinds(rt, number)
    assert [kinds.count(kind) for kind in ("iteration_started", "branch_published")] == [1, 1]
    assert "base_updated" not in kinds, "published work stays as it is"
    _, evidence = await rt.checkpoints.read_artifact(number, "evidence.json")
    statement = parse_payload(parse_envelope(evidence))["predicate"]
    assert (statement["head"], signed) == (result["commit"], evidence), "signed once"


async def test_a_forge_that_refuses_does_not_lose_the_work(
    site: ForgeHarness, rt: Runtime, make: Factory
) -> None:
    """For good, and temporarily after the last attempt; the branch and the next step are named."""
    world = site.fake.world
    code = WORKS.replace('color = ask("pick", "Which @color?")', "")
    code = code.replace("parked(color)", "")
    world.faults.add("create", Fault("error", status=403, text="Resource not accessible"))
    number = await submit(site, rt, make)
    repo = parse(site.fake.url).url
    async with worker(site, rt, code):
        job = await wait_for_end(rt, number)
        world.faults.add("create", Fault("secondary"))
        last = await submit_agent_job(make, repo, max_retries=0)
        exhausted = await wait_for_end(rt, last)
    result = job.result or {}
    assert (job.status, job.pr_url, world.pulls) == (S.COMPLETED, None, [])
    assert world.head(result["branch"]) == result["commit"]
    assert result["pull_request_problem"] == (
        "not opened: acme: POST /api/v3/repos/acme/pay/pulls: 403 Resource not accessible; to open"
        f" it yourself: {world.base}/acme/pay/compare/main...{result['branch']}"
    )
    assert exhausted.status is S.COMPLETED
    assert "secondary rate limit" in (exhausted.result or {})["pull_request_problem"]


@pytest.mark.slow(fast="tests/core/forges/test_body.py::test_the_issues_that_a_request_names")
async def test_the_text_of_a_spawned_job_closes_no_issue(
    site: ForgeHarness, rt: Runtime, make: Factory
) -> None:
    """An agent may have written it; its follow-ups close none either."""
    number = await submit(site, rt, make)
    await rt.job_control.cancel(number, make.owner)
    request = await rt.read_model.job(number)
    parent = await make.running()
    fields = {
        "repo": parse(site.fake.url).url,
        "text": "Count, fixes #3",
        "agent": request.agent_request.agent,
    }
    child = await rt.workflows.spawn(parent, "child", "run_agent", fields)
    code = 'open("a.txt", "a").write("two\\n")\nsay("result", summary="x")'
    async with worker(site, rt, code):
        assert (await wait_for_end(rt, child)).status is S.COMPLETED
    [pull] = site.fake.world.pulls
    assert "\nRelated: #3\n" in pull.body
    assert site.fake.world.closing() == []


async def test_failed_work_is_a_draft_that_is_never_merged(
    site: ForgeHarness, rt: Runtime, make: Factory
) -> None:
    number = await submit(site, rt, make, max_iterations=1)
    async with worker(site, rt, FAILS, merge="ask", reviewers=["anna"]):
        await wait_for_question(rt, number)
        await make.answer(number, "draft")
        assert (await wait_for_end(rt, number)).status is S.COMPLETED
        payload = {"job": number}
        merge = await make.queued(type="merge_pull_request", queue="default", payload=payload)
        refused = await wait_for_end(rt, merge)
    [pull] = site.fake.world.pulls
    assert (pull.draft, pull.reviewers) == (True, [])
    assert pull.body.startswith("**Draft**")
    assert "| tests: `grep -c two a.txt` | **failed**: 0 |" in pull.body
    assert site.fake.world.statuses[0]["state"] == "failure"
    assert (await rt.read_model.page(type="merge_pull_request")).jobs[0].number == merge
    assert (refused.status, refused.error_class) == (S.FAILED, "PERMANENT")
    assert str(refused.last_error).endswith("/pull/1 is a draft")


async def test_a_merge_is_refused_with_the_reason(
    site: ForgeHarness, rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red and unfinished checks, rules of the branch, another head; also after the approval."""
    monkeypatch.setattr(merge_pull_request, "SHORT_WAIT", 0.2)
    world = site.fake.world
    code = 'open("a.txt", "a").write("two\\n")\nsay("result", summary="x")'
    number = await submit(site, rt, make)
    async with worker(site, rt, code, leader=True):
        head = ((await wait_for_end(rt, number)).result or {})["commit"]

        async def merge() -> int:
            payload = {"job": number}
            return await make.queued(type="merge_pull_request", queue="default", payload=payload)

        async def reason() -> str:
            job = await wait_for_end(rt, await merge())
            assert job.error_class == "PERMANENT"
            return str(job.last_error)

        check = {"name": "ci", "state": "failed", "commit": head}
        world.checks.append(check)
        assert (await reason()).endswith("cannot be merged: ci failed")
        check["state"] = "passed"
        world.protection = "At least 1 approving review is required."
        assert (await reason()).endswith("its merge state is blocked")
        world.protection = None
        check["state"] = "pending"
        waiting = await merge()
        await wait_for_status(rt, waiting, S.SCHEDULED)
        slept = {step.key: step.result for step in await rt.checkpoints.steps(waiting)}
        pull = (await rt.read_model.job(number)).pr_url
        assert slept["sleep:checks:0"]["reason"] == f"waits for {pull}: ci not finished"
        check["state"] = "passed"
        await wait_for_question(rt, waiting)
        check["state"] = "failed"
        assert "ci failed" in str((await approve(rt, make, waiting)).last_error)
        check["state"] = "passed"
        world.push(f"draftsman/D-{number}", COMMITS[1])
        assert f"is {COMMITS[1][:12]}, and D-{number} published {head[:12]}" in await reason()
        world.pulls[0].state = "merged"
        merged = (await wait_for_end(rt, await merge())).result or {}
        assert merged["commit"] == COMMITS[1]
        assert merged["summary"].endswith(f"into main; the published commit is {head[:12]}")
        payload = {"job": waiting}
        none = await make.queued(type="merge_pull_request", queue="default", payload=payload)
        assert "opened no pull request" in str((await wait_for_end(rt, none)).last_error)
    assert world.head("main") == COMMITS[0]


async def test_a_merge_waits_while_gitea_checks_for_conflicts(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conflict looks the same there, and is refused after some waits."""
    monkeypatch.setattr(merge_pull_request, "SHORT_WAIT", 0.2)
    code = 'open("a.txt", "a").write("two\\n")\nsay("result", summary="x")'
    async with forge_harness("gitea", tmp_path, monkeypatch) as site:
        world = site.fake.world
        number = await submit(site, rt, make)
        async with worker(site, rt, code, leader=True):
            head = ((await wait_for_end(rt, number)).result or {})["commit"]
            world.checks.append({"name": "ci", "state": "passed", "commit": head})
            world.talk.conflicts.add(1)
            request: dict[str, Any] = {"type": "merge_pull_request", "queue": "default"}
            waiting = await make.queued(**request, payload={"job": number})
            await wait_for_status(rt, waiting, S.SCHEDULED)
            world.talk.conflicts.clear()
            await wait_for_question(rt, waiting)
            world.talk.conflicts.add(1)
            monkeypatch.setattr(merge_pull_request, "START_WAITS", 1)
            refused = await approve(rt, make, waiting)
    assert (refused.status, refused.error_class) == (S.FAILED, "PERMANENT")
    assert f"its merge state is {UNSETTLED}, after five minutes" in str(refused.last_error)
