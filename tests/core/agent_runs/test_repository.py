"""Resolution of a job's repository, and setup and validation by its profile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from draftsman.jobs.job import Job, Status
from draftsman.questions.question import Question
from draftsman.questions.response import Response
from draftsman.repos.repo_catalog import Repo, RepoLocation
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.agent_jobs import agent_worker, git, make_repository, submit_agent_job
from tests.core.worker.workers import last_event, wait_for_end, wait_for_question

S = Status
NONE = profile({})
WORK = """
open("a.txt", "a").write("two\\n")
say("result", summary="did it", data={"env": os.environ.get("MODE"), "start": start})
"""


async def known(
    rt: Runtime, make: Factory, path: Path, fields: dict[str, Any] | None = None
) -> Repo:
    repo = Repo.at(parse(str(make_repository(path))))
    return await rt.repos.add(repo, profile(fields or {}), make.owner)


@pytest.fixture
async def pay(rt: Runtime, make: Factory, tmp_path: Path) -> Repo:
    return await known(rt, make, tmp_path / "pay")


@pytest.fixture
async def shop(rt: Runtime, make: Factory, tmp_path: Path) -> Repo:
    return await known(rt, make, tmp_path / "shop")


async def done(rt: Runtime, make: Factory, data: Path, repo: str | None = None, **job: Any) -> Job:
    number = await submit_agent_job(make, repo, **job)
    async with agent_worker(rt, data, WORK):
        return await wait_for_end(rt, number)


async def question_of(rt: Runtime, job: int, ordinal: int = 1) -> Question:
    await wait_for_question(rt, job, ordinal)
    return await rt.questions.get(job, ordinal)


async def answer(rt: Runtime, make: Factory, job: int, question: int, text: str) -> None:
    response = Response(source_event_id=f"{job}/{question}", text=text)
    assert (await rt.questions.answer(job, question, response, make.owner)).accepted


async def test_a_label_or_the_text_selects_the_repository_and_an_event_records_it(
    rt: Runtime, make: Factory, tmp_path: Path, pay: Repo, shop: Repo
) -> None:
    await rt.repos.map(RepoLocation(shop), make.owner, label="Shop")
    job = await done(rt, make, tmp_path / "data", labels=[("L1", "shop")])
    assert (job.status, job.agent_request.repo_owner, job.agent_request.repo_name) == (
        S.COMPLETED,
        None,
        "shop",
    )
    resolved = (await last_event(rt, job.number, "repo_resolved")).payload
    assert (resolved["source"], resolved["method"], resolved["confidence"]) == (
        shop.remote_url,
        "label_name",
        0.9,
    )
    assert git("rev-parse", f"draftsman/{job.name}", cwd=Path(shop.remote_url))
    assert not git("branch", "--list", "draftsman/*", cwd=Path(pay.remote_url))


async def test_an_ambiguous_repository_is_asked_for_once(
    rt: Runtime, make: Factory, tmp_path: Path, pay: Repo, shop: Repo
) -> None:
    number = await submit_agent_job(make, None)
    async with agent_worker(rt, tmp_path / "data", WORK):
        question = await question_of(rt, number)
        assert (question.text, question.labels()) == (
            "Which repository is this job for?",
            ["pay", "shop"],
        )
        await rt.repos.remove(pay, make.owner)  # the choices change; the answer stays valid
        await answer(rt, make, number, 1, "shop")
        job = await wait_for_end(rt, number)
    assert (job.status, job.agent_request.repo_name) == (S.COMPLETED, "shop")
    resolved = (await last_event(rt, number, "repo_resolved")).payload
    assert (resolved["method"], resolved["confidence"], resolved["name"]) == ("asked", 1.0, "shop")
    start = (job.result or {})["data"]["start"]
    assert (start["answers"], start["steps"]) == ({}, {}), "it is not passed to the agent"


async def test_the_run_records_the_agent_of_a_request_without_one(
    rt: Runtime, make: Factory, tmp_path: Path, pay: Repo
) -> None:
    await rt.repos.save_profile(pay, profile({"agent": "test"}), make.owner)
    await rt.repos.set_default(pay, make.owner)
    job = await done(rt, make, tmp_path / "data", agent=None)
    assert (job.status, job.agent_request.agent) == (S.COMPLETED, "test")


async def test_an_answer_without_a_known_repository_is_asked_for_again(
    rt: Runtime, make: Factory, tmp_path: Path, pay: Repo, shop: Repo
) -> None:
    number = await submit_agent_job(make, None)
    answers = ["the usual one", "https://t0ken@github.com/acme/x", str(tmp_path), "pay"]
    starts = [
        "",
        "Unknown repository 'the usual one'",
        "A repository URL is stored",
        "An answer cannot be",
    ]
    async with agent_worker(rt, tmp_path / "data", WORK):
        for ordinal, (text, start) in enumerate(zip(answers, starts, strict=True), 1):
            question = await question_of(rt, number, ordinal)
            assert question.text.startswith(start)
            assert question.text.endswith("Which repository is this job for?")
            assert "t0ken" not in question.text
            await answer(rt, make, number, ordinal, text)
        job = await wait_for_end(rt, number)
    assert (job.status, job.agent_request.repo_name) == (S.COMPLETED, "pay")


async def test_a_resolved_repository_does_not_change_between_runs(
    rt: Runtime, make: Factory, tmp_path: Path, pay: Repo, shop: Repo
) -> None:
    await rt.repos.set_default(pay, make.owner)
    number = await submit_agent_job(make, None)
    code = f'parked(ask("go"))\n{WORK}'
    async with agent_worker(rt, tmp_path / "data", code):
        await wait_for_question(rt, number)
        await rt.repos.set_default(shop, make.owner)
        await answer(rt, make, number, 1, "red")
        job = await wait_for_end(rt, number)
    assert (job.result or {})["data"]["start"]["repo"] == pay.remote_url


async def test_without_a_registered_repository_no_question_is_asked(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    job = await done(rt, make, tmp_path / "data", labels=[("L1", "shop")])
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert (job.last_error or "").endswith("to register a repository: draftsman repos add PATH|URL")


PROFILE = {
    "agent": "test",
    "env": {"MODE": "ci"},
    "max_files_changed": 3,
    "default_skills": ["python", "money"],
    "setup_commands": [{"name": "prepare", "command": ["test", "-f", "a.txt"]}],
    "validation_commands": [
        {"name": "two", "command": ["grep", "-q", "two", "a.txt"]},
        {
            "name": "mode",
            "command": ["sh", "-c", 'echo "$MODE" > made-by-validation; exit 3'],
            "required": False,
        },
        {"name": "style", "command": ["no-such-program"], "required": False},
        {"name": "slow", "command": ["sleep", "600"], "timeout": 0.2, "required": False},
    ],
}


async def test_a_profile_gives_the_defaults_and_validates_the_work(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    repo = await known(rt, make, tmp_path / "pay", PROFILE)
    skills = {"skills": ["sql", "python"]}
    job = await done(rt, make, tmp_path / "data", repo=repo.remote_url, agent=None, **skills)
    result = job.result or {}
    assert (job.status, result["data"]["env"]) == (S.COMPLETED, "ci")
    assert result["data"]["start"]["profile"]["skills"] == ["sql", "python", "money"]
    limits = result["data"]["start"]["limits"]
    assert (limits["max_files_changed"], limits["network"]) == (3, False)  # the agent has none
    checks = [(item["name"], item["passed"], item["exit_code"]) for item in result["validation"]]
    assert checks == [
        ("two", True, 0),
        ("mode", False, 3),
        ("style", False, 127),
        ("slow", False, None),
    ]
    assert (result["validated"], result["summary"]) == (True, "did it")
    assert (result["data"]["start"]["iteration"], result["data"]["start"]["failed"]) == (1, [])
    kinds = [event.kind for event in await rt.read_model.job_events(job.number)]
    assert (kinds.count("validation_ran"), kinds.count("command_executed")) == (4, 2)
    branch = str(result["branch"])
    folder = Path(repo.remote_url)
    files = git("ls-tree", "--name-only", branch, cwd=folder).split()
    assert files == ["a.txt"], "files of the validation are not the agent's work"


async def test_the_default_agent_is_used_without_an_agent_of_request_or_repository(
    rt: Runtime, make: Factory, tmp_path: Path, pay: Repo
) -> None:
    settings = rt.settings.model_copy(update={"default_agent": "test"})
    job = await done(replace(rt, settings=settings), make, tmp_path, pay.remote_url, agent=None)
    assert (job.status, (job.result or {})["summary"]) == (S.COMPLETED, "did it")


async def test_a_profile_without_validators_keeps_those_of_the_configuration(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    fix = {"name": "own", "command": ["true"]}
    repo = await known(rt, make, tmp_path / "pay", {"fix_commands": [fix]})
    job = await done(rt, make, tmp_path / "data", repo=repo.remote_url)
    profile = (job.result or {})["data"]["start"]["profile"]
    assert [command["name"] for command in profile["validation_commands"]] == ["lint", "format"]
    assert [command["name"] for command in profile["fix_commands"]] == ["own"]


async def test_validators_that_are_not_installed_do_not_pass(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    style = {"name": "style", "command": ["no-such-program"], "required": False}
    repo = await known(rt, make, tmp_path / "pay", {"validation_commands": [style]})
    job = await done(rt, make, tmp_path / "data", repo=repo.remote_url)
    result = job.result or {}
    assert (result["validated"], result["summary"]) == (
        False,
        "did it; no validators ran: install style on the workers",
    )


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ({"command": ["no-such-program"]}, "program 'no-such-program' not found"),
        (
            {"command": ["sh", "-c", "echo x.toml: bad key; exit 9"], "error_exits": [9]},
            "could not run (exit 9): x.toml: bad key",
        ),
    ],
    ids=["missing", "invalid configuration"],
)
async def test_a_failed_setup_prevents_the_start_of_the_agent(
    rt: Runtime, make: Factory, tmp_path: Path, command: dict[str, Any], reason: str
) -> None:
    fields = {"setup_commands": [{"name": "install", **command}]}
    repo = await known(rt, make, tmp_path / "pay", fields)
    job = await done(rt, make, tmp_path / "data", repo=repo.remote_url)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert (job.last_error or "").startswith(f"setup command 'install' failed: {reason}")


async def test_a_folder_of_a_monorepo_has_its_own_profile(
    rt: Runtime, make: Factory, tmp_path: Path, pay: Repo
) -> None:
    top = Path(pay.remote_url)
    (top / "api").mkdir()
    (top / "api" / "here").write_text("x")
    git("add", "-A", cwd=top)
    git("commit", "-qm", "api", cwd=top)
    part = profile(
        {"path": "api", "validation_commands": [{"name": "in", "command": ["test", "-f", "here"]}]}
    )
    await rt.repos.save_profile(pay, part, make.owner)
    await rt.repos.map(RepoLocation(pay, "api"), make.owner, label_id="L1")
    job = await done(rt, make, tmp_path / "data", labels=[("L1", "")])
    assert (job.result or {})["validated"] is True
    assert (job.result or {})["data"]["start"]["profile"]["path"] == "api"
    assert (await last_event(rt, job.number, "repo_resolved")).payload["path"] == "api"
