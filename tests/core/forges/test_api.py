"""The contract of all forges: one pull request per branch, honest failures, guarded merges."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.errors import Failure
from draftsman.forges.api.connection import git_login_of
from draftsman.forges.checks import CheckState, overall
from draftsman.forges.forge import Forge
from draftsman.forges.pull_request import PullRequest, PullState, Reconciliation
from draftsman.jobs.retries import ErrorClass, classify
from draftsman_testing.fake.faults import Fault
from draftsman_testing.forges.github import FakeGitHub, FakeGitHubApp
from tests.core.forges.api_contract import BRANCH, COMMITS, FAKES, ForgeHarness, forge_harness
from tests.core.worker.agent_jobs import git

E = ErrorClass


@pytest.fixture(params=["github", "gitlab", "gitea"])
async def site(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ForgeHarness]:
    """Give a forge of each kind; with `parametrize` over FAKES also the app of GitHub."""
    async with forge_harness(request.param, tmp_path, monkeypatch) as harness:
        yield harness


every_token = pytest.mark.parametrize("site", list(FAKES), indirect=True)


@every_token
async def test_published_work_becomes_one_pull_request(site: ForgeHarness) -> None:
    """Repeated, it is found; of another commit, its body is replaced; closed, it stays closed."""
    world = site.fake.world
    world.page = 1
    for name in ("other", "draftsman/D-10"):  # more pages, and a branch with the same beginning
        world.open(name, "main", "Other", "", False, "anna")
    first = site.push()
    asked: dict[str, Any] = {"labels": ["draftsman"], "reviewers": ["anna"]}
    opened = await site.open(first, **asked)
    assert (opened.step, opened.problems) == (Reconciliation.CREATE, ())
    again = await site.open(first, **asked)
    assert (again.step, again.pull.url) == (Reconciliation.KEEP, opened.pull.url)
    second = site.push(2)
    updated = await site.open(second, "New body")
    assert (updated.step, updated.pull.number) == (Reconciliation.UPDATE, opened.pull.number)
    [pull] = [pull for pull in world.pulls if pull.branch == BRANCH]
    assert pull.body.startswith("New body\n")
    assert (pull.title, pull.labels, pull.reviewers) == ("Count to two", ["draftsman"], ["anna"])
    assert opened.pull.url.startswith(f"{world.base}/acme/pay/")
    commits = {item["commit"]: item["state"] for item in world.statuses if item["name"]}
    assert commits == {first: "success", second: "success"}
    pull.state = "closed"
    closed = await site.open(second)
    assert (closed.step, closed.pull.state) == (Reconciliation.KEEP, PullState.CLOSED)
    assert len(world.pulls) == 3


async def test_a_draft_has_no_reviewers_and_a_failed_status(site: ForgeHarness) -> None:
    commit = site.push()
    opened = await site.open(commit, draft=True, reviewers=["anna"])
    [pull] = site.fake.world.pulls
    assert (opened.pull.draft, pull.draft, pull.reviewers) == (True, True, [])
    assert site.fake.world.statuses[0]["state"] in ("failure", "failed")
    with pytest.raises(Failure) as refused:
        await site.forge.merge(pull.number, commit, "merge")
    assert classify(refused.value) is E.PERMANENT


async def test_a_draft_becomes_ready_with_green_work_and_a_draft_again_without(
    site: ForgeHarness,
) -> None:
    """A crash between the change and the body repeats both; a draft of a person stays a draft."""
    world = site.fake.world
    await site.open(site.push(), draft=True)
    [pull] = world.pulls
    commit = site.push(2)
    if site.fake.kind == "github":  # elsewhere the change is an update, too
        world.faults.add("update", Fault.DROP_BEFORE)
        with pytest.raises(Failure):
            await site.open(commit)
    ready = await site.open(commit, reviewers=["anna"])
    assert (ready.step, ready.pull.draft, ready.problems) == (Reconciliation.UPDATE, False, ())
    assert (pull.draft, pull.title, pull.reviewers) == (False, "Count to two", ["anna"])
    assert (await site.forge.get(pull.number)).draft is False
    again = await site.open(site.push(1), draft=True)
    assert (again.pull.draft, pull.draft) == (True, True)
    assert (await site.open(site.push(2))).pull.draft is False
    await site.forge.set_draft(again.pull, True)  # by a person: the body does not say so
    by_person = await site.open(site.push(1))
    assert (by_person.pull.draft, pull.draft, by_person.problems) == (True, True, ())


async def test_without_drafts_the_title_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    async with forge_harness("github", tmp_path, monkeypatch) as site:
        site.fake.world.has_drafts = False
        opened = await site.open(site.push(), draft=True)
        [pull] = site.fake.world.pulls
        assert (opened.pull.draft, pull.title) == (True, "[Draft] Count to two")
        assert (await site.open(site.push(2))).pull.draft is False
        assert pull.title == "Count to two"
        assert (await site.open(site.push(1), draft=True)).problems == ()
        assert pull.title == "[Draft] Count to two"
        assert (await site.forge.get(1)).draft


async def test_a_lost_response_does_not_open_a_second_pull_request(site: ForgeHarness) -> None:
    commit = site.push()
    site.fake.world.faults.add("create", Fault.DROP_AFTER)
    site.fake.world.faults.add("status", Fault.DROP_BEFORE)
    for _ in range(2):
        with pytest.raises(Failure) as lost:
            await site.open(commit)
        assert classify(lost.value) is E.TRANSIENT_INFRA
    assert (await site.open(commit)).step is Reconciliation.KEEP
    assert len(site.fake.world.pulls) == len(site.fake.world.statuses) == 1


async def test_a_pull_request_of_another_author_is_used_and_not_changed(
    site: ForgeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it was opened between the search and the request, which the forge refuses."""
    commit = site.push()
    site.fake.world.open(BRANCH, "main", "By hand", "mine", False, "anna")
    assert (await site.open(commit)).step is Reconciliation.ADOPT
    find = type(site.forge).find
    empty = [True]

    async def late(self: Forge, branch: str) -> list[PullRequest]:
        return [] if empty and empty.pop() else await find(self, branch)

    monkeypatch.setattr(type(site.forge), "find", late)
    assert (await site.open(commit)).step is Reconciliation.ADOPT
    [pull] = site.fake.world.pulls
    assert (pull.title, pull.body) == ("By hand", "mine")
    assert "create" in site.fake.operations()


async def test_failures_have_a_class_and_the_reason_of_the_forge(site: ForgeHarness) -> None:
    world = site.fake.world
    commit = site.push()

    async def failure() -> tuple[ErrorClass, Failure]:
        with pytest.raises(Failure) as raised:
            await site.open(commit)
        assert world.token not in str(raised.value)
        assert "\n" not in str(raised.value)
        return classify(raised.value), raised.value

    world.faults.add("find", Fault("primary"), Fault("secondary"))
    kind, limited = await failure()
    assert kind is E.TRANSIENT_APP
    assert 80 < (limited.retry_after or 0) <= 91
    kind, limited = await failure()
    assert (kind, limited.retry_after) == (E.TRANSIENT_APP, 60)
    world.faults.add("create", Fault("error", status=502, text="bad gateway"), Fault.HTML_503)
    assert (await failure())[0] is E.TRANSIENT_INFRA
    assert (await failure())[0] is E.TRANSIENT_APP
    world.faults.add("create", Fault("error", status=403, text="Resource not accessible"))
    kind, refused = await failure()
    assert (kind, "403 Resource not accessible" in str(refused)) == (E.PERMANENT, True)
    unknown = await site.open(commit, reviewers=["nobody"])
    assert len(unknown.problems) == 1
    assert "acme: " in unknown.problems[0]
    world.token = "revoked"
    kind, denied = await failure()
    assert (kind, denied.http_status) == (E.PERMANENT, 401)


async def test_a_merge_needs_the_head_and_the_rules_of_the_branch(site: ForgeHarness) -> None:
    world = site.fake.world
    forge = site.forge
    first = site.push()
    number = (await site.open(first)).pull.number
    second = site.push(2)
    with pytest.raises(Failure) as stale:
        await forge.merge(number, first, "merge")
    assert (stale.value.http_status, classify(stale.value)) == (409, E.PERMANENT)
    world.protection = "At least 1 approving review is required."
    with pytest.raises(Failure) as blocked:
        await forge.merge(number, second, "merge")
    assert (blocked.value.http_status, classify(blocked.value)) == (405, E.PERMANENT)
    assert world.head("main") == COMMITS[0]
    world.protection = None
    assert (await forge.get(number)).mergeable is CheckState.PASSED
    await forge.merge(
        number, second, "squash", "Round\n\nIt does.\n\nSigned-off-by: A <a@b.example>"
    )
    numbered = "" if site.fake.kind == "gitlab" else f" (#{number})"
    told = f"Round{numbered}\n\nIt does.\n\nSigned-off-by: A <a@b.example>"
    assert world.pulls[0].message == told
    merged = await forge.get(number)
    assert (merged.state, merged.head) == (PullState.MERGED, second)
    assert world.head("main") == second


async def test_all_pages_of_checks_count(site: ForgeHarness) -> None:
    world = site.fake.world
    commit = site.push()
    world.page = 1
    assert overall(await site.forge.checks(commit)) == (
        CheckState.FAILED,
        "it has no checks",
    )
    await site.open(commit)
    assert overall(await site.forge.checks(commit)) == (
        CheckState.FAILED,
        "it has no checks besides the status draftsman",
    )
    for name, state in (("lint", "passed"), ("tests", "pending"), ("old", "failed")):
        checked = COMMITS[0] if name == "old" else commit
        world.checks.append({"name": name, "state": state, "commit": checked})
    assert overall(await site.forge.checks(commit)) == (
        CheckState.PENDING,
        "tests not finished",
    )
    world.checks[1]["state"] = "failed"
    assert overall(await site.forge.checks(commit))[1] == "tests failed"
    world.checks[1]["state"] = "passed"
    assert overall(await site.forge.checks(commit)) == (
        CheckState.PASSED,
        "2 checks passed",
    )


@every_token
async def test_the_account_and_its_missing_rights(site: ForgeHarness) -> None:
    world = site.fake.world
    forge = site.forge
    account = await forge.account()
    assert account.missing == ()
    assert account.name in (world.login, "GitHub App draftsman-app")
    world.may_push = False
    if isinstance(site.fake, FakeGitHubApp):
        site.fake.permissions |= {"contents": "read"}
    assert len((await forge.account()).missing) == 1
    if isinstance(site.fake, FakeGitHubApp):
        reads = ForgeHarness(
            site.fake,
            site.settings.model_copy(update={"forges": {"acme": site.table(events="poll")}}),
            site.folder,
        )
        assert "issues: write" in (await reads.forge.account()).missing
    assert (await forge.has_branch("main"), await forge.has_branch("no/such")) == (True, False)
    assert await forge.default_branch() == "main"


@every_token
async def test_git_needs_the_token(site: ForgeHarness) -> None:
    world = site.fake.world
    mirror = site.repository
    login = git_login_of(site.settings, site.fake.url)
    source = RepoSource.of(site.fake.url, site.settings.http, login)
    world.may_push = False
    with pytest.raises(Failure, match="403; give its token the right") as refused:
        await source.push(mirror, COMMITS[1], BRANCH, None)
    assert refused.value.code == "authentication"
    world.may_push = True
    await source.push(mirror, COMMITS[1], BRANCH, None)
    assert world.head(BRANCH) == COMMITS[1]
    world.token = "another"
    if isinstance(site.fake, FakeGitHubApp):
        site.fake.tokens.clear()
    with pytest.raises(Failure) as refused:
        await source.push(mirror, COMMITS[2], BRANCH, COMMITS[1])
    assert (refused.value.code, classify(refused.value)) == ("authentication", E.PERMANENT)
    assert "check the token of its table in [forges]" in str(refused.value)
    assert "" not in world.git_logins, "the first request has the token"


ARGUMENTS = """#!/bin/sh
printf '%s\\n' "$@" >> {log}
exec {git} "$@"
"""


async def test_the_token_is_in_no_argument_url_or_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only in the environment of commands that connect."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git"
    log = tmp_path / "arguments"
    path = os.environ["PATH"]
    real = next(
        Path(folder, "git") for folder in path.split(os.pathsep) if Path(folder, "git").exists()
    )
    async with forge_harness("github", tmp_path, monkeypatch) as site:
        program.write_text(ARGUMENTS.format(log=log, git=real))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{path}")
        workspace = await site.workspace()
        (workspace.path / "a.txt").write_text("two\n")
        await workspace.publish(await workspace.snapshot("work"))
        token = site.fake.world.token
        assert repr(await site.forge.git_login()) == "GitLogin(user='x-access-token', token='***')"
    assert "push" in log.read_text()
    assert token not in log.read_text()
    files = [item for item in (tmp_path / "data").rglob("*") if item.is_file()]
    assert len(files) > 10
    assert not [item for item in files if token.encode() in item.read_bytes()]
    assert git("remote", cwd=workspace.path) == ""


async def test_a_repository_without_drafts_gets_a_marked_title(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with forge_harness("github", tmp_path, monkeypatch) as site:
        site.fake.world.has_drafts = False
        opened = await site.open(site.push(), draft=True)
        assert opened.pull.title == "[Draft] Count to two"


async def test_a_token_of_an_app_is_renewed_before_it_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with forge_harness("github app", tmp_path, monkeypatch) as site:
        assert isinstance(site.fake, FakeGitHubApp)
        first = await site.forge.git_login()
        assert (await site.forge.git_login()).token == first.token
        monkeypatch.setattr("draftsman_bots.forge_kinds.github_app.RENEW", 4000)
        assert (await site.forge.git_login()).token != first.token
        assert isinstance(site.fake, FakeGitHub)
        assert site.fake.operations().count("token") == 2
        monkeypatch.setenv("FORGE_KEY", "no key")
        with pytest.raises(Failure, match="private_key is not an RSA key in PEM form"):
            await site.forge.git_login()
