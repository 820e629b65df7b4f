"""Lies of an agent about its tests and checks, and the signed evidence of its work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.evidence.statement import parse_envelope, parse_payload
from draftsman.agent_runs.policy_check import REQUIRED
from draftsman.agent_runs.validation import changed_tests
from draftsman.jobs.job import Status
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.agent_runs.profiled_jobs import WRITE, profiled_job
from tests.core.worker.agent_jobs import agent_worker, git
from tests.core.worker.workers import event_kinds, wait_for_end, wait_for_question

S = Status
EVIDENCE = {"test": ["sh", "{files}"], "files": ["test_*.sh"]}
PROVES = "grep -q fixed code.sh\n"
BASE = {
    "code.sh": "value=3\n",
    "check.sh": "sh tests/test_old.sh && sh count.sh\n",
    "count.sh": ". ./setup.cfg; test $(ls tests | wc -l) -ge $most\n",
    "setup.cfg": "most=3\n",
    "tests/test_old.sh": ". ./code.sh; test $value = 3\n",
    "tests/test_gone.sh": ". ./code.sh; test $value = 3\n",
    "tests/test_skipped.sh": ". ./code.sh; test $value = 3\n",
}
LIES = f"""
{WRITE}
honest = {{"code.sh": "value=4 # fixed\\n", "tests/test_proves.sh": {PROVES!r}}}
lies = {{
    "tests/test_true.sh": "true\\n",                                  # assert True
    "tests/test_empty.sh": "",                                        # no tests
    "tests/test_known.sh": ". ./code.sh; test $value -gt 2\\n",        # passes on the base
    "tests/test_skipped.sh": "exit 0 # skipped\\n",
    "tests/test_red.sh": "false\\n",                                  # claimed without a run
}}
changes = {{
    "tests/test_gone.sh": None,                                       # a deleted test
    "tests/test_old.sh": ". ./code.sh; test $value = 4 && grep -q fixed code.sh\\n",
    "check.sh": "sh tests/test_old.sh || true\\n",
    "setup.cfg": "most=0\\n",                                         # a changed threshold
    ".github/workflows/ci.yml": "jobs: {{}}\\n",                       # an edited CI
    "lib.bin": bytes(range(256)),                                     # a committed binary
}}
if start["iteration"] == 1:
    write(honest | lies | changes)
else:
    for name in lies:
        os.remove(name)
say("usage", input_tokens=10, cost_usd=0.25, model="model-1")
failed = [[item["name"], item["output"].splitlines()] for item in start["failed"]]
say("result", summary="all tests pass", data={{"failed": failed}})
"""


def statement(data: bytes) -> dict[str, Any]:
    """Return the predicate of signed evidence."""
    return dict(parse_payload(parse_envelope(data))["predicate"])


async def test_each_lie_about_tests_and_checks_is_caught(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first iteration has tests that prove nothing; the second, changes for an approval."""
    monkeypatch.setattr(changed_tests, "MAX_RUNS", 1)
    check = {"name": "check", "command": ["sh", "check.sh"]}
    fields = {"validation_commands": [check], "evidence": EVIDENCE}
    number, repo = await profiled_job(rt, make, tmp_path / "repo", BASE, **fields)
    async with agent_worker(rt, tmp_path / "data", LIES):

        async def in_second() -> bool:
            return (await event_kinds(rt, number)).count("iteration_started") == 2

        await until(in_second, "the second iteration")
        await wait_for_question(rt, number)
        question = await rt.questions.get(number, 1)
        response = Response(source_event_id="1", decision=Decision.APPROVE)
        assert (await rt.questions.answer(number, 1, response, make.owner)).accepted
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    result = job.result or {}
    passes = "passes on the base commit too, so it does not prove the change"
    assert result["data"]["failed"] == [
        [
            "evidence",
            [
                "tests/test_red.sh fails on the work, or has no tests",
                f"tests/test_empty.sh {passes}",
                f"tests/test_known.sh {passes}",
                f"tests/test_skipped.sh {passes}",
                f"tests/test_true.sh {passes}",
            ],
        ]
    ]
    checks = ".github/workflows/ci.yml, check.sh, lib.bin, setup.cfg"
    assert question.text == (
        f"Publish draftsman/D-{number}? {REQUIRED}."
        " It changes the configuration of CI or code owners: .github/workflows/ci.yml."
        f" Only with the changes of {checks} does this pass: check."
        " It changes code that decides whether it passes: check.sh."
        " It removes tests: tests/test_gone.sh, tests/test_skipped.sh."
        " It changes tests that fail in their old form: tests/test_gone.sh, tests/test_old.sh,"
        " tests/test_skipped.sh. It adds or changes binary files: lib.bin."
    )
    assert result["check_files"] == checks.split(", ")
    made = statement((await rt.checkpoints.read_artifact(number, "evidence.json"))[1])
    patch = (await rt.changes.patch(number)).sha256  # type: ignore[union-attr]
    assert (made["job"], made["patch_sha256"]) == (job.name, patch)
    assert made["head"] == git("rev-parse", f"draftsman/D-{number}", cwd=repo)
    assert made["base"] == git("rev-parse", "main", cwd=repo)
    outcomes = {(run["file"], run["on"]): run["outcome"] for run in made["tests"]["runs"]}
    assert outcomes["tests/test_proves.sh", "work"] == "passed"
    assert outcomes["tests/test_proves.sh", "base"] == "failed"
    assert [(item["name"], item["exit_code"]) for item in made["commands"]] == [
        ("check", 0),
        ("evidence", 0),
        ("check", 1),
    ]
    [decision] = made["decisions"]
    assert (decision["outcome"], decision["by"]) == ("approved", [make.owner.voter])
    assert (decision["patch_sha256"], decision["digest"]) == (patch, question.digest)
    assert (made["agent"]["name"], made["agent"]["models"]) == ("test", ["model-1"])
    assert made["usage"] == {"input_tokens": 20, "cost_usd": 0.5}
    assert made["iterations"] == 2


FLAKY = f"""
{WRITE}
write({{"code.sh": "value=3 # fixed\\n", "tests/test_flaky.sh": {PROVES!r} + '''
n=$(cat "$HOME/n" 2>/dev/null || echo 0); echo $((n + 1)) > "$HOME/n"; test $n -gt 0
'''}})
say("result", summary="fixed")
"""


async def test_a_flaky_test_is_run_again_and_named(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    number, _ = await profiled_job(rt, make, tmp_path / "repo", BASE, evidence=EVIDENCE)
    async with agent_worker(rt, tmp_path / "data", FLAKY):
        await wait_for_question(rt, number)
        text = (await rt.questions.get(number, 1)).text
    assert text == f"Publish draftsman/D-{number}? Its tests are flaky: tests/test_flaky.sh."
    events = await rt.read_model.job_events(number, limit=500)
    ran = [event.payload for event in events if event.kind == "validation_ran"]
    assert [(run["on"], run["exit_codes"]) for run in ran] == [("work", [1, 0]), ("base", [1])]


async def test_the_private_key_is_in_a_file_of_the_worker_only(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """It is neither in the database nor in an artifact, and a file that others read is refused."""
    code = 'open("a.txt", "w").write("x")\nsay("result", summary="did it")'
    number, _ = await profiled_job(rt, make, tmp_path / "repo", {})
    async with agent_worker(rt, tmp_path / "data", code):
        assert (await wait_for_end(rt, number)).status is S.COMPLETED
        key = tmp_path / "data" / "keys" / "evidence.key"
        assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        [public] = key.parent.glob("*.pub")
        stored = (await rt.checkpoints.read_artifact(number, "evidence.json"))[1]
        assert public.stem == json.loads(stored)["signatures"][0]["keyid"][:16]
        secret = key.read_text().splitlines()[1].encode()
        assert secret not in stored
    key.chmod(0o640)
    refused, _ = await profiled_job(rt, make, tmp_path / "other", {})
    async with agent_worker(rt, tmp_path / "data", code):
        job = await wait_for_end(rt, refused)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert (job.last_error or "").endswith(f"(0640); run: chmod 600 {key}")


COVERS = f"""
{WRITE}
write({{"code.sh": "value=3 # fixed\\nmore=4\\n", "tests/test_code.sh": {PROVES!r}}})
if start["iteration"] == 2:
    write({{"covered.txt": "1"}})
failed = [item["output"] for item in start["failed"]]
say("result", summary="fixed", data={{"failed": failed}})
"""
MEASURE = """
hits=$(cat covered.txt 2>/dev/null || echo 0)
printf 'SF:code.sh\\nDA:1,1\\nDA:2,%s\\nend_of_record\\n' $hits > lcov.info
"""


async def test_the_coverage_of_changed_lines_is_measured_and_has_a_minimum(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    coverage = {"command": ["sh", "-c", MEASURE], "minimum": 80}
    files = {"code.sh": "value=3\n", ".gitignore": "lcov.info\n"}
    evidence = EVIDENCE | {"coverage": coverage}
    # the command names it in the report that it writes
    fields = {"evidence": evidence, "ordinary_files": ["code.sh"]}
    number, _ = await profiled_job(rt, make, tmp_path / "repo", files, **fields)
    async with agent_worker(rt, tmp_path / "data", COVERS):
        job = await wait_for_end(rt, number)
    text = "code.sh: not covered: 2\n1 of 2 changed lines are covered (50 %); the minimum is 80 %"
    assert (job.status, (job.result or {})["data"]) == (S.COMPLETED, {"failed": [text]})
    made = statement((await rt.checkpoints.read_artifact(number, "evidence.json"))[1])
    assert made["tests"]["coverage"] == {
        "covered": 2,
        "measured": 2,
        "files": [{"path": "code.sh", "covered": 2, "uncovered": []}],
    }


PYTHON = f"""
{WRITE}
head = "from unittest import TestCase, skip\\nfrom pay import total\\n\\nclass Test(TestCase):\\n"
proves = head + "    def test_half(self):\\n        self.assertEqual(total(2.5), 3)\\n"
lies = {{
    "tests/test_skipped.py": head + "    @skip('later')\\n    def test_x(self):\\n        1 / 0\\n",
    "tests/test_true.py": head + "    def test_it(self):\\n        assert True\\n",
}}
if start["iteration"] == 1:
    code = "def total(x):\\n    return int(x + 0.5)\\n"
    write({{"pay.py": code, "tests/test_half.py": proves}} | lies)
else:
    write(dict.fromkeys(lies))
failed = [item["output"].splitlines() for item in start["failed"]]
say("result", summary="all tests pass", data={{"failed": failed}})
"""


@pytest.mark.slow(fast="test_each_lie_about_tests_and_checks_is_caught")
async def test_lies_in_tests_of_unittest_are_caught(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    evidence = {"test": ["{python}", "-B", "-m", "unittest", "{files}"]}
    files = {"pay.py": "def total(x):\n    return round(x)\n"}
    number, _ = await profiled_job(rt, make, tmp_path / "repo", files, evidence=evidence)
    async with agent_worker(rt, tmp_path / "data", PYTHON):
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    passes = "passes on the base commit too, so it does not prove the change"
    named = [f"tests/test_{name}.py {passes}" for name in ("skipped", "true")]
    assert (job.result or {})["data"]["failed"] == [named]
    made = statement((await rt.checkpoints.read_artifact(number, "evidence.json"))[1])
    runs = [(run["file"], run["on"], run["outcome"]) for run in made["tests"]["runs"]]
    half = "tests/test_half.py"
    assert runs == [(half, "work", "passed"), (half, "base", "failed")]
