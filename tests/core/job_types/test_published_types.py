"""Published job types: which description is valid, and what it decides about requests."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from draftsman import RunContext, job
from draftsman.errors import InvalidParameters, NotFound, UsageError
from draftsman.ids import job_name
from draftsman.job_types import declaration
from draftsman.job_types.app import descriptions_of, handlers_of
from draftsman.job_types.published import service
from draftsman.job_types.published.description import TypeDescription, limits_of
from draftsman.jobs.job import LEASED, TERMINAL, OnLost, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end
from tests.support.described_types import registered

SCHEMA: dict[str, Any] = {
    "properties": {"week": {"type": "integer"}, "region": {"enum": ["eu", "us"], "default": "eu"}},
    "required": ["week"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def _read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "AGE", 0)
    monkeypatch.setattr(declaration, "declared_types", {})


def weekly(**fields: Any) -> TypeDescription:
    values = {"name": "report:weekly", "place": "company.jobs:weekly", "parameters": SCHEMA}
    return TypeDescription(**(values | fields))


async def test_the_description_that_was_published_last_and_is_served_is_valid(
    rt: Runtime,
) -> None:
    old, new = weekly(title="old"), weekly(title="new")

    async def title() -> str | None:
        return (await rt.published_types.get("report:weekly")).title

    async with registered(rt, old):
        async with registered(rt, new), registered(rt, old):  # an old worker that starts late
            assert await title() == "new"
            (type,) = await rt.published_types.all()
            assert (type.workers, type.version) == (1, new.version)
        assert await title() == "old"  # a deploy that was rolled back
    async with registered(rt, new):
        assert await title() == "new"
    assert await title() == "new"  # without a live worker, the last that was served
    async with registered(rt, old):
        pass
    assert await title() == "old"
    assert [type.workers for type in await rt.published_types.all()] == [0]


async def test_a_former_name_is_that_of_the_type_that_has_it(rt: Runtime) -> None:
    async with registered(rt, weekly(name="report:old")):
        pass
    async with registered(rt, weekly(aliases=("report:old",))):
        assert (await rt.published_types.get("report:old")).name == "report:weekly"
        assert [type.name for type in await rt.published_types.all()] == ["report:weekly"]


async def test_an_unknown_type_is_not_found_with_near_names(rt: Runtime) -> None:
    async with registered(rt, weekly()):
        with pytest.raises(NotFound, match="'report:weakly' yet; did you mean report:weekly"):
            await rt.published_types.get("report:weakly")


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({}, "week: is required"),
        ({"week": "x"}, "week: must be a whole number, not 'x'"),
        ({"week": 1, "weak": 2}, "weak: unknown key; allowed: week, region"),
    ],
)
async def test_a_payload_is_checked_where_the_code_is_not(
    rt: Runtime, owner: Actor, payload: dict[str, Any], problem: str
) -> None:
    good = invocation(type="report:weekly", payload={"week": 1})
    async with registered(rt, weekly()):
        for batch in ([payload], [{"week": 1}, payload]):
            requests = [invocation(type="report:weekly", payload=each) for each in batch]
            with pytest.raises(
                InvalidParameters, match=f"payload of report:weekly: {problem}"
            ) as caught:
                await rt.submissions.submit_many(requests, owner)
            name, _, text = problem.partition(": ")
            assert caught.value.problems == {name: text}
        assert len(await rt.submissions.submit_many([good, good], owner)) == 2
    assert len(await rt.read_model.jobs()) == 2


async def test_a_request_has_the_defaults_of_its_type(rt: Runtime, owner: Actor) -> None:
    described = weekly(
        title="Week {week} in {region}",
        queue="reports",
        concurrency="report-{region}",
        limits={"max_retries": 1, "max_attempts": 7, "on_lost": "fail"},
    )
    configured = runtime_with(rt, types={"report:weekly": {"max_attempts": 2}})
    async with registered(rt, described):
        plain = await configured.submissions.submit(
            invocation(type="report:weekly", payload={"week": 31}), owner
        )
        own = await configured.submissions.submit(
            invocation(
                type="report:weekly", payload={"week": 31}, title="Mine", queue="default",
                concurrency_key="k", overrides={"max_retries": 9}, on_lost="retry",
            ),
            owner,
        )  # fmt: skip
    job = await rt.read_model.job(plain.number)
    assert (job.title, job.queue, job.concurrency_key) == (
        "Week 31 in eu", "reports", "report-eu",
    )  # fmt: skip
    assert (job.max_retries, job.max_attempts, job.on_lost) == (1, 2, OnLost.FAIL)
    job = await rt.read_model.job(own.number)
    assert (job.title, job.queue, job.concurrency_key) == ("Mine", "default", "k")
    assert (job.max_retries, job.max_attempts, job.on_lost) == (9, 2, OnLost.RETRY)


async def test_a_concurrency_key_that_is_too_long_is_refused(rt: Runtime, owner: Actor) -> None:
    described = weekly(concurrency="{name}", parameters={"properties": {"name": {}}})
    async with registered(rt, described):
        request = invocation(type="report:weekly", payload={"name": "x" * 501})
        with pytest.raises(UsageError, match="longer than 500 characters with these parameters"):
            await rt.submissions.submit(request, owner)


async def test_the_warning_of_a_type_without_a_worker_says_that_nobody_described_it(
    rt: Runtime, owner: Actor
) -> None:
    unknown = await rt.submissions.submit(invocation(type="report:other"), owner)
    assert unknown.warning is not None
    assert unknown.warning.endswith("; no worker has published the type yet")
    async with registered(rt, weekly(parameters={})):
        pass
    described = await rt.submissions.submit(invocation(type="report:weekly"), owner)
    assert described.warning is not None
    assert "waits for a worker" in described.warning
    assert "described" not in described.warning


async def test_a_worker_publishes_what_its_code_declares(rt: Runtime, owner: Actor) -> None:
    @job("report:weekly", title="Week {week}", queue="reports", aliases=["old"], timeout=60)
    async def weekly(ctx: RunContext, week: int, region: Literal["eu", "us"] | None = None) -> None:
        """Write the report.

        With care.
        """

    types = declaration.declared_types
    services = runtime_with(rt)
    async with running_worker(services, handlers_of(types, {}), described=descriptions_of(types)):
        (published,) = await rt.published_types.all()
    assert published.version == weekly.description.version
    assert published.description == "Write the report.\n\nWith care."
    assert published.place.endswith("weekly")
    assert (published.queue, published.aliases, published.workers) == ("reports", ("old",), 1)
    assert published.inputs.required == ["week"]
    assert published.inputs.properties["region"]["enum"] == ["eu", "us"]
    sources = {
        limit.name: (limit.value, limit.source)
        for limit in limits_of(published, {"max_retries": 5})
    }
    assert sources["timeout"] == (60, "code")
    assert sources["max_retries"] == (5, "[types.report:weekly]")
    assert sources["max_attempts"] == (3, "built in")


async def test_waiting_jobs_that_no_longer_fit_are_named_and_fail_clearly(
    rt: Runtime, owner: Actor
) -> None:
    old = weekly(parameters={"properties": {"week": {"type": "string"}}})
    async with registered(rt, old):
        waiting = await rt.submissions.submit(
            invocation(type="report:weekly", payload={"week": "x"}), owner
        )

    @job("report:weekly")
    async def changed(ctx: RunContext, week: int) -> None: ...

    async with registered(rt, changed.description):
        await rt.submissions.submit(invocation(type="report:weekly", payload={"week": 1}), owner)
        now = await rt.published_types.get("report:weekly")
        jobs = await rt.published_types.waiting_jobs(now)
    assert (jobs.checked, jobs.migrated, jobs.has_more) == (2, 0, False)
    assert jobs.unfit == {waiting.name: "week: must be a whole number, not 'x'"}
    async with running_worker(runtime_with(rt), handlers_of(declaration.declared_types, {})):
        ended = await wait_for_end(rt, waiting.number)
    assert (ended.status, ended.last_error) == (
        Status.FAILED,
        "payload of report:weekly: week 'x': must be a whole number",
    )


async def test_each_job_that_will_read_its_payload_again_is_checked(
    rt: Runtime, make: Factory
) -> None:
    names = {
        job_name(await make.job_in(status, type="noop"))
        for status in sorted(set(Status) - TERMINAL - LEASED)
    }
    for status in sorted(TERMINAL | LEASED):
        await make.job_in(status, type="noop")
    described = weekly(name="noop", parameters={"required": ["week"]})
    async with registered(rt, described):
        waiting = await rt.published_types.waiting_jobs(await rt.published_types.get("noop"))
    assert waiting.unfit.keys() == names
