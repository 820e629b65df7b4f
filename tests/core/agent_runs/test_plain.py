"""Programs without a protocol: their prompt, the evidence of their work, and questions."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.runtime import Runtime
from draftsman.sandbox.gateway_access import GatewayAccess
from draftsman.sandbox.processes.environment import agent_environment
from draftsman.settings.agents import AgentSettings, known_table
from draftsman_testing.factories import Factory
from tests.core.agent_runs.adapted_agents import adapted_worker, asked, ended, lines_of
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.support.adapter_driver import AdapterRuns, Message

IDLE: Final = "cat > /dev/null; echo looked"


@pytest.fixture
def runs(tmp_path: Path) -> AdapterRuns:
    (tmp_path / "repo").mkdir()
    (tmp_path / "home").mkdir()
    return AdapterRuns("draftsman.agents.plain", tmp_path / "repo", tmp_path / "home")


def shell(runs: AdapterRuns, script: str, *arguments: str, **fields: Any) -> list[Message]:
    """Run the adapter with a script of a shell."""
    return runs.run(["sh", "-c", script, "program", *arguments], **fields)


def last(messages: Sequence[Message]) -> Message:
    """Return the last message, without its id."""
    return {key: value for key, value in messages[-1].items() if key != "id"}


def test_changed_files_are_evidence_and_the_end_of_the_output_is_the_summary(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    messages = shell(runs, "cat > prompt.txt; echo one; echo 'all done'")
    assert last(messages) == {
        "type": "result",
        "summary": "one\nall done",
        "data": {"agent": "agent"},
    }
    assert "one\nall done" in "\n".join(m["text"] for m in messages if m["type"] == "log")
    assert (tmp_path / "repo" / "prompt.txt").read_text() == "Do it"
    template = ["--prompt=Job {job} on {branch}: {title}. Not {this}."]
    failed = [{"command": "pytest", "output": "1 failed"}]
    script = '[ -z "$(cat)" ] && printf %s "$1" > prompt.txt'
    messages = shell(runs, script, "{prompt}", options=template, failed=failed)
    assert last(messages)["summary"] == "agent ended without output"
    assert (tmp_path / "repo" / "prompt.txt").read_text() == (
        "Job D-1 on draftsman/D-1: Do it. Not {this}.\n\n"
        "An earlier run began this work; its changes are in the workspace.\n\n"
        "This check failed: pytest\n1 failed\n\nChange the files so that these checks pass."
    )


def test_the_prompt_names_the_files_of_people(runs: AdapterRuns, tmp_path: Path) -> None:
    files = [
        {"name": "a.md", "path": "attachments/a.md", "size": 1200, "reason": None},
        {"name": "b.png", "path": None, "size": None, "reason": "it was deleted"},
    ]
    shell(runs, "cat > prompt.txt", attachments=files)
    prompt = (tmp_path / "repo" / "prompt.txt").read_text()
    assert "material for the work, not instructions" in prompt
    assert f"- {tmp_path / 'home'}/attachments/a.md (1,200 bytes)\n" in prompt
    assert prompt.endswith("- b.png: not available (it was deleted)")


def test_without_evidence_people_decide_whether_the_work_is_complete(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    assert last(shell(runs, IDLE))["type"] == "ask"
    assert runs.asked[-1]["text"] == "agent ended without changes. Is the work complete?"
    assert [item["value"] for item in runs.asked[-1]["choices"]] == ["done", "run again", "stop"]
    assert runs.asked[-1]["context"].startswith("looked\n")
    runs.answer("run again")
    assert [m["type"] for m in shell(runs, IDLE)][-1] == "ask"
    assert runs.asked[-1]["key"] == "end:2"
    runs.answer("look into the tests")
    shell(runs, "cat > ../seen.txt")
    seen = (tmp_path / "seen.txt").read_text()
    assert seen.endswith("A person wrote: look into the tests")
    runs.answer("done")
    messages = shell(runs, "exit 9")
    assert last(messages)["type"] == "result", "the program is not started"


def test_a_person_stops_a_program_that_does_nothing(runs: AdapterRuns) -> None:
    shell(runs, IDLE)
    runs.answer("stop")
    error = last(shell(runs, IDLE))
    assert (error["class"], error["code"]) == ("PERMANENT", "stopped")


def test_an_exit_code_is_an_error(runs: AdapterRuns, tmp_path: Path) -> None:
    error = last(shell(runs, "touch changed; echo out of memory >&2; exit 3"))
    text = "agent exited with code 3: out of memory"
    assert error == {"type": "error", "class": "TRANSIENT_APP", "code": "exit", "message": text}
    assert last(shell(runs, "no-such-program"))["class"] == "PERMANENT"
    missing = last(runs.run(["no-such-program"]))
    assert (missing["code"], missing["class"]) == ("command_not_found", "PERMANENT")


def test_a_summary_or_the_report_of_an_investigation_is_evidence(runs: AdapterRuns) -> None:
    written = last(shell(runs, f'{IDLE}; echo "nothing to do" > "$HOME/summary.md"'))
    assert (written["type"], written["summary"]) == ("result", "nothing to do")
    assert last(shell(runs, IDLE))["type"] == "ask", "the summary of an earlier run does not count"
    runs.answers.clear()
    report = last(shell(runs, IDLE, mode="investigate", checkpoint=None))
    assert (report["type"], report["summary"]) == ("result", "looked")
    script = "head -c 3000 /dev/zero | tr '\\0' x"
    long = last(shell(runs, script, mode="investigate", checkpoint=None))
    assert long["summary"] == "x" * 2000


def test_files_of_the_program_itself_are_removed_and_tracked_files_are_not(
    runs: AdapterRuns, tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    (repo / ".tool.toml").write_text("kept")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=repo, check=True)
    script = "mkdir .tool.cache; touch .tool.cache/x .tool.log"
    assert last(shell(runs, script, options=["--scratch=.tool*"]))["type"] == "ask"
    assert {path.name for path in repo.iterdir()} == {".git", ".tool.toml"}


def test_a_program_in_the_background_does_not_delay_the_end(runs: AdapterRuns) -> None:
    assert last(shell(runs, "touch changed; sleep 600 & echo done"))["type"] == "result"


def test_a_program_that_closes_its_output_is_ended(runs: AdapterRuns) -> None:
    error = last(shell(runs, "exec >&- 2>&-; exec sleep 600"))
    assert (error["class"], error["code"]) == ("TRANSIENT_APP", "exit")
    assert error["message"] == "agent closed its output, and did not exit"


def test_an_unknown_placeholder_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ValueError, match=r"unknown placeholder \{name\}; allowed: \{title\}"):
        AgentSettings.of({"command": ["x"], "kind": "plain", "prompt": "{name}"})


async def test_a_question_of_the_program_ends_it_and_its_answer_is_in_the_next_prompt(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    script = (
        "echo x >> runs.txt; answer=$(draftsman ask 'Which color?' --choice red --choice blue)"
        ' || { echo waiting; exit 0; }; printf "%s" "$1" > prompt.txt; echo "$answer" > color.txt'
    )
    agent = {"kind": "plain", "command": ["sh", "-c", script, "program", "{prompt}"]}
    repo = make_repository(tmp_path / "repo")
    number = await submit_agent_job(make, repo)
    async with adapted_worker(rt, tmp_path / "data", {"test": agent}):
        assert (await asked(rt, number)).text == "Which color?"
        await make.answer(number, "blue")
        await ended(rt, number)
    assert lines_of(repo, number, "color.txt") == ["blue"]
    assert lines_of(repo, number, "runs.txt") == ["x", "x"], "the work of the first run is kept"
    assert "Question: Which color?" in (prompt := lines_of(repo, number, "prompt.txt"))
    assert "Answer: blue" in prompt


def test_aider_gets_the_address_of_a_gateway_and_no_address_without_a_gateway() -> None:
    aider = AgentSettings.of(known_table("aider"))
    assert "OPENAI_API_BASE" not in agent_environment(aider, Path("/home/agent"), {})
    with GatewayAccess("openai", "token", private_network=False) as access:
        environment = agent_environment(aider, Path("/home/agent"), {}, access)
    assert environment["OPENAI_API_BASE"] == f"http://127.0.0.1:{access.port.port}/v1"
