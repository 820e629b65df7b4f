"""Messages of people to agents: as they arrive, with the next start, and again after a death."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from draftsman.jobs.job import Job, Status
from draftsman.jobs.requests.invocation import FileRef
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.core.agent_runs.test_acp import acp_worker
from tests.core.worker.agent_jobs import (
    agent_worker,
    make_repository,
    submit_agent_job,
    wait_for_agent,
    wait_for_exit,
)
from tests.core.worker.workers import (
    event_kinds,
    last_event,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)

S = Status
ECHO = 'say("result", summary="", data={"got": [item["text"] for item in start["messages"]]})'
LISTEN = """
say("listen")
open("listening.txt", "w").write("x")
message = hear()
say("checkpoint", id="c", data=1); hear()
say("result", summary="", data={"got": [message[key] for key in ("type", "id", "text", "by")]})
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


async def tell(rt: Runtime, make: Factory, number: int, text: str) -> None:
    await rt.messages.send(number, make.owner, text)


def got(job: Job) -> Any:
    assert job.status is S.COMPLETED, job.last_error
    return (job.result or {})["data"]["got"]


async def states(rt: Runtime, number: int) -> list[tuple[str, int | None, bool]]:
    messages = await rt.messages.of_job(number)
    return [(item.text, item.run, item.delivered_at is not None) for item in messages]


async def test_a_message_to_a_queued_job_is_in_the_start_of_its_run(
    rt: Runtime, make: Factory, repo: Path
) -> None:
    number = await submit_agent_job(make, repo)
    await tell(rt, make, number, "use the v2 API")
    await tell(rt, make, number, "and test it")
    async with agent_worker(rt, repo.parent / "data", ECHO):
        job = await wait_for_end(rt, number)
    assert got(job) == ["use the v2 API", "and test it"]
    assert await states(rt, number) == [("use the v2 API", 1, True), ("and test it", 1, True)]
    delivered = await last_event(rt, number, "message_delivered")
    assert (delivered.payload, delivered.run) == ({"messages": [1, 2]}, 1)


async def test_an_agent_that_listens_gets_a_message_while_it_runs(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    async with agent_worker(rt, tmp_path / "data", LISTEN):
        await wait_for_agent(tmp_path / "data", "listening.txt")
        await tell(rt, make, number, "use the v2 API")
        job = await wait_for_end(rt, number)
    assert got(job) == ["message", "1", "use the v2 API", make.owner.display_name]
    kinds = await event_kinds(rt, number)
    assert [kind for kind in kinds if kind.startswith("message")] == [
        "message_sent",
        "message_delivered",
    ]


async def test_an_agent_that_does_not_listen_is_started_again(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    code = """
texts = [item["text"] for item in start["messages"]]
open("seen.txt", "a").write("".join(texts) or "nothing")
while not texts and not os.path.exists(os.environ["HOME"] + "/go"):
    __import__("time").sleep(0.01)
say("result", summary="", data={"got": [start["iteration"], *texts]})
"""
    async with agent_worker(rt, tmp_path / "data", code):
        await wait_for_agent(tmp_path / "data", "seen.txt")
        await tell(rt, make, number, "use the v2 API")
        clone = next((tmp_path / "data").glob("**/runs/*/repo/seen.txt")).parent
        (clone.parent / "home" / "go").touch()
        job = await wait_for_end(rt, number)
    assert got(job) == [2, "use the v2 API"]
    assert job.run_count == 1
    patch = await rt.changes.patch(number)
    assert patch is not None
    assert b"+nothinguse the v2 API" in await rt.checkpoints.content(patch)


async def test_a_message_is_given_again_after_a_kill_before_the_checkpoint_and_once_after_it(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    """The agent is killed twice with the message in hand: before and after its checkpoint."""
    number = await submit_agent_job(make, repo)
    code = """
say("listen")
texts = [item["text"] for item in start["messages"]]
if start["run"] == 1:
    open("run1.txt", "w").write("x")
    texts.append(hear()["text"])
    open("heard.txt", "w").write(texts[0])
    hear()
if start["run"] == 2:
    say("checkpoint", id="c", data=texts); hear()
    open("saved.txt", "w").write("x")
    hear()
say("result", summary="", data={"got": [start["checkpoint"], texts]})
"""
    async with agent_worker(rt, tmp_path / "data", code):
        await wait_for_agent(tmp_path / "data", "run1.txt")
        await tell(rt, make, number, "use the v2 API")
        pid = await wait_for_agent(tmp_path / "data", "heard.txt")
        assert await states(rt, number) == [("use the v2 API", 1, False)]
        os.kill(pid, signal.SIGKILL)
        await _run_again(rt, make, number)
        pid = await wait_for_agent(tmp_path / "data", "saved.txt")
        assert await states(rt, number) == [("use the v2 API", 2, True)]
        os.kill(pid, signal.SIGKILL)
        await _run_again(rt, make, number)
        job = await wait_for_end(rt, number)
    assert got(job) == [["use the v2 API"], []]


async def _run_again(rt: Runtime, make: Factory, number: int) -> None:
    await wait_for_status(rt, number, S.RETRYING)
    await make.due(number)


async def test_a_result_that_does_not_list_a_message_begins_another_iteration(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    code = """
say("listen")
open("listening.txt", "w").write("x")
texts = [item["text"] for item in start["messages"]]
if not texts:
    hear()
say("result", summary="", data={"got": texts}, messages=[])
"""
    async with agent_worker(rt, tmp_path / "data", code):
        await wait_for_agent(tmp_path / "data", "listening.txt")
        await tell(rt, make, number, "use the v2 API")
        job = await wait_for_end(rt, number)
    assert got(job) == ["use the v2 API"]
    assert await states(rt, number) == [("use the v2 API", 1, True)]


async def test_an_acp_agent_gets_a_message_as_its_next_prompt(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    wait = "echo x > waits.txt; until [ -e go.txt ]; do sleep 0.01; done"
    script = [{"run": wait}, {"say": "all done PROMPTS"}]
    async with acp_worker(rt, tmp_path / "data", script):
        await wait_for_question(rt, number)
        await tell(rt, make, number, "first")
        await make.answer(number, "allow once")
        await wait_for_agent(tmp_path / "data", "waits.txt")
        await tell(rt, make, number, "use the v2 API")

        async def given() -> bool:
            return [run for _, run, _ in await states(rt, number)] == [2, 2]

        await until(given, "the second message in the run")
        clone = next((tmp_path / "data").glob("**/runs/*/repo/waits.txt")).parent
        (clone / "go.txt").touch()
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED, job.last_error
    prompts = json.loads((job.result or {})["summary"].rpartition("all done ")[2])
    assert len(prompts) == 3
    name = make.owner.display_name
    assert prompts[1].endswith(f"A message from {name}:\n\nfirst")
    assert prompts[2] == f"A message from {name}:\n\nuse the v2 API"
    assert [delivered for *_, delivered in await states(rt, number)] == [True, True]


async def test_the_file_of_a_message_arrives_with_it(
    rt: Runtime, make: Factory, people: People, repo: Path
) -> None:
    code = """
say("listen")
open("listening.txt", "w").write("x")
message = hear()
(file,) = message["attachments"]
text = open(os.path.join(os.environ["HOME"], file["path"])).read()
say("checkpoint", id="c", data=1); hear()
say("result", summary="", data={"got": [message["text"], file["name"], text]})
"""
    number = await submit_agent_job(make, repo)
    ben = people.on("slack", "ben")
    ref = FileRef(reference={"id": "F1"}, name="log.txt")
    async with agent_worker(rt, repo.parent / "data", code):
        await wait_for_agent(repo.parent / "data", "listening.txt")
        for _ in range(2):
            await rt.messages.send(number, ben, "see the log", event="m1", attachments=[ref])
        (file,) = await rt.attachments.claim("slack")
        await rt.attachments.store(file, b"boom")
        job = await wait_for_end(rt, number)
    assert got(job) == ["see the log", "log.txt", "boom"]


async def test_a_message_whose_file_is_still_downloaded_is_not_lost_when_the_agent_ends(
    rt: Runtime, make: Factory, people: People, repo: Path
) -> None:
    code = """
texts = [item["text"] for item in start["messages"]]
if not texts:
    say("listen")
    open("listening.txt", "w").write("x")
    while not os.path.exists(os.environ["HOME"] + "/go"):
        __import__("time").sleep(0.01)
    say("checkpoint", id="c", data=1); hear()
say("result", summary="", data={"got": [start["iteration"], *texts]})
"""
    number = await submit_agent_job(make, repo)
    data = repo.parent / "data"
    ben = people.on("slack", "ben")
    ref = FileRef(reference={"id": "F1"}, name="log.txt")
    async with agent_worker(rt, data, code):
        agent = await wait_for_agent(data, "listening.txt")
        await rt.messages.send(number, ben, "see the log", event="m1", attachments=[ref])

        async def is_handed() -> bool:
            return await states(rt, number) == [("see the log", 1, False)]

        await until(is_handed, "the run has the message, and waits for its file")
        clone = next(data.glob("**/runs/*/repo/listening.txt")).parent
        (clone.parent / "home" / "go").touch()
        await wait_for_exit(agent)
        (file,) = await rt.attachments.claim("slack")
        await rt.attachments.store(file, b"boom")
        job = await wait_for_end(rt, number)
    assert got(job) == [2, "see the log"]
    assert await states(rt, number) == [("see the log", 1, True)]
