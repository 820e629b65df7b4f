"""Attacks by input: schemas, handlers and texts."""

from __future__ import annotations

import functools
import json
import time

import pytest

from draftsman.errors import NotFound
from draftsman.jobs.job import Status
from draftsman.json_schemas import checker
from draftsman.json_schemas.checker import SchemaChecker
from draftsman.runtime import Runtime
from draftsman.worker.watchdog import EXIT_CODE
from draftsman_testing.factories import Factory
from tests.acceptance.processes import Installation
from tests.attacks.catalog import attack
from tests.core.json_schemas.test_schemas import bomb
from tests.core.worker.workers import wait_for_status
from tests.support.faulty_server import answer, web
from tests.tui.cli.cli_runner import Cli

S = Status
LOOPING = """
from draftsman import Done
async def loops(ctx):
    while True:
        pass
async def harmless(ctx):
    return Done({"run": ctx.job.run})
"""


@attack(
    "A JSON Schema of 2.8 kB whose references double is submitted",
    surface="input",
    with_sandbox="refused after 2 s of CPU in a child process",
)
async def test_a_schema_bomb_is_refused_when_it_is_submitted(
    rt: Runtime, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, "SchemaChecker", functools.partial(SchemaChecker, cpu=0.2))
    payload = {"url": "http://127.0.0.1/", "output": bomb()}
    submitted = await cli("submit", "--type", "http_request", "--payload", json.dumps(payload))
    submitted.refused(2, "takes more than 0.2 s of CPU")
    assert await rt.read_model.jobs() == []


@attack(
    "A JSON Schema of 2.8 kB freezes the worker that checks an answer against it",
    surface="input",
    with_sandbox="the check is killed after 2 s of CPU, the job fails, other jobs continue",
)
@pytest.mark.slow(
    fast="tests/core/json_schemas/test_schemas.py::test_a_schema_bomb_ends_only_its_child_and_the_loop_continues"
)
async def test_a_schema_bomb_does_not_stop_other_runs(
    rt: Runtime, make: Factory, installation: Installation
) -> None:
    hidden = {"properties": {"a": {"$ref": "#/$defs/a40"}}, "$defs": bomb()["$defs"]}
    async with web() as site:
        site.routes["/a"] = answer(b'{"a": 1}', content_type="application/json")
        installation.configure(http__allow=[site.place])
        payload = {"url": site.url("/a"), "output": hidden}
        guilty = await make.queued(type="http_request", queue="default", payload=payload)
        installation.start("worker")
        await site.asked(1)
        plain = {"url": site.url("/a"), "output": {"type": "object"}}
        other = await make.queued(type="http_request", queue="default", payload=plain)
        assert (await wait_for_status(rt, other, S.COMPLETED)).finished_at is not None
        failed = await wait_for_status(rt, guilty, S.FAILED)
    assert failed.error_class == "INVALID_OUTPUT"
    assert "takes more than 2 s of CPU" in str(failed.last_error)


@attack(
    "A handler loops forever without awaiting, on each worker in turn",
    surface="input",
    with_sandbox="the worker logs the stack and ends after a lease; the job becomes a dead letter",
)
@pytest.mark.slow(
    fast="tests/core/worker/test_watchdog.py::test_a_loop_blocked_for_a_lease_ends_the_process_with_its_stack"
)
async def test_a_handler_that_blocks_its_worker_ends_as_a_dead_letter(
    rt: Runtime, make: Factory, installation: Installation
) -> None:
    (installation.folder / "user_handlers.py").write_text(LOOPING)
    names = {f"handlers.{name}": f"user_handlers:{name}" for name in ("loops", "harmless")}
    timings = {"worker.lease": 1.0, "worker.heartbeat": 0.2, "worker.poll": 0.1, "sweeps.lease": 2}
    installation.configure(None, **names, **timings)
    guilty = await make.queued(type="loops", queue="default", max_attempts=1, on_lost="resume")
    first = installation.start("worker")
    assert await first.end() == EXIT_CODE
    assert f"D-{guilty} run 1" in first.output_text
    assert " loops < " in first.output_text
    second = installation.start("worker")
    assert await second.end() == EXIT_CODE
    installation.start("worker")
    job = await wait_for_status(rt, guilty, S.DEAD_LETTER)
    assert (job.attempts, job.last_error) == (1, "the worker was lost")
    other = await make.queued(type="harmless", queue="default")
    await wait_for_status(rt, other, S.COMPLETED)


@attack(
    "A repository's name of 120 kB takes 40 s of CPU to look up",
    surface="input",
    with_sandbox="refused at once; the time grows with the length, not with its square",
)
async def test_a_long_name_is_refused_at_once(rt: Runtime, installation: Installation) -> None:
    submitted = await installation.run("submit", "--agent", "tidy", "--repo", "a" * 120_000, "x")
    assert submitted.returncode == 2
    assert "must have at most 2000 characters" in submitted.stderr
    assert len(submitted.stderr) < 300
    started = time.process_time()
    with pytest.raises(NotFound, match="unknown repository"):
        await rt.repos.resolve(explicit="a" * 120_000)
    assert time.process_time() - started < 5
