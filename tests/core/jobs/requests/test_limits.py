"""Limits of a job: fixed when it is submitted, or looked up when its run ends."""

from __future__ import annotations

import re
from typing import Any

import pytest

from draftsman.errors import Failure
from draftsman.jobs.job import OnLost, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime, wire
from draftsman.settings import settings_model
from draftsman_testing.factories import Factory
from tests.support.cases import cases

BUSY = Failure("busy", http_status=503)


def _with_limits(rt: Runtime, **tables: Any) -> Runtime:
    """Return services over the same database with other configured limits."""
    values = rt.settings.model_dump() | {"database_url": rt.db.url} | tables
    return wire(settings_model().model_validate(values), rt.db, False)


@pytest.fixture
def limited(rt: Runtime) -> Runtime:
    """Give services that limit a type and an agent."""
    return _with_limits(
        rt,
        types={"noop": {"max_attempts": 5, "max_retries": 5, "on_lost": "fail"}},
        agents={"slow": {"command": ["x"], "max_retries": 7, "on_lost": "resume"}},
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (5, 5, OnLost.FAIL)),
        ({"agent": "slow"}, (5, 7, OnLost.RESUME)),
        ({"agent": "slow", "overrides": {"max_retries": 0}}, (5, 0, OnLost.RESUME)),
        (
            {"agent": "slow", "overrides": {"on_lost": "new_job"}, "max_attempts": 1},
            (1, 7, OnLost.NEW_JOB),
        ),
        ({"overrides": {"max_retries": 2}, "max_retries": 3}, (5, 3, OnLost.FAIL)),
    ],
    ids=["type", "agent", "overrides", "mixed", "option"],
)
async def test_budgets_come_from_the_most_specific_setting(
    limited: Runtime, owner: Actor, fields: dict[str, Any], expected: tuple[int, int, OnLost]
) -> None:
    submitted = await limited.submissions.submit(invocation(type="noop", **fields), owner)
    job = await limited.read_model.job(submitted.number)
    assert (job.max_attempts, job.max_retries, job.on_lost) == expected


async def test_budgets_are_fixed_at_submission(
    rt: Runtime, limited: Runtime, make: Factory
) -> None:
    work = await make.running(agent="slow")
    for _ in range(3):
        assert await limited.settlement.failure(work, BUSY) is Status.RETRYING
        await make.due(work.number)
        work = await make.running(work.number)
    assert await limited.settlement.failure(work, BUSY) is Status.DEAD_LETTER


async def test_delays_are_those_of_the_worker_the_agent_and_the_job(
    rt: Runtime, make: Factory
) -> None:
    slow = {"slow": {"command": ["x"], "base_delay": 5000, "max_delay": 5000}}
    settlement = _with_limits(rt, agents=slow).settlement

    async def wait(**fields: Any) -> float:
        work = await make.running(**fields)
        assert await settlement.failure(work, BUSY) is Status.RETRYING
        job = await rt.read_model.job(work.number)
        assert job.next_retry_at is not None
        return (job.next_retry_at - job.updated_at).total_seconds()

    assert max([await wait(agent="slow") for _ in range(10)]) > 2
    assert await wait() <= 2
    own = {"base_delay": 0.001, "max_delay": 0.001}
    assert max([await wait(agent="slow", overrides=own) for _ in range(10)]) <= 0.001


async def test_a_retry_by_a_person_has_the_budgets_of_the_request(
    limited: Runtime, owner: Actor, make: Factory, rt: Runtime
) -> None:
    request = invocation(type="noop", overrides={"max_retries": 0, "timeout": 9}, max_attempts=2)
    job = await limited.submissions.submit(request, owner)
    work = await make.running(job.number)
    assert await rt.settlement.failure(work, BUSY) is Status.DEAD_LETTER
    retry_job = await rt.read_model.job((await rt.job_control.retry(job.number, owner)).number)
    assert (retry_job.max_attempts, retry_job.max_retries, retry_job.overrides["timeout"]) == (
        2,
        0,
        9,
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"repo": "https://git.example/ACME/shop"}, "deploy:git.example/acme/shop"),
        ({"repo": "https://git.example/acme/shop", "concurrency_key": "own"}, "own"),
        ({}, None),
        ({"type": "other", "repo": "https://git.example/acme/shop"}, None),
    ],
    ids=["default", "given", "no repository", "other type"],
)
async def test_a_type_has_a_default_concurrency_key(
    rt: Runtime, owner: Actor, fields: dict[str, Any], expected: str | None
) -> None:
    keyed = _with_limits(rt, types={"noop": {"concurrency_key": "deploy:{repo}"}})
    request = invocation(**{"type": "noop", **fields})
    jobs = await keyed.submissions.submit_many([request, request], owner)
    keys = [(await rt.read_model.job(job.number)).concurrency_key for job in jobs]
    assert keys == [expected, expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Add a column in db/migrate, please", "git.example/acme/shop:db/migrate/"),
        ("Fix `./src/pay/tax.py`, then db/migrate/3.sql", "git.example/acme/shop:db/migrate/"),
        ("Fix src/pay/tax.py.", "git.example/acme/shop:src/pay/"),
        ("Fix lib/src/pay, src/payments and db/migrate_old", None),
        ("Fix rounding", None),
    ],
)
async def test_jobs_on_the_same_path_have_the_same_key(
    rt: Runtime, owner: Actor, text: str, expected: str | None
) -> None:
    paths = ["db/migrate/", "src/pay/"]
    table = {"concurrency_key": "{repo}:{path}", "key_paths": paths}
    keyed = _with_limits(rt, types={"noop": table})
    repo = "https://git.example/acme/shop"
    requests = [invocation(type="noop", repo=repo, title=text, text="x")]
    requests.append(invocation(type="noop", repo=repo, title="x", text=text))
    jobs = await keyed.submissions.submit_many(requests, owner)
    keys = [(await rt.read_model.job(job.number)).concurrency_key for job in jobs]
    assert keys == [expected, expected]


@cases(
    "table",
    [
        {"concurrency_key": "{repo}:{path}"},
        {"key_paths": ["src/"]},
        *({"concurrency_key": "{path}", "key_paths": [path]} for path in ("/src", "*.sql", "")),
    ],
)
def test_paths_of_a_key_are_checked(table: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="key_paths"):
        settings_model().model_validate({"types": {"noop": table}})


@cases("key", ["deploy:{branch}", "{repo!r}", "{}"])
def test_a_default_concurrency_key_has_known_placeholders(key: str) -> None:
    known = "allowed: {repo}, {path}, {type}, {queue}, {agent}"
    with pytest.raises(ValueError, match=re.escape(known)):
        settings_model().model_validate({"types": {"noop": {"concurrency_key": key}}})
