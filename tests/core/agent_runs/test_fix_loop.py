"""Validation of an agent's work by draftsman, and the end of its iterations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.completion import WorkCompletion
from draftsman.agent_runs.evidence.statement import parse_envelope, parse_payload
from draftsman.deliveries.result_text import change_summary
from draftsman.errors import Failure
from draftsman.events.event import Event
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.repos.repo_profile import profile
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.agent_runs.profiled_jobs import WRITE, profiled_job
from tests.core.worker.agent_jobs import agent_worker, git
from tests.core.worker.workers import event_kinds, wait_for_end, wait_for_question, wait_for_status

S = Status
TWO = {"name": "tests", "command": ["grep", "-c", "two", "a.txt"]}
FAILS = 'open("a.txt", "a").write("no\\n")\nsay("result", summary="did it")'
FOURTH = """
say("usage", cost_usd=0.5, input_tokens=7)
open("a.txt", "a").write("two\\n" if start["iteration"] == 4 else "no\\n")
data = (start["failed"] or [{}])[0]
say("result", summary=f"iteration {start['iteration']}", data=data)
"""


async def finished(rt: Runtime, number: int) -> list[Event]:
    events = await rt.read_model.job_events(number, limit=500)
    return [event for event in events if event.kind == "iteration_finished"]


async def test_people_decide_after_the_last_iteration(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """To go on allows as many iterations again; a draft is published; a stop is a failure."""
    fields = {"validation_commands": [TWO], "max_iterations": 2}
    number, repo = await profiled_job(rt, make, tmp_path / "repo", {}, **fields)
    branch = f"draftsman/D-{number}"
    async with agent_worker(rt, tmp_path / "data", FOURTH):
        await wait_for_question(rt, number)
        question = await rt.questions.get(number, 1)
        assert question.text == (
            f"Required validators fail on {branch}: tests: 0; 2 iterations."
            " Go on, hand over as a draft, or stop?"
        )
        assert question.values() == ["go on", "draft", "stop"]
        assert question.context_snippet == "$ grep -c two a.txt\n0"
        assert (question.default_value, question.patch_sha256 is None) == ("stop", False)
        assert git("branch", "--list", branch, cwd=repo) == ""
        await make.answer(number, "go on")
        job = await wait_for_end(rt, number)
    result = job.result or {}
    assert (job.status, job.run_count, result["summary"]) == (S.COMPLETED, 2, "iteration 4")
    assert (result["data"]["exit_code"], result["data"]["output"]) == (1, "0\n")
    usage = {"cost_usd": 0.5, "input_tokens": 7}
    failed = {"outcome": "failed", "failed": ["tests"], "files_changed": 1, "usage": usage}
    assert [event.payload for event in await finished(rt, number)] == [
        *({"iteration": number} | failed for number in (1, 2, 3)),
        {"iteration": 4, "outcome": "passed", "files_changed": 1, "usage": usage},
    ]


async def test_failed_work_is_handed_over_as_a_draft_or_stopped(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    fields = {"validation_commands": [TWO], "max_iterations": 1}
    drafted, repo = await profiled_job(rt, make, tmp_path / "draft", {}, **fields)
    stopped, other = await profiled_job(rt, make, tmp_path / "stop", {}, **fields)
    async with agent_worker(rt, tmp_path / "data", FAILS):
        for number in (drafted, stopped):
            await wait_for_question(rt, number)
        await make.answer(drafted, "draft")
        await make.answer(stopped, "stop")
        job = await wait_for_end(rt, drafted)
        other_job = await wait_for_end(rt, stopped)
    result = job.result or {}
    assert (job.status, result["draft"], result["validated"]) == (S.COMPLETED, True, False)
    assert f"branch {result['branch']} (draft), commit" in change_summary(result)
    assert git("show", f"{result['branch']}:a.txt", cwd=repo) == "one\nno"
    assert (await event_kinds(rt, drafted)).count("validation_ran") == 1, "the tree was the same"
    assert (other_job.status, other_job.error_class) == (S.FAILED, "PERMANENT")
    assert other_job.last_error == (
        "not published, because required validators failed: tests: 0; 1 iteration; stopped by"
        f" {make.owner.voter}; the limit is max_iterations of the repository's profile"
    )
    assert git("branch", "--list", "draftsman/*", cwd=other) == ""
    patch = (await rt.checkpoints.read_artifact(stopped, "changes.patch"))[1]
    assert b"+no" in patch


async def test_an_iteration_that_changes_nothing_is_decided_by_people(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    code = 'open("a.txt", "w").write("no\\n")\nsay("result", summary="did it")'
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {}, validation_commands=[TWO])
    async with agent_worker(rt, tmp_path / "data", code):
        await wait_for_question(rt, number)
        assert "tests: 0; iteration 2 changed nothing." in (await rt.questions.get(number, 1)).text
        await make.answer(number, "stop")
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")


LEAVES = f"""
{WRITE}
write({{"a.txt": "three\\n", "left/ok": "x"}})
open(os.environ["HOME"] + "/ok", "w").write("x")
os.chmod("a.txt", 0o755)
say("result", summary="all tests pass")
"""


async def test_validation_has_only_what_the_commit_has(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """Ignored files and the home of the agent are not there; a word of the agent counts nothing."""
    reads = "ls left $HOME; git status --short; git show --format= --name-only; exit 3"
    fields = {
        "validation_commands": [{"name": "tests", "command": ["sh", "-c", reads]}],
        "max_iterations": 1,
    }
    files = {".gitignore": "left/\n"}
    number, _ = await profiled_job(rt, make, tmp_path / "repo", files, **fields)
    async with agent_worker(rt, tmp_path / "data", LEAVES):
        await wait_for_question(rt, number)
    snippet = (await rt.questions.get(number, 1)).context_snippet or ""
    assert "cannot access 'left'" in snippet
    assert "ok" not in snippet.replace(reads, "")
    assert snippet.endswith("a.txt"), "the work is the commit of the clone"


WEAKENS = f"""
{WRITE}
write({{"check.sh": "exit 0\\n", "a.txt": "four\\n", "conftest.py": "x = 1\\n"}})
say("result", summary="all tests pass")
"""


async def test_work_that_passes_by_its_own_checks_alone_needs_an_approval(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    check = {"name": "tests", "command": ["sh", "check.sh"]}
    files = {"check.sh": "grep -q two a.txt\n"}
    number, _ = await profiled_job(rt, make, tmp_path / "repo", files, validation_commands=[check])
    async with agent_worker(rt, tmp_path / "data", WEAKENS):
        await wait_for_question(rt, number)
        assert (await rt.questions.get(number, 1)).text == (
            f"Publish draftsman/D-{number}? Only with the changes of check.sh, conftest.py does"
            " this pass: tests. It changes code that decides whether it passes: check.sh."
        )
        response = Response(source_event_id="1", decision=Decision.APPROVE)
        assert (await rt.questions.answer(number, 1, response, make.owner)).accepted
        job = await wait_for_end(rt, number)
    result = job.result or {}
    assert (job.status, result["check_files"]) == (S.COMPLETED, ["check.sh", "conftest.py"])
    assert "changes check files check.sh, conftest.py" in change_summary(result)
    [event] = await finished(rt, number)
    assert event.payload["check_files"] == ["check.sh", "conftest.py"]
    assert event.payload["weakened"] == ["tests"]


SETUP = f"""
{WRITE}
write({{"setup.sh": "echo agent > made", "a.txt": "x"}})
say("result", summary="did it")
"""


async def test_setup_with_more_access_than_the_agent_runs_on_the_base(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """The agent has no network: its setup commands could use that of the profile."""
    fields = {
        "setup_commands": [{"name": "setup", "command": ["sh", "setup.sh"]}],
        "validation_commands": [{"name": "tests", "command": ["cat", "made", "a.txt"]}],
    }
    files = {"setup.sh": "echo base > made\n", ".gitignore": "made\n"}
    number, _ = await profiled_job(rt, make, tmp_path / "a", files, **fields)
    offline, _ = await profiled_job(rt, make, tmp_path / "b", files, network=False, **fields)
    async with agent_worker(rt, tmp_path / "data", SETUP):
        for job in (number, offline):
            await wait_for_question(rt, job)
            question = await rt.questions.get(job, 1)
            assert question.text.endswith("code that decides whether it passes: setup.sh.")
            assert (await make.decide(job, True, make.owner)).accepted
            assert (await wait_for_end(rt, job)).status is S.COMPLETED
    outputs = []
    for job in (number, offline):
        events = await rt.read_model.job_events(job, limit=500)
        ran = [event.payload for event in events if event.kind == "validation_ran"]
        outputs.append([payload["output"] for payload in ran])
        assert [payload.get("check_files") for payload in ran] == [None, "base"]
    assert outputs == [["base\nx", "base\nx"], ["agent\nx", "base\nx"]]


AGAIN = f"""
{WRITE}
home = os.path.join(os.environ["HOME"], "state")
seen = [open(path).read() for path in ("setup.sh", "made", home) if os.path.exists(path)]
os.remove(home)
write({{"setup.sh": "echo agent > made", "a.txt": "two" * (start["iteration"] - 1), home: "mine"}})
say("checkpoint", id="1", data=None, home=["state"]); hear()
say("result", summary="|".join(seen))
"""


async def test_setup_with_more_access_does_not_see_the_earlier_work_of_the_agent(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    fields = {
        "setup_commands": [{"name": "setup", "command": ["sh", "setup.sh"]}],
        "validation_commands": [TWO],
    }
    # a link of the home must not lead the worker out of it
    script = "cat $HOME/state; ln -s $PWD/made $HOME/state; echo base > made"
    files = {"setup.sh": script, ".gitignore": "made\n"}
    number, _ = await profiled_job(rt, make, tmp_path / "repo", files, **fields)
    async with agent_worker(rt, tmp_path / "data", AGAIN):
        await wait_for_question(rt, number)
        assert (await make.decide(number, True, make.owner)).accepted
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    assert (job.result or {})["summary"] == "echo agent > made|base\n|mine"
    events = await rt.read_model.job_events(number, limit=500)
    ran = [event.payload["output"] for event in events if event.kind == "command_executed"]
    assert [text for text in ran if "No such file" not in text] == [], "the home is empty"


async def test_a_run_that_dies_after_it_published_reports_the_published_work(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = WorkCompletion._to_done
    died = list[int]()

    async def die_once(self: WorkCompletion, result: dict[str, Any]) -> Done:
        if not died:
            died.append(self.run.job.run)
            raise Failure("the host is gone", origin="handler", declared="TRANSIENT_INFRA")
        return await finish(self, result)

    monkeypatch.setattr(WorkCompletion, "_to_done", die_once)
    code = 'open("a.txt", "w").write(str(start["run"]))\nsay("result", summary=f"{start[\'run\']}")'
    number, repo = await profiled_job(rt, make, tmp_path / "repo", {}, validation_commands=[])
    async with agent_worker(rt, tmp_path / "data", code):
        await wait_for_status(rt, number, S.RETRYING)
    await make.due(number)
    async with agent_worker(rt, tmp_path / "data", code):
        job = await wait_for_end(rt, number)
    result = job.result or {}
    assert (job.status, job.run_count, result["summary"]) == (S.COMPLETED, 2, "1"), job.last_error
    assert git("rev-parse", result["branch"], cwd=repo) == result["commit"]
    assert git("show", f"{result['branch']}:a.txt", cwd=repo) == "1"
    _, evidence = await rt.checkpoints.read_artifact(number, "evidence.json")
    assert parse_payload(parse_envelope(evidence))["predicate"]["head"] == result["commit"]


async def test_a_validation_that_was_interrupted_continues_without_the_agent(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """The work is stored before it is validated: its tokens are paid once."""
    slow = {"validation_commands": [{"name": "tests", "command": ["sleep", "600"]}]}
    code = 'open("a.txt", "w").write("x")\nsay("result", summary=f"run {start[\'run\']}")'
    number, repo = await profiled_job(rt, make, tmp_path / "repo", {}, **slow)

    async def validates() -> bool:
        steps = await rt.checkpoints.steps(number)
        return any(step.key.startswith("agent:validation:") for step in steps)

    async with agent_worker(rt, tmp_path / "data", code):
        await until(validates, "a validation")
    known = await rt.repos.known(str(repo))
    assert known is not None
    quick = {"validation_commands": [{"name": "tests", "command": ["true"]}]}
    await rt.repos.save_profile(known, profile(quick), make.owner)
    async with agent_worker(rt, tmp_path / "data", code):
        job = await wait_for_end(rt, number)
    assert (job.status, job.run_count) == (S.COMPLETED, 2), job.last_error
    assert (job.result or {})["summary"] == "run 1"
    kinds = await event_kinds(rt, number)
    assert (kinds.count("iteration_started"), kinds.count("iteration_finished")) == (1, 1)
