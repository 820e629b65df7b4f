"""Paths of a run's folders on its worker: no person sees one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from draftsman import Approve, Ask, Choice, Done, Outcome, RunContext
from draftsman.database.database import Connection
from draftsman.jobs.job import WAITING, Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.agent_jobs import agent_worker, make_repository, submit_agent_job
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)
from tests.support.statements import rows

OWN: Final = frozenset({"job_checkpoints", "job_steps", "workers"})
"""Tables with what a program needs to go on, and with the folders of workers."""
TABLES: Final = """
SELECT relname FROM pg_class
 WHERE relnamespace = 'draftsman'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
 ORDER BY relname"""
TELL: Final = """
here = os.getcwd()
places = f"at {here}/a.py:1, in {here}, with {os.environ['HOME']}/x"
say("event", kind="found", payload={"text": places, "list": [places], "deep": {"a": places}})
folders = [here.encode().hex(), os.environ["HOME"].encode().hex()]
say("event", kind="folders", payload={"hex": folders})
say("log", text=places)
print(places, file=sys.stderr, flush=True)
say("activity", kind="message", text=places)
say("activity", kind="tool", text=places, key="1", state="running")
say("activity", kind="tool", text=places, state="completed")
say("activity", kind="file", text=f"{here}/a.py")
say("activity", kind="message", text="Look at " + here[:5])
say("activity", kind="message", text=here[5:] + "/a.py.", continues=True)
"""
ASK: Final = """
reply = ask("wrap", "Which of " + places + "?", choices=["red"], context="lint: " + places)
parked(reply)
say("result", summary=places, data={"files": [places]})
"""
FAIL: Final = """
say("error", message="broken " + places, **{"class": "PERMANENT"})
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


async def tables_with(conn: Connection, text: str) -> dict[str, list[str]]:
    """Return the rows of each table that have a text."""
    tables = [str(name) for (name,) in await rows(conn, TABLES)]
    found = {}
    for table in tables:
        # a file is bytes, of which the text of its row has the hexadecimal form
        wanted = text.encode().hex() if table == "artifact_chunks" else text
        query = f"SELECT t::text FROM draftsman.{table} t WHERE strpos(t::text, %s) > 0"
        found[table] = [row for (row,) in await rows(conn, query, (wanted,))]
    return {table: found[table] for table in found if found[table]}


async def folders_of(rt: Runtime, number: int) -> list[str]:
    """Return the folders of a run as its agent has them."""
    events = await rt.read_model.job_events(number)
    runs = [event.payload["hex"] for event in events if event.kind == "agent.folders"]
    return [bytes.fromhex(code).decode() for codes in runs for code in codes]


async def test_two_questions_that_name_a_file_of_their_clones_are_identical(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    jobs = [await submit_agent_job(make, repo) for _ in range(2)]
    async with agent_worker(rt, repo.parent / "data", TELL + ASK):
        for job in jobs:
            await wait_for_question(rt, job)
    questions = await rt.questions.open()
    assert {question.context_snippet for question in questions} == {
        "lint: at a.py:1, in ., with ~/x"
    }
    assert {question.text for question in questions} == {"Which of at a.py:1, in ., with ~/x?"}
    first, second = sorted(jobs)
    assert {item.job: item.others for item in questions} == {first: [second], second: [first]}


async def test_a_question_of_a_handler_names_no_folder_of_its_run(
    rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    file = tmp_path / "runs" / "D-7.1-ab" / "repo" / "a.py"

    async def handler(ctx: RunContext) -> Outcome:
        choice = Choice(value="red", label="Red", description=f"as in {file}")
        await ctx.ask_all(
            Approve("wrap", f"Keep {file}?", context=f"lint: {file}", action={"of": str(file)}),
            Ask("color", f"Which of {file}?", choices=[choice]),
        )
        return Done({})

    job = await make.queued(queue="default")
    async with running_worker(runtime_with(rt, data_dir=tmp_path), {"noop": handler}):
        await wait_for_status(rt, job, *WAITING)
    questions, _ = await rt.questions.of_job(job)
    assert [(item.text, item.context_snippet) for item in questions] == [
        ("Keep a.py?", "lint: a.py"),
        ("Which of a.py?", None),
    ]
    assert questions[0].action == {"of": str(file)}, "what is allowed is exact"
    assert [item["description"] for item in questions[1].choices] == ["as in a.py"]


async def test_no_row_that_people_read_has_a_path_of_the_worker(
    rt: Runtime, make: Factory, repo: Path, conn: Connection
) -> None:
    data = repo.parent / "data"
    done = await submit_agent_job(make, repo, overrides={"answers": {"wrap": "red"}})
    async with agent_worker(rt, data, TELL + ASK):
        assert (await wait_for_end(rt, done)).status is Status.COMPLETED
    failed = await submit_agent_job(make, repo)
    async with agent_worker(rt, data, TELL + FAIL):
        job = await wait_for_end(rt, failed)
    assert (job.last_error or "").endswith("broken at a.py:1, in ., with ~/x")
    shown = {"artifact_chunks", "job_events", "job_states", "run_activity"}
    assert {*await tables_with(conn, "with ~/x")} >= shown
    for folder in [f"{data}/runs", *await folders_of(rt, done), *await folders_of(rt, failed)]:
        assert {*await tables_with(conn, folder)} - OWN == set(), folder
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(done))
    assert log.count("at a.py:1, in ., with ~/x") == 4  # of two runs
