"""The policy of a repository: `policy test`, and its enforcement before work is published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from draftsman.agent_runs.evidence.statement import parse_envelope, parse_payload
from draftsman.agent_runs.policy_check import REQUIRED
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.repos.repo_profile import profile
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.agent_runs.profiled_jobs import WRITE, profiled_job
from tests.core.worker.agent_jobs import agent_worker, git
from tests.core.worker.workers import wait_for_end, wait_for_question
from tests.tui.cli.cli_runner import Cli

S = Status
SECRET = "AKIA" + "QWERTYUIOPASDFG2"
LEAKS = f"""{WRITE}
write({{"src/key.py": "key = " + "AKIA" + {SECRET[4:]!r} + "\\n"}})
say("result", summary="done")
"""
OWNERS = "*  @acme/all\n/.github/  ci@example.org\n/src/ @stranger\n"
CODEOWNERS = {"ci@example.org": "carol", "@acme/all": "leads", "@mallory": "dave"}
POLICY: dict[str, Any] = {"owners": "codeowners", "paths": [{"path": "src/", "effect": "ask"}]}
CHANGES = f"""{WRITE}
number = start["iteration"]
write({{
    "src/a.py": f"x = {{number}}\\n",
    ".github/workflows/ci.yml": "jobs: {{}}\\n",
    "CODEOWNERS": "* @mallory\\n",
    ".github/CODEOWNERS": "* @mallory\\n",
}})
say("result", summary="done")
"""


def published(repo: Path) -> str:
    return git("branch", "--list", "draftsman/*", cwd=repo)


async def approve(rt: Runtime, number: int, ordinal: int, actor: Actor) -> str:
    """Approve, and return the reason of a refusal."""
    response = Response(source_event_id=f"{ordinal}:{actor.id}", decision=Decision.APPROVE)
    return (await rt.questions.answer(number, ordinal, response, actor)).reason or ""


async def test_denied_work_fails_with_its_rules_and_keeps_its_patch(
    cli: Cli, rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """The repository is unknown, so the policy of the configuration counts."""
    number, repo = await profiled_job(rt, make, tmp_path / "repo", {})
    await rt.repos.remove((await rt.repos.place(str(repo))).repo, make.owner)
    async with agent_worker(rt, tmp_path / "worker", LEAKS):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class, published(repo)) == (S.FAILED, "PERMANENT", "")
    assert (job.last_error or "").startswith(
        "not published: It adds secrets: src/key.py:1 (AWS Access Key); denied by secrets; revoke"
    )
    events = str([event.payload for event in await rt.read_model.job_events(number)])
    assert SECRET not in f"{job.last_error} {events}"

    tested = await cli("policy", "test", f"D-{number}", "--json")
    assert tested.code == 1
    for words in ("deny", "secrets", "src/key.py:1 (AWS Access Key)"):
        assert words in (await cli("policy", "test", number)).out
    git("checkout", "-qb", "mine", cwd=repo)
    (repo / "LICENSE").write_text("mine\n")
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "third", cwd=repo)
    mine = (await cli("policy", "test", "mine", "-C", repo, "--json")).json
    assert (mine["denied"], mine["base"]) == (False, git("rev-parse", "main", cwd=repo))
    assert [(item["rule"], item["path"]) for item in mine["findings"]] == [("licenses", "LICENSE")]
    assert " of the configuration\n" in (await cli("policy", "test", "mine", "-C", repo)).out
    (await cli("policy", "test", "nothing", "-C", repo)).refused(2, "no such branch")
    (await cli("policy", "test", "mine", "-C", repo, "--base", "x")).refused(2, "use --base REF")
    assert "secrets              deny\n" in (await cli("policy", "show")).out


async def test_an_approval_is_valid_for_its_diff_and_policy_and_given_by_code_owners(
    cli: Cli, rt: Runtime, make: Factory, tmp_path: Path, people: People
) -> None:
    files = {"CODEOWNERS": OWNERS}
    number, repo = await profiled_job(rt, make, tmp_path / "repo", files, policy=POLICY)
    location = await rt.repos.place(str(repo))
    settings = rt.settings.model_copy(update={"codeowners": CODEOWNERS})
    worker = replace(rt, settings=settings)

    async def question_after_run(ordinal: int) -> str:
        async with agent_worker(worker, tmp_path / "worker", CHANGES):
            await wait_for_question(rt, number, ordinal)
        assert published(repo) == ""
        assert (await rt.questions.get(number, ordinal)).status == "open"
        return (await rt.questions.get(number, ordinal)).text

    text = (
        f"Publish draftsman/D-{number}? {REQUIRED}."
        " It changes protected paths: src/a.py (rule src/)."
        " It changes the configuration of CI or code owners: .github/CODEOWNERS,"
        " .github/workflows/ci.yml, CODEOWNERS."
        " No code owner may approve src/a.py (@stranger)."
    )
    assert await question_after_run(1) == text
    assert (await rt.questions.get(number, 1)).approvers == ["carol"]
    assert "may not decide this approval; allowed: carol" in await approve(
        rt, number, 1, people.dave
    )
    cli.config.write_text(
        cli.config.read_text()
        + "".join(f"\ncodeowners.{owner!r} = {name!r}" for owner, name in CODEOWNERS.items())
    )
    tested = (await cli("policy", "test", f"D-{number}", "--json")).json
    assert [item["approvers"] for item in tested["findings"]] == [["carol"]] * 4
    assert tested["unmapped"] == ["src/a.py (@stranger)"]
    assert await approve(rt, number, 1, people.carol) == ""

    # a byte of the work changes after the approval
    await rt.messages.send(number, make.owner, "once more")
    assert await question_after_run(2) == text
    assert (await rt.questions.get(number, 1)).status == "superseded"
    since = await cli("diff", f"D-{number}/2", "--since-approval")
    assert "-x = 1\n+x = 2\n" in since.out
    assert "ci.yml" not in since.out
    assert await approve(rt, number, 2, people.carol) == ""

    # the policy changes after the approval
    changed = profile({"policy": POLICY | {"large_file_kb": 5}})
    await rt.repos.save_profile(location.repo, changed, make.owner)
    assert await question_after_run(3) == text
    assert f"since D-{number}/2: no changes, new policy" in (await cli("questions")).out
    assert await approve(rt, number, 3, people.carol) == ""
    async with agent_worker(worker, tmp_path / "worker", CHANGES):
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    assert git("show", f"draftsman/D-{number}:src/a.py", cwd=repo) == "x = 2"
    data = (await rt.checkpoints.read_artifact(number, "evidence.json"))[1]
    made = parse_payload(parse_envelope(data))["predicate"]["policy"]
    shown = (await cli("policy", "show", location.name, "--json")).json
    assert (made["sha256"], shown["own"]) == (shown["sha256"], ["large_file_kb", "owners", "paths"])
    assert [(item["rule"], item["question"]) for item in made["findings"]] == [
        ("paths", f"D-{number}/3"),
        *[("ci", f"D-{number}/3")] * 3,
    ]
