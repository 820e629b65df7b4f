"""Agents that are kept running for the answer to their question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draftsman.jobs.job import Job, Status
from draftsman.runtime import Runtime
from draftsman.tracing.open_telemetry.export import exporting
from draftsman_testing.factories import Factory
from draftsman_testing.trace_receiver import receiving_traces
from tests.core.agent_runs.test_run_socket import PROGRAM
from tests.core.worker.agent_jobs import agent_worker, make_repository, submit_agent_job
from tests.core.worker.workers import event_kinds, wait_for_end, wait_for_question, wait_for_status
from tests.support.statements import rows

S = Status
KEPT = """
import time
saved = start["checkpoint"] or {"pids": []}
saved["pids"].append(os.getpid())
open("b.txt", "w").write("new\\n")
say("checkpoint", id="c", data=saved)
hear()
sys.stderr.write("waiting\\n")
reply = ask("color", choices=["red", "blue"], grace=300)
sys.stderr.write("heard " + reply["type"] + "\\n")
if reply["type"] == "park":
    say("event", kind="late")
    say("checkpoint", id="late", data={})
    assert hear()["type"] == "refused"
    sys.exit(0)
say("usage", input_tokens=5)
say("checkpoint", id="d", data=saved)
hear()
say("result", summary="done", data={"pids": saved["pids"], "color": reply["value"]})
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


def data(job: Job) -> dict[str, Any]:
    assert job.status is S.COMPLETED, job.last_error
    return dict((job.result or {})["data"])


async def test_an_answer_within_the_period_continues_the_same_process(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", KEPT, ask_grace=60):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
    result = data(job)
    assert (len(result["pids"]), result["color"]) == (1, "red")
    runs = await rt.read_model.runs(number)
    assert [(run.ordinal, str(run.status)) for run in runs] == [(1, "parked"), (2, "completed")]
    assert (runs[1].usage or {})["input_tokens"] == 5
    kinds = await event_kinds(rt, number)
    assert kinds[-6:].count("job_claimed") == 1
    async with rt.db.connection() as conn:
        logs = await rows(conn, "SELECT run, text FROM draftsman.run_log_chunks ORDER BY run, seq")
    assert [(run, "heard answer" in text) for run, text in logs] == [(1, False), (2, True)]


async def test_what_follows_the_answer_is_in_the_span_of_the_next_run(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    async with (
        receiving_traces() as receiver,
        exporting(receiver.url),
        agent_worker(rt, repo.parent / "data", KEPT, ask_grace=60),
    ):
        await wait_for_question(rt, number)
        await make.answer(number, "red")
        await wait_for_end(rt, number)
    first, second = receiver.named("run run_agent")
    assert [run.attributes["draftsman.outcome"] for run in (first, second)] == [
        "waiting",
        "completed",
    ]
    [question] = receiver.named("question")
    assert question.parent == first.id
    assert question.began >= first.began
    assert question.ended <= second.ended
    parents = {first.id: "first", second.id: "second"}
    steps = [
        (parents[step.parent], step.attributes["draftsman.step.key"])
        for step in receiver.named("step")
    ]
    before, after = steps[:2], steps[2:]
    assert before == [("first", "agent:base"), ("first", "agent:branch")]
    assert {run for run, _ in after} == {"second"}
    assert ("second", "agent:result:1") in after


async def test_without_an_answer_the_agent_parks_and_its_slot_is_free(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", KEPT, ask_grace=0.05, slots=1):
        await wait_for_question(rt, number)
        other = await submit_agent_job(make, repo)
        await wait_for_question(rt, other)
        await make.answer(number, "blue")
        result = data(await wait_for_end(rt, number))
        async with rt.db.connection() as conn:
            [log] = await rows(
                conn,
                "SELECT string_agg(text, '' ORDER BY seq) FROM draftsman.run_log_chunks"
                f" WHERE job = {number} AND run = 1",
            )
    assert (len(result["pids"]), result["color"]) == (2, "blue")
    assert log[0] == (
        "waiting\n[parked] dropped: 1 checkpoint, 1 event, 11 bytes of output; the run had parked,"
        " and stores nothing more\n"
    )


async def test_a_message_within_the_period_reaches_the_agent_after_the_answer(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    code = """
say("listen")
reply = ask("color", choices=["red", "blue"], grace=300)
said = hear()
say("result", summary="", data={"reply": reply["type"], "said": said["text"]})
"""
    async with agent_worker(rt, repo.parent / "data", code, ask_grace=60):
        await wait_for_question(rt, number)
        await rt.messages.send(number, make.owner, "Use the v2 API")
        await make.answer(number, "red")
        result = data(await wait_for_end(rt, number))
    assert result == {"reply": "answer", "said": "Use the v2 API"}
    [message] = await rt.messages.of_job(number)
    assert message.delivered_at is not None


async def test_a_cancel_within_the_period_ends_the_agent(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", KEPT, ask_grace=60, slots=1):
        await wait_for_question(rt, number)
        await rt.job_control.cancel(number, make.owner)
        other = await submit_agent_job(make, repo)
        await wait_for_question(rt, other)  # in the slot of the first
    assert (await rt.read_model.job(number)).status is S.CANCELED


async def test_a_shutdown_within_the_period_leaves_the_question_to_other_workers(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, repo.parent / "data", KEPT, ask_grace=60):
        await wait_for_question(rt, number)
    await make.answer(number, "red")
    await wait_for_status(rt, number, S.RESUMED)
    async with agent_worker(rt, repo.parent / "data", KEPT):
        result = data(await wait_for_end(rt, number))
    assert (len(result["pids"]), result["color"]) == (2, "red")


async def test_a_program_waits_for_its_answer_and_keeps_the_agent(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    code = f"""{PROGRAM}
print(command("ask", "Deploy?", "--choice", "yes", "--choice", "no", "--wait", "10m"),
      file=sys.stderr)
say("result", summary="", data={{"run": start["run"]}})
"""
    async with agent_worker(rt, repo.parent / "data", code, ask_grace=60):
        await wait_for_question(rt, number)
        await make.answer(number, "yes")
        job = await wait_for_end(rt, number)
    assert data(job) == {"run": 1}
    assert len(await rt.read_model.runs(number)) == 2
