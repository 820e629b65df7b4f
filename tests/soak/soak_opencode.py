"""The story of a permission with the real OpenCode, and a scripted model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.agent_runs.clones.tree_removal import remove_tree
from draftsman.handlers import registry
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings.agents import known_table
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.attacks.catalog import attack
from tests.core.worker.agent_jobs import git, make_repository, submit_agent_job
from tests.core.worker.workers import is_free, running_worker, runtime_with
from tests.support.fake_model import FakeModel, fake_model

pytestmark = pytest.mark.timeout(900)
PROGRAM: Final = os.environ.get("OPENCODE") or shutil.which("opencode")
SECONDS: Final = 300.0
"""Deadline of each wait: OpenCode needs seconds to start, and a minute with plugins offline."""
RUN: Final = {"tool": "bash", "args": {"command": "echo yes >> ran.txt", "description": "append"}}
OTHER: Final = {"tool": "bash", "args": {"command": "echo no >> ran.txt", "description": "append"}}
DONE: Final = {"text": "all done"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    if PROGRAM is None:
        pytest.skip("there is no OpenCode here: npm i opencode-ai, and set OPENCODE")
    return make_repository(tmp_path / "repo", a="one\n")


@asynccontextmanager
async def opencode(rt: Runtime, data: Path, model: FakeModel) -> AsyncIterator[WorkerProcess]:
    """Run a worker with the entry of OpenCode that draftsman has."""
    assert PROGRAM is not None
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model.url, "apiKey": "x"},
        "models": {"fake-1": {"name": "fake-1"}},
    }
    config = {"model": "fake/fake-1", "small_model": "fake/fake-1", "provider": {"fake": provider}}
    known: dict[str, Any] = dict(known_table("opencode"))
    known["command"] = (str(Path(PROGRAM).resolve()), *known["command"][1:])
    known["env"] = known["env"] | {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    configured = runtime_with(rt, data_dir=data, agents={"test": known | {"network": True}})
    async with running_worker(configured, registry.load({}), leader=True, slots=1) as process:
        yield process


async def wait_with_log(
    rt: Runtime, number: int, look: Callable[[], Awaitable[bool]], what: str
) -> None:
    """Wait for a condition; fail with the log of the job at the deadline."""
    try:
        await until(look, what, SECONDS)
    except AssertionError as error:
        log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
        raise AssertionError(f"{error}\n{log}") from None


async def asked(rt: Runtime, number: int, ordinal: int) -> str:
    async def look() -> bool:
        job = await rt.read_model.job(number)
        assert job.last_error is None, job.last_error
        questions, _ = await rt.questions.of_job(number)
        return len(questions) >= ordinal and questions[ordinal - 1].status == "open"

    await wait_with_log(rt, number, look, f"D-{number}/{ordinal} open")
    return (await rt.questions.get(number, ordinal)).text


async def summary_of(rt: Runtime, number: int) -> str:
    async def look() -> bool:
        job = await rt.read_model.job(number)
        assert job.last_error is None, job.last_error
        return job.result is not None

    await wait_with_log(rt, number, look, f"the result of D-{number}")
    return str(((await rt.read_model.job(number)).result or {})["summary"])


async def test_exactly_the_approved_call_runs_once_on_another_host(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    with fake_model([RUN, RUN, DONE]) as model:  # the interrupted call counts as well
        async with opencode(rt, tmp_path / "one", model) as process:
            assert "$ echo yes >> ran.txt" in await asked(rt, number, 1)
            await until(lambda: is_free(process), "a free slot", SECONDS)  # its clone is removed
        remove_tree(tmp_path / "one")
        await make.answer(number, "allow once")
        async with opencode(rt, tmp_path / "two", model):
            assert await summary_of(rt, number) == "all done"
    assert git("show", f"draftsman/D-{number}:ran.txt", cwd=repo) == "yes"
    last = json.dumps(model.conversations[-1])
    assert "Tool execution was interrupted" in last  # the session of the first run was loaded
    assert "Make exactly this call now" in last


async def test_a_changed_call_is_asked_anew_and_a_denial_reaches_the_model(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path
) -> None:
    number = await submit_agent_job(make, repo)
    with fake_model([RUN, OTHER, DONE]) as model:
        async with opencode(rt, tmp_path / "data", model):
            await asked(rt, number, 1)
            await make.answer(number, "allow once")
            assert "$ echo no >> ran.txt" in await asked(rt, number, 2)
            await make.answer(number, "not on a Friday", n=2)
            assert await summary_of(rt, number) == "all done"
    statuses = [item.status for item in (await rt.questions.of_job(number))[0]]
    assert statuses == ["superseded", "answered"]
    assert ((await rt.read_model.job(number)).result or {})["files_changed"] == 0
    assert "not on a Friday" in json.dumps(model.conversations[-1])


PLUGIN: Final = """
import { writeFileSync } from "fs"
export const Plugin = async () => { writeFileSync("/workspace/repo/plugin.txt", "x"); return {} }
"""


@attack(
    "A plugin of .opencode runs when OpenCode starts",
    surface="repository",
    with_sandbox="not loaded, unless the repository's profile allows it by agent_config",
)
@pytest.mark.parametrize("allowed", [False, True])
async def test_the_plugins_of_a_repository_run_if_its_profile_names_the_agent(
    rt: Runtime, make: Factory, repo: Path, tmp_path: Path, allowed: bool
) -> None:
    plugin = repo / ".opencode" / "plugin" / "x.ts"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(PLUGIN)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "hostile", cwd=repo)
    fields = {"agent_config": ["opencode"] if allowed else [], "validation_commands": []}
    await rt.repos.add(Repo.at(parse(str(repo))), profile(fields), make.owner)
    number = await submit_agent_job(make, repo)
    with fake_model([RUN, RUN, DONE]) as model:  # the interrupted call counts as well
        async with opencode(rt, tmp_path / "data", model):
            assert "$ echo yes >> ran.txt" in await asked(rt, number, 1)
            await make.answer(number, "allow once")
            assert await summary_of(rt, number) == "all done"
    changed = git("diff", "--name-only", "main", f"draftsman/D-{number}", cwd=repo).split()
    assert "ran.txt" in changed
    assert ("plugin.txt" in changed) == allowed
