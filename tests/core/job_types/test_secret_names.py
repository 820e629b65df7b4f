"""Parameters that name a secret of the worker: its value is read by a run, and stored nowhere."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from draftsman import BlockingRunContext, Failure, RunContext, SecretName, job
from draftsman.errors import InvalidParameters, NotOnThisWorker, UsageError
from draftsman.job_types import declaration
from draftsman.job_types.app import descriptions_of, handlers_of
from draftsman.job_types.declaration import JobType
from draftsman.job_types.published import service
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.testing import run_handler
from draftsman.testing.drained_app import DrainedApp
from draftsman_testing.factories import Factory
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)
from tests.support.described_types import registered

VALUE = "tiger-in-a-box"
ARK = SecretName("ark")
PASTED = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


@pytest.fixture(autouse=True)
def _own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "AGE", 0)
    monkeypatch.setattr(declaration, "declared_types", {})


def with_secret(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> Runtime:
    monkeypatch.setenv("ZOO_KEY", VALUE)
    return runtime_with(rt, secrets={"zoo": {"env": "ZOO_KEY"}})


async def stored(rt: Runtime) -> str:
    """Return all rows of all tables, as text."""
    async with rt.db.connection() as conn:
        cursor = await conn.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname = 'draftsman'"
        )
        tables = [name for (name,) in await cursor.fetchall()]
        texts = []
        for table in tables:
            cursor = await conn.execute(f"SELECT t::text FROM {table} t".encode())
            texts += [text for (text,) in await cursor.fetchall()]
    return "\n".join(texts)


async def writes_everywhere(ctx: RunContext, key: SecretName) -> dict[str, Any]:
    sys.stdout.write(f"printed {key.value}\n")
    ctx.log(f"logged {key.value} of {key}")
    assert await ctx.step(f"step {key.value}", lambda _: {"got": [key.value]})
    await ctx.checkpoint({"seen": key.value})
    await ctx.event("read", {"value": key.value})
    await ctx.artifact("note.txt", key.value.encode())
    await ctx.notify(f"it is {key.value}", targets=["log"])
    answer = await ctx.ask("go", f"Use {key.value}?", choices=["yes", key.value])
    await ctx.spawn("next", "noop", payload={"with": key.value}, title=key.value)
    return {"value": key.value, "answer": answer.value, "name": str(key)}


async def test_the_value_of_a_secret_is_stored_nowhere(
    rt: Runtime,
    owner: Actor,
    make: Factory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    declared = job("zoo:open")(writes_everywhere)
    number = (
        await rt.submissions.submit(invocation(**declared.request(SecretName("zoo"))), owner)
    ).number
    services = with_secret(rt, monkeypatch)
    async with running_worker(services, handlers_of(declaration.declared_types, {})):
        await wait_for_question(rt, number)
        await make.answer(number, "yes")
        ended = await wait_for_end(rt, number)
    assert (ended.status, ended.payload) == (Status.COMPLETED, {"key": "zoo"})
    assert ended.result == {"value": "***", "answer": "yes", "name": "zoo"}
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert "printed ***\nlogged *** of zoo\n" in log
    (question,), _ = await rt.questions.of_job(number)
    assert (question.text, question.values()) == ("Use ***?", ["yes", "***"])
    assert VALUE not in await stored(rt)
    assert VALUE.encode().hex() not in await stored(rt)  # bytes
    assert VALUE not in caplog.text


async def test_an_error_does_not_show_the_value(
    rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @job("zoo:open")
    def fails(ctx: BlockingRunContext, key: SecretName) -> None:
        raise Failure(f"cannot use {key.value}, {key!r}", declared="PERMANENT")

    submitted = await rt.submissions.submit(
        invocation(type="zoo:open", payload={"key": "zoo"}), owner
    )
    services = with_secret(rt, monkeypatch)
    async with running_worker(services, handlers_of(declaration.declared_types, {})):
        ended = await wait_for_end(rt, submitted.number)
    assert ended.last_error == "cannot use ***, SecretName('zoo')"
    assert VALUE not in await stored(rt)
    assert VALUE not in caplog.text


@pytest.mark.parametrize(
    ("secrets", "problem"),
    [
        ({}, "no secret 'zoo' on this worker; add it to [secrets]"),
        ({"zoo": {"env": "ZOO_KEY"}}, "secret 'zoo': the variable ZOO_KEY holds no secret"),
    ],
)
async def test_a_secret_that_a_worker_lacks_leaves_the_job_to_others(
    rt: Runtime, owner: Actor, secrets: dict[str, Any], problem: str
) -> None:
    job("zoo:open")(writes_everywhere)
    request = invocation(type="zoo:open", payload={"key": "zoo"})
    submitted = await rt.submissions.submit(request, owner)
    services = runtime_with(rt, secrets=secrets)
    async with running_worker(services, handlers_of(declaration.declared_types, {})):
        retrying = await wait_for_status(rt, submitted.number, Status.RETRYING)
    assert (retrying.last_error or "").startswith(problem)
    assert (retrying.retry_count, retrying.attempts) == (0, 0)


class Model(BaseModel):
    keys: list[SecretName]
    other: SecretName | None = None


@dataclass
class Data:
    keys: list[SecretName]
    other: SecretName | None = None


def of_model(model: type[Any], read: list[str]) -> JobType[..., None]:
    async def reads(ctx: RunContext, what: Any) -> None:
        read.extend(key.value for key in what.keys)

    reads.__annotations__["what"] = model
    return job(f"read:{model.__name__}")(reads)


@pytest.mark.parametrize("model", [Model, Data])
async def test_a_model_may_have_names_of_secrets(model: type[Any]) -> None:
    read: list[str] = []
    declared = of_model(model, read)
    payload = declared.request(model(keys=[SecretName("zoo"), SecretName("ark")]))["payload"]
    assert payload["keys"] == ["zoo", "ark"]
    await run_handler(declared.handler(), payload, secrets={"zoo": VALUE, "ark": "two of all"})
    assert read == [VALUE, "two of all"]


async def test_what_is_no_name_is_refused_and_not_shown(rt: Runtime, owner: Actor) -> None:
    declared = job("zoo:open")(writes_everywhere)
    refusal = r"must be the name of a secret of the workers \(\[secrets\]\), not its value$"
    for text in (PASTED, "two words", "", "x" * 64, "Zoo"):
        with pytest.raises(UsageError, match=f"^a SecretName {refusal}"):
            SecretName(text)
        with pytest.raises(UsageError, match=f"^payload of zoo:open: key: {refusal}"):
            declared.parameters.checked({"key": text})
        async with registered(rt, declared.description):
            request = invocation(type="zoo:open", payload={"key": text})
            with pytest.raises(InvalidParameters, match=f"^payload of zoo:open: key: {refusal}"):
                await rt.submissions.submit(request, owner)
    for model in (Model, Data):
        with pytest.raises(UsageError, match="not its value") as caught:
            of_model(model, []).parameters.checked({"keys": [PASTED]})
        assert PASTED not in str(caught.value)


async def test_the_schema_has_a_format_for_forms(rt: Runtime) -> None:
    declared = job("zoo:open")(writes_everywhere)
    async with registered(rt, *descriptions_of({"zoo:open": declared})):
        published = await rt.published_types.get("zoo:open")
    assert [*published.inputs.lines()] == ["key: secret-name, required"]
    assert published.parameters["properties"]["key"]["type"] == "string"


def test_outside_of_a_run_there_is_no_value() -> None:
    name = SecretName("zoo")
    with pytest.raises(UsageError, match="the secret 'zoo' is read in a run on a worker only"):
        _ = name.value
    assert (str(name), repr(name), {name} == {SecretName("zoo")}) == (
        "zoo", "SecretName('zoo')", True,
    )  # fmt: skip


async def test_a_test_gives_the_secrets() -> None:
    declared = job("zoo:open")(writes_everywhere)
    payload = {"key": "zoo"}
    with pytest.raises(NotOnThisWorker, match="no secret 'zoo' on this worker"):
        await run_handler(declared.handler(), payload, secrets={"ark": VALUE})
    with pytest.raises(Failure, match="'zoo' is shorter than 6 characters: it cannot be hidden"):
        await run_handler(declared.handler(), payload, secrets={"zoo": "1234"})


@pytest.mark.parametrize("app", ["draftsman_app", "draftsman_worker"])
def test_the_apps_of_tests_have_secrets(app: str, request: pytest.FixtureRequest) -> None:
    draftsman_app: DrainedApp = request.getfixturevalue(app)

    @job("zoo:count")
    async def count(ctx: RunContext, key: SecretName, other: SecretName = ARK) -> list[int]:
        return [len(key.value), len(other.value)]

    draftsman_app.secrets |= {"zoo": VALUE, "ark": "two of all"}
    count.submit(key=SecretName("zoo"))
    draftsman_app.drain()
    assert draftsman_app.jobs[0].result == {"value": [len(VALUE), len("two of all")]}
