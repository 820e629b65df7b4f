"""Real coding agents whose model is busy, slow or unwilling, in bubblewrap and under Landlock."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.handlers import registry
from draftsman.jobs.job import Job, Status
from draftsman.runtime import Runtime, wire
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.agent_jobs import git, make_repository, submit_agent_job
from tests.core.worker.workers import running_worker
from tests.soak.soak_agent_budgets import AGENTS
from tests.soak.soak_agent_budgets import with_agent as with_budget_agent
from tests.support.fake_model import FakeModel, ModelError, Turn, fake_model

NAMES: Final = ("claude", "codex", "opencode")
MODES: Final = ("bwrap", "landlock")
SECONDS: Final = 180.0
"""Deadline of each wait: the programs need seconds to start."""
DONE: Final = {"text": "all done"}
CALL_TIMEOUT: Final = 4.0
"""Seconds; a stream that lasts longer has four times as many, as twenty minutes have of 300."""
PAUSE: Final = 0.5
"""Seconds between two events of a slow stream."""
pytestmark = pytest.mark.timeout(600)


class BusyModel(FakeModel):
    """A model that refuses each call a few times before it answers."""

    STORM: Final = (429, 503, 529)

    def __init__(self, script: Sequence[Turn]) -> None:
        super().__init__(script)
        self.refused: list[int] = []

    def turn(self, results: int, conversation: list[dict[str, Any]]) -> Turn:
        refused = len(self.refused)
        if refused < len(self.STORM) * (results + 1):
            self.refused.append(self.STORM[refused % len(self.STORM)])
            raise ModelError(self.refused[-1])
        return super().turn(results, conversation)


class SlowModel(FakeModel):
    """A model whose streams have a pause between their first event and the others."""

    seconds = 4 * CALL_TIMEOUT
    pause = PAUSE

    def messages(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        events = super().messages(body)
        yield next(events)
        block = next(events)
        is_text = block["content_block"]["type"] == "text"
        delta = {"type": "text_delta", "text": ""}
        if not is_text:
            delta = {"type": "input_json_delta", "partial_json": ""}
        piece = {"type": "content_block_delta", "index": 0, "delta": delta}
        yield from self._slowly(itertools.chain([block], events), piece)

    def respond(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        response = {"id": "resp_0", "object": "response", "status": "in_progress"}
        event = {"type": "response.in_progress", "response": response}
        return self._slowly(super().respond(body), event)

    def reply(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": None}
        event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "fake-1"}
        is_title = not body.get("tools")
        events = super().reply(body)
        return events if is_title else self._slowly(events, event | {"choices": [choice]})

    def _slowly(
        self, events: Iterator[dict[str, Any]], event: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        yield next(events)
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            time.sleep(self.pause)
            yield event
        yield from events


class UnwillingModel(FakeModel):
    """A model that ends its message with a refusal."""

    def messages(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for event in super().messages(body):
            if event["type"] == "message_delta":
                event["delta"]["stop_reason"] = "refusal"
            yield event


with_agent: Final = partial(with_budget_agent, ask_grace=SECONDS)
"""An agent is kept until it is answered, so that each job has a single run."""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEY_OF_TEST", "sk-test")
    return make_repository(tmp_path / "repo", a="one\n")


@asynccontextmanager
async def worker(services: Runtime, slots: int = 1) -> AsyncIterator[None]:
    async with running_worker(services, registry.load({}), leader=True, slots=slots):
        yield


async def finished(rt: Runtime, make: Factory, number: int, seconds: float = SECONDS) -> Job:
    """Allow each call, and return the job when it has ended or is retried."""
    answered = 0

    async def look() -> bool:
        nonlocal answered
        job = await rt.read_model.job(number)
        questions, _ = await rt.questions.of_job(number)
        if len(questions) > answered and questions[-1].status == "open":
            answered = len(questions)
            await make.answer(number, "allow once", n=answered)
        return job.result is not None or job.last_error is not None

    try:
        await until(look, f"the end of D-{number}", seconds)
    except AssertionError as error:
        log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
        raise AssertionError(f"{error}\n{log[-5000:]}") from None
    return await rt.read_model.job(number)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
async def test_a_busy_provider_is_asked_again_and_the_agent_does_not_see_it(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, name: str, mode: str
) -> None:
    number = await submit_agent_job(make, repo, agent=name)
    with fake_model([AGENTS[name]["run"], DONE], BusyModel) as model:
        assert isinstance(model, BusyModel)
        async with worker(with_agent(rt, tmp_path / "data", name, model, mode=mode)):
            job = await finished(rt, make, number)
    assert (job.last_error, (job.result or {}).get("summary")) == (None, "all done")
    assert job.retry_count == 0
    assert model.refused == 2 * list(BusyModel.STORM)
    assert git("show", f"draftsman/D-{number}:ran.txt", cwd=repo) == "yes"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
async def test_a_stream_lasts_longer_than_the_timeout_of_a_call(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, name: str, mode: str
) -> None:
    number = await submit_agent_job(make, repo, agent=name)
    with fake_model([AGENTS[name]["run"], DONE], SlowModel) as model:
        services = with_agent(
            rt, tmp_path / "data", name, model, mode=mode, call_timeout=CALL_TIMEOUT
        )
        async with worker(services):
            job = await finished(rt, make, number)
    assert (job.last_error, (job.result or {}).get("summary")) == (None, "all done")
    assert job.retry_count == 0
    assert git("show", f"draftsman/D-{number}:ran.txt", cwd=repo) == "yes"


class PatientModel(SlowModel):
    """A model whose first stream lasts for twenty minutes."""

    seconds = 20 * 60.0
    pause = 5.0


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", MODES)
async def test_a_stream_of_twenty_minutes_reaches_each_agent(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, mode: str
) -> None:
    """With the default timeouts of draftsman, and those that the agents have of their own."""
    with contextlib.ExitStack() as stack:
        services = rt
        agents = {}
        gateways = {}
        for name in NAMES:
            model = stack.enter_context(fake_model([DONE], PatientModel))
            services = with_agent(rt, tmp_path / "data", name, model, mode=mode)
            agents[name] = services.settings.agents[name].model_copy(update={"gateway": name})
            gateways[name] = services.settings.gateways["model"]
        settings = services.settings.model_copy(update={"agents": agents, "gateways": gateways})
        numbers = [await submit_agent_job(make, repo, agent=name) for name in NAMES]
        async with worker(wire(settings, rt.db, False), slots=len(NAMES)):
            jobs = [await finished(rt, make, number, 1500) for number in numbers]
    ends = {
        job.agent_request.agent: (job.last_error, (job.result or {}).get("summary")) for job in jobs
    }
    assert ends == dict.fromkeys(NAMES, (None, "all done"))


async def test_a_refusal_of_claude_fails_the_job_at_once(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo, agent="claude")
    with fake_model([{"text": "I cannot help."}], UnwillingModel) as model:
        async with worker(with_agent(rt, tmp_path / "data", "claude", model)):
            job = await finished(rt, make, number)
    assert (job.status, job.error_class) == (Status.FAILED, "PERMANENT"), job.last_error
    assert "refusal" in (job.last_error or "")
    assert len(model.conversations) == 1
    assert job.retry_count == 0


SCRIPT: Final = """
const ran = await tools.exec_command({cmd: "echo yes >> ran.txt"})
text(ran.output)
"""
SUBAGENTS: Final = ("spawn_agent", "wait_agent", "list_agents")


class CodeModel(FakeModel):
    """A model to which Codex gives other tools: it writes scripts that call them."""

    def __init__(self, script: Sequence[Turn]) -> None:
        super().__init__(script)
        self.subagents = set[str]()

    def respond(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        sent = json.dumps(body)
        self.subagents |= {name for name in SUBAGENTS if name in sent}
        for event in super().respond(body):
            item = event.get("item", {})
            if item.get("name") == "exec":
                item |= {"type": "custom_tool_call", "input": SCRIPT, "namespace": "functions"}
            yield event


async def test_codex_has_no_subagents_and_asks_about_calls_of_scripts(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    """Models of its catalog bring agents of their own, which are on whatever the feature says."""
    number = await submit_agent_job(make, repo, agent="codex")
    options = ("app-server", "-c", 'model="gpt-6.2-sol"')
    with fake_model([{"tool": "exec", "args": {}}, DONE], CodeModel) as model:
        assert isinstance(model, CodeModel)
        services = with_agent(rt, tmp_path / "data", "codex", model)
        program = services.settings.agents["codex"].command[0]
        services = with_agent(rt, tmp_path / "data", "codex", model, command=(program, *options))
        async with worker(services):
            job = await finished(rt, make, number)
    assert (job.last_error, (job.result or {}).get("summary")) == (None, "all done")
    questions, _ = await rt.questions.of_job(number)
    assert ["$ echo yes >> ran.txt" in question.text for question in questions] == [True]
    assert git("show", f"draftsman/D-{number}:ran.txt", cwd=repo) == "yes"
    assert model.subagents == set()
