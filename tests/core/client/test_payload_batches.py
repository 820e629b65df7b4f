"""Batches whose requests differ in their payloads alone: equal to the same requests one by one."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

import pytest

from draftsman import Client, Request
from draftsman.client import asynchronous
from draftsman.database.database import Connection
from draftsman.errors import DraftsmanError
from draftsman.job_types.published import service
from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.requests.payload_batch import payload_batch
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.outbox import deliveries_of
from tests.support.described_types import registered

PARAMETERS: dict[str, Any] = {"properties": {"week": {"type": "integer"}}, "required": ["week"]}
VALUES: list[object] = [
    *(0, -1, True, False, None, 1.0, 1e-300, 10**29, "", "a", "é\u2028", "nul \x00", "\ud800"),
    *('a "quoted" {text}, \\', [1, [2]], (1, 2), {"b": 1, "a": {"c": []}}, {1: "number"}),
]
REFUSED: list[object] = [float("nan"), 10**31, object(), b"bytes", "x" * 1_100_000]


@pytest.fixture
async def client(rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Provide the client of the owner of the database."""

    async def actor(_: object) -> Actor:
        return owner

    monkeypatch.setattr(Runtime, "actor", lambda _, source: actor(source))
    monkeypatch.setattr(service, "AGE", 0)
    return Client(rt)


@pytest.fixture(autouse=True)
async def _described(rt: Runtime) -> AsyncIterator[None]:
    """Describe types whose jobs share their columns, and whose jobs do not."""
    place = "company.jobs:report"
    types = [
        TypeDescription(name="weekly", place=place, parameters=PARAMETERS, queue="slow"),
        TypeDescription(name="titled", place=place, parameters=PARAMETERS, title="week {week}"),
        TypeDescription(name="single", place=place, parameters=PARAMETERS, concurrency="w{week}"),
    ]
    async with registered(rt, *types):
        yield


def _batch(choice: random.Random, *, refused: bool) -> list[Request]:
    """Return requests of a type that differ in their payloads."""
    shared: dict[str, object] = {"type": choice.choice(["noop", "weekly", "titled", "single"])}
    options = {
        "queue": "fast",
        "priority": 7,
        "title": "A  title",
        "tags": ["a", 'b"{'],
        "delay": 3600.0,
        "concurrency_key": "key",
        "max_attempts": 9,
        "payload_version": 2,
    }
    shared |= {name: options[name] for name in options if choice.random() < 0.2}
    requests = [
        shared | {"payload": {"week": number, "value": choice.choice(VALUES)}}
        for number in range(choice.randrange(2, 8))
    ]
    if refused:
        wrong: list[dict[str, Any]] = [{"payload": {"value": choice.choice(REFUSED), "week": 1}}]
        wrong += [{"payload": [1]}, {"priority": 5000}, {"queue": ""}]
        if shared["type"] != "noop":
            wrong += [{"payload": {"week": "one"}}, {"payload": {}}]
        choice.choice(requests).update(choice.choice(wrong))
    return cast("list[Request]", requests)


async def _rows(rt: Runtime, jobs: Sequence[SubmittedJob]) -> list[str]:
    """Return the rows and events of jobs, without ids and times."""
    rows = []
    for job in jobs:
        stored = await rt.read_model.job(job.number)
        own = {"number", "id", "position", "idempotency_key", "hold"}  # a key is taken once
        columns = {
            name: value
            for name, value in asdict(stored).items()
            if name not in own and not name.endswith("_at")
        }
        delay = stored.run_at and (stored.run_at - stored.created_at)
        events = await rt.read_model.job_events(job.number)
        recorded = [(event.kind, event.actor, event.payload) for event in events]
        assert stored.id == job.id
        assert stored.idempotency_key == f"auto:{job.id}"
        rows.append(f"{job.outcome} {job.status} {job.warning} {columns} {delay} {recorded}")
    return rows


@pytest.mark.parametrize("seed", range(12))
async def test_jobs_of_a_batch_are_those_of_its_requests_one_by_one(
    rt: Runtime, client: Client, seed: int
) -> None:
    requests = _batch(random.Random(seed), refused=False)
    assert payload_batch(requests) is not None
    shared = await client.submit_many(requests)
    alone = [await client.submit(**cast("Any", request)) for request in requests]
    assert [job.number for job in shared] == list(range(1, 1 + len(requests)))
    assert await _rows(rt, shared) == await _rows(rt, alone)


@pytest.mark.parametrize("seed", range(12))
async def test_error_of_a_batch_is_that_of_requests_that_share_nothing(
    rt: Runtime, client: Client, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    requests = _batch(random.Random(seed), refused=True)
    errors = []
    for _ in range(2):
        with pytest.raises(DraftsmanError) as refused:
            await client.submit_many(requests)
        notes = getattr(refused.value, "__notes__", None)
        text = re.sub("0x[0-9a-f]+", "", str(refused.value))
        errors.append((type(refused.value), text, notes))
        monkeypatch.setattr(asynchronous, "payload_batch", lambda _: None)
    assert errors[0] == errors[1]
    assert await rt.read_model.jobs() == []


async def test_jobs_of_a_batch_have_the_configured_targets(
    rt: Runtime, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = replace(rt.targets, default=tuple(rt.targets.of(("log",))))
    monkeypatch.setattr(rt.submissions, "_targets", targets)
    jobs = await client.submit_many([{"type": "noop", "payload": {"n": n}} for n in range(3)])
    for job in jobs:
        assert len(await deliveries_of(rt, job.number)) == 1


async def test_batch_in_a_transaction_of_the_caller_exists_with_its_commit(
    rt: Runtime, client: Client, conn: Connection
) -> None:
    async with conn.transaction(force_rollback=True):
        jobs = await client.submit_many(
            [{"type": "noop", "payload": {"n": n}} for n in range(3)], connection=conn
        )
        assert len(jobs) == 3
        assert await rt.read_model.jobs() == []
    assert await rt.read_model.jobs() == []


@pytest.mark.parametrize(
    "change",
    [
        {"key": "k"},
        {"type": "run_agent"},
        {"type": "http_request"},
        {"priority": 1},
        {"notify": ["log"]},
        {"payload": None},
    ],
)
def test_requests_that_differ_otherwise_share_nothing(change: dict[str, object]) -> None:
    request: dict[str, object] = {"type": "noop", "payload": {}}
    assert payload_batch([request, request]) is not None
    assert payload_batch([request, request | change]) is None
