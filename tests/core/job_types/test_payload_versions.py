"""Jobs that were submitted when their type had other parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from draftsman import Done, RunContext, job
from draftsman.errors import ConfigError
from draftsman.job_types import declaration
from draftsman.job_types.app import descriptions_of, handlers_of
from draftsman.job_types.declaration import JobType
from draftsman.job_types.published import service
from draftsman.jobs.job import Job, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.testing import run_handler
from draftsman.testing.drained_app import DrainedApp
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.described_types import registered

Payload = Mapping[str, Any]


@pytest.fixture(autouse=True)
def _own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "AGE", 0)
    monkeypatch.setattr(declaration, "declared_types", {})


def in_seconds(payload: dict[str, Any], version: int) -> Payload:
    """Version 1 had minutes, and version 2 had milliseconds."""
    value = payload.pop("minutes", None) or payload.pop("wait")
    return {**payload, "wait": value * {1: 60, 2: 0.001}[version]}


def declared(
    version: int, migrate: Callable[[dict[str, Any], int], Payload] | None = None
) -> JobType[..., float]:
    declaration.declared_types.clear()

    @job("wait", version=version, migrate=migrate)
    async def wait(ctx: RunContext, wait: float) -> float:
        ctx.log(f"requested: {ctx.job.payload}")
        return wait

    return wait


async def ended(rt: Runtime, number: int) -> Job:
    types = declaration.declared_types
    handlers = handlers_of(types, {})
    async with running_worker(runtime_with(rt), handlers, described=descriptions_of(types)):
        return await wait_for_end(rt, number)


async def test_each_older_payload_is_migrated_by_its_version(rt: Runtime, owner: Actor) -> None:
    first = await rt.submissions.submit(
        invocation(type="wait", payload={"minutes": 2}), owner
    )  # before any worker described the type
    async with registered(rt, declared(2).description):
        request = invocation(type="wait", payload={"wait": 5000})
        second = await rt.submissions.submit(request, owner)
    newest = declared(3, in_seconds)
    third = await rt.submissions.submit(invocation(**newest.request(wait=7)), owner)
    jobs = [await ended(rt, each.number) for each in (first, second, third)]
    assert [each.result for each in jobs] == [{"value": 120.0}, {"value": 5.0}, {"value": 7.0}]
    assert jobs[0].payload == {"minutes": 2}  # what was requested is kept


async def test_a_retry_has_the_version_of_its_job(rt: Runtime, owner: Actor) -> None:
    async with registered(rt, declared(2).description):
        job = await rt.submissions.submit(invocation(type="wait", payload={"wait": 5000}), owner)
    declared(3, lambda payload, version: {})
    failed = await ended(rt, job.number)
    migrated = "submitted for version 2 of the type, migrated to version 3"
    assert failed.last_error == f"payload of wait: wait: is required ({migrated})"
    declared(3, in_seconds)
    retried = await rt.job_control.retry(job.number, owner)
    assert (await ended(rt, retried.number)).result == {"value": 5.0}


def fails(payload: dict[str, Any], version: int) -> Payload:
    return {"wait": payload["seconds"]}


def returns_nothing(payload: dict[str, Any], version: int) -> Any:
    payload.clear()


@pytest.mark.parametrize(
    ("migrate", "problem"),
    [
        (
            None,
            (
                "payload of wait: wait: is required"
                " (submitted for version 1 of the type, not migrated to version 3)"
            ),
        ),
        (fails, "payload of wait: cannot be migrated from version 1 to 3: KeyError: 'seconds'"),
        (
            returns_nothing,
            (
                "payload of wait: cannot be migrated from version 1 to 3:"
                " migrate returned NoneType, no mapping"
            ),
        ),
    ],
)
async def test_what_cannot_be_migrated_fails_clearly_and_for_good(
    rt: Runtime, owner: Actor, migrate: Any, problem: str
) -> None:
    old = await rt.submissions.submit(invocation(type="wait", payload={"minutes": 2}), owner)
    declared(3, migrate)
    job = await ended(rt, old.number)
    assert (job.status, job.error_class, job.payload) == (
        Status.FAILED,
        "PERMANENT",
        {"minutes": 2},
    )
    assert job.last_error == problem


async def test_an_older_worker_leaves_a_newer_payload_to_others(rt: Runtime, owner: Actor) -> None:
    new = await rt.submissions.submit(invocation(**declared(3).request(wait=7)), owner)
    declared(2)
    types = declaration.declared_types
    async with running_worker(runtime_with(rt), handlers_of(types, {})):
        job = await wait_for_status(rt, new.number, Status.RETRYING)
    text = f"{new.name} was submitted for version 3 of wait; this worker has version 2"
    assert text in (job.last_error or "")


async def test_a_test_migrates_a_payload_of_its_version() -> None:
    handler = declared(3, in_seconds).handler()
    first = await run_handler(handler, {"minutes": 2})
    current = await run_handler(handler, {"wait": 7}, overrides={"payload_version": 3})
    assert first.log == "requested: {'minutes': 2}\n"  # the run sees what was requested
    assert [first.outcome, current.outcome] == [Done({"value": 120.0}), Done({"value": 7.0})]


def test_a_version_that_cannot_be_is_an_error_at_the_declaration() -> None:
    for version in (0, -1, 2**31):
        with pytest.raises(ConfigError, match=f"wait: version {version} is no number from 1"):
            declared(version)
    with pytest.raises(ConfigError, match="wait: migrate needs version=2 or more"):
        declared(1, in_seconds)


@pytest.mark.parametrize("app", ["draftsman_app", "draftsman_worker"])
def test_a_job_of_an_app_has_the_version_of_today(app: str, request: pytest.FixtureRequest) -> None:
    draftsman_app: DrainedApp = request.getfixturevalue(app)
    declared(3, in_seconds).submit(wait=7)
    draftsman_app.drain()
    (ran,) = draftsman_app.jobs
    assert (ran.payload_version, ran.result, ran.last_error) == (3, {"value": 7}, None)
