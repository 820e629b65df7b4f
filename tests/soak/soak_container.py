"""Runs in containers of podman and docker: model, named hosts, attacks, checkpoints, the end."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from draftsman.handlers import registry
from draftsman.jobs.job import Status
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime, wire
from draftsman.sandbox import container, mode_detection
from draftsman.sandbox.processes.process import AgentProcess
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.settings.agents import AgentSettings
from draftsman.settings.sandbox import SandboxSettings
from draftsman_testing.factories import Factory
from tests.attacks import hostile_agent
from tests.attacks.catalog import OPEN
from tests.attacks.probe_report import attack_report
from tests.core.agent_runs.gateway_agents import KEY, REPLY, provider, with_gateway
from tests.core.sandbox.network_proxy.test_network_runs import FETCH, PROBE, mirror, with_hosts
from tests.core.sandbox.processes.test_guard import FAMILY, PAUSE, agent_dies
from tests.core.worker.agent_jobs import git, make_repository, submit_agent_job
from tests.core.worker.workers import last_event, running_worker, runtime_with, wait_for_end
from tests.support.container_image import ENGINES, IMAGE, engine_image, missing
from tests.support.faulty_server import FaultyServer

__all__ = ["mirror", "provider"]
pytestmark = pytest.mark.timeout(300)
HITS: Final = ("kill guard", "kill keeper", "kill worker", "stop worker", "kill worker, kill guard")


@pytest.fixture(scope="module", params=ENGINES)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Put an engine with the image in front of PATH; return its path."""
    name = str(request.param)
    if (problem := missing(name)) is not None:
        pytest.skip(problem)
    with (
        engine_image(name, tmp_path_factory.mktemp(name)) as commands,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
        yield str(commands / name)


def settings_of(engine: str, **more: Any) -> SandboxSettings:
    """Return the settings of the sandbox with an engine."""
    entry = {"mode": "container", "image": IMAGE, "engine": Path(engine).name}
    return SandboxSettings.model_validate(entry | more)


def containers(engine: str) -> list[str]:
    """Return the names of all containers of draftsman."""
    command = [engine, "ps", "--all", "--format={{.Names}}", "--filter=name=draftsman-"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


async def test_an_agent_in_a_container_reaches_its_model_and_the_named_hosts_only(
    rt: Runtime,
    make: Factory,
    tmp_path: Path,
    provider: FaultyServer,
    mirror: FaultyServer,
    engine: str,
) -> None:
    other = f"127.0.0.2:{mirror.port + 1}"
    code = FETCH + PROBE.replace("ALLOWED", repr(mirror.place)).replace("OTHER", repr(other))
    services = with_hosts(
        with_gateway(rt, tmp_path, provider, code, network=["mirror"]), mirror.place
    )
    sandbox = settings_of(engine)
    services = wire(services.settings.model_copy(update={"sandbox": sandbox}), rt.db, False)
    number = await submit_agent_job(make, make_repository(tmp_path / "repo"))
    async with running_worker(services, registry.load({}), leader=False):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    reply, allowed, refused, direct, name = json.loads((job.result or {})["summary"])
    assert (reply, allowed, refused[:3]) == (REPLY, "hello", "403")
    assert (direct, name) == ("ConnectionRefusedError", "gaierror")
    assert [request.headers["x-api-key"] for request in provider.requests] == [KEY]
    assert (await last_event(rt, number, "sandbox_applied")).payload["mode"] == "container"
    assert containers(engine) == []


async def test_an_adapter_and_a_validator_run_with_the_programs_of_the_image(
    rt: Runtime, make: Factory, tmp_path: Path, engine: str
) -> None:
    entry = {"kind": "plain", "command": ["sh", "-c", "echo made > made.txt"]}
    services = runtime_with(rt, data_dir=tmp_path / "data", agents={"test": entry})
    update = {"sandbox": settings_of(engine)}
    services = wire(services.settings.model_copy(update=update), rt.db, False)
    check = {"name": "made", "command": ["{python}", "-c", "open('made.txt')"]}
    missing = {"name": "absent", "command": ["no-such-program"], "required": False}
    path = make_repository(tmp_path / "repo")
    fields = {"validation_commands": [check, missing]}
    await rt.repos.add(Repo.at(parse(str(path))), profile(fields), make.owner)
    number = await submit_agent_job(make, path)
    async with running_worker(services, registry.load({}), leader=False):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    assert git("show", f"draftsman/D-{number}:made.txt", cwd=path) == "made"
    validation = {item["name"]: item for item in (job.result or {})["validation"]}
    assert validation["made"]["exit_code"] == 0, validation
    assert validation["absent"]["exit_code"] == 127
    assert containers(engine) == []


async def test_no_attack_of_a_process_works_in_a_container(tmp_path: Path, engine: str) -> None:
    entry: dict[str, Any] = {"image": IMAGE, "engine": Path(engine).name}
    entry["read_only"] = [hostile_agent.__file__]
    report = await attack_report("container", tmp_path, **entry)
    worked = {name for name, result in report.items() if not result.startswith("failed")}
    assert worked == OPEN["container"] | {"mode"}, {name: report[name] for name in worked}


async def test_a_container_ends_with_its_worker(tmp_path: Path, engine: str) -> None:
    turns = asyncio.Semaphore(2)
    mode = f"container,{IMAGE},{Path(engine).name}"
    async with asyncio.TaskGroup() as tasks:
        for number, hits in enumerate(HITS):
            (folder := tmp_path / str(number)).mkdir()
            tasks.create_task(agent_dies(mode, hits, folder, turns))
    container.remove_stale(engine)
    assert containers(engine) == []


async def test_all_processes_of_a_container_are_stopped_while_its_tree_is_read(
    tmp_path: Path, engine: str
) -> None:
    async def ignore(chunk: bytes) -> None:
        pass

    settings = settings_of(engine)
    repo = tmp_path / "repo"
    home = tmp_path / "home"
    sandbox = await open_run_sandbox(settings, repo=repo, home=home)
    agent = AgentSettings(command=("{python}", "-I", "-S", "-c", FAMILY + PAUSE))
    async with await AgentProcess.start(
        agent, cwd=repo, home=home, lease=60, on_stderr=ignore, sandbox=sandbox
    ) as process:
        assert await anext(process.lines()) == b"ready"
        [keeper] = psutil.Process(process.pid).children()
        programs = keeper.children(recursive=True)
        assert len(containers(engine)) == 1
        async with process.frozen():
            assert {program.status() for program in programs} == {psutil.STATUS_STOPPED}
        assert psutil.STATUS_STOPPED not in {program.status() for program in programs}
    assert containers(engine) == []
    sandbox.close()


def test_an_image_without_python_or_an_unknown_image_is_named(engine: str) -> None:
    settings = settings_of(engine, image="localhost/draftsman-unknown")
    problem = mode_detection.find_escape(settings, "container", engine)
    assert "draftsman-unknown" in (problem or "")
