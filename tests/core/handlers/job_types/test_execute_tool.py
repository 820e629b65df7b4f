"""`execute_tool` jobs."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.handlers.job_types.web_jobs import built_in, configured, done, log_of, result_of
from tests.core.worker.workers import run_of, wait_for_end
from tests.support.clock import Clock

S = Status


def tool(code: str, **settings: Any) -> dict[str, Any]:
    """Return the configuration of a tool that runs Python code."""
    prelude = "import json, os, sys\n"
    return {"it": {"command": ["{python}", "-I", "-S", "-c", prelude + code], **settings}}


async def run(
    rt: Runtime,
    make: Factory,
    code: str,
    tool_input: Any = None,
    *,
    overrides: Any = None,
    **settings: Any,
) -> Any:
    """Run a tool; return its job."""
    asks = configured(rt, tools=tool(code, **settings))
    payload = {"tool": "it", "input": tool_input}
    return await done(asks, make, "execute_tool", payload, overrides=overrides or {})


async def test_tool_gets_json_input_and_returns_json_output(rt: Runtime, make: Factory) -> None:
    code = "print(json.dumps({'sum': sum(json.load(sys.stdin))})); print('hm', file=sys.stderr)"
    schema = {"input_schema": {"items": {"type": "number"}}, "output_schema": {"required": ["sum"]}}
    job = await run(rt, make, code, [1, 2.5], **schema)
    assert job.result == {
        "exit_code": 0,
        "encoding": "json",
        "bytes": 13,
        "body": {"sum": 3.5},
    }
    assert "hm" in await log_of(rt, job.number)
    ran = await run_of(rt, job.number)
    assert (ran.exit_code, ran.params_snapshot["tool"]) == (0, "it")


async def test_tool_gets_the_environment_of_an_agent_and_the_invocation(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTSMAN_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("SECRET_OF_TEST", "secret")
    job = await run(
        rt, make, "print(json.dumps(dict(os.environ)))", env={"A": "b"}, output_schema={}
    )
    [step] = await rt.checkpoints.steps(job.number)
    environment = job.result["body"]
    assert (environment["A"], environment["TOOL_INVOCATION_ID"]) == ("b", step.invocation_id)
    assert "secret" not in environment.values()


async def test_output_that_does_not_match_its_schema_is_stored(rt: Runtime, make: Factory) -> None:
    job = await run(rt, make, "print('[1')", output_schema={"type": "array"})
    assert (job.status, job.error_class) == (S.FAILED, "INVALID_OUTPUT")
    assert await result_of(rt, job.number) == {"invalid-output": b"[1\n"}


async def test_tool_is_not_started_with_input_that_does_not_match_its_schema(
    rt: Runtime, make: Factory
) -> None:
    job = await run(rt, make, "", "text", input_schema={"type": "object"})
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert job.last_error == (
        "input does not match the schema of tool 'it': must be an object of keys and values,"
        " not 'text'"
    )
    assert await rt.checkpoints.steps(job.number) == []


@pytest.mark.parametrize(
    ("code", "exit_codes", "error_class"),
    [
        (1, {}, "TRANSIENT_INFRA"),
        (1, {"1": "PERMANENT"}, "PERMANENT"),
        (64, {}, "PERMANENT"),
        (75, {}, "TRANSIENT_APP"),
    ],
)
async def test_exit_codes_have_an_error_class(
    rt: Runtime, make: Factory, code: int, exit_codes: dict[str, str], error_class: str
) -> None:
    job = await run(rt, make, f"sys.exit({code})", exit_codes=exit_codes)
    assert job.error_class == error_class
    assert job.last_error == f"tool 'it' exited with code {code}; see the log of the run"
    assert (await run_of(rt, job.number)).exit_code == code


async def test_tool_has_its_own_timeout_and_that_of_its_job(rt: Runtime, make: Factory) -> None:
    code = "import time; time.sleep(600)"
    job = await run(rt, make, code, call_timeout=0.3)
    assert (job.status, job.error_class) == (S.RETRYING, "TRANSIENT_APP")
    assert job.last_error == "tool 'it' ran for 0.3 s (call limit)"
    own = await run(rt, make, code, call_timeout=60, overrides={"call_timeout": 0.2})
    assert own.last_error == "tool 'it' ran for 0.2 s (call limit)"


async def test_retry_budgets_of_a_tool_and_of_a_job_are_stored_at_submission(
    rt: Runtime, make: Factory
) -> None:
    asks = configured(rt, tools=tool("", max_attempts=7, max_retries=1))
    makes = Factory(asks, make.owner)
    payload = {"tool": "it"}
    job = await rt.read_model.job(await makes.queued(type="execute_tool", payload=payload))
    assert (job.max_attempts, job.max_retries) == (7, 1)
    own = {"max_attempts": 2}
    number = await makes.queued(type="execute_tool", payload=payload, overrides=own)
    job = await rt.read_model.job(number)
    assert (job.max_attempts, job.max_retries) == (2, 1)


async def test_endless_output_is_stopped_at_the_size_limit(rt: Runtime, make: Factory) -> None:
    code = "while True: sys.stdout.write('x' * 65536)"
    job = await run(rt, make, code)
    assert (job.status, job.error_class) == (S.FAILED, "INVALID_OUTPUT")
    assert job.last_error is not None
    assert "printed more than 10,485,760 bytes" in job.last_error
    assert len((await result_of(rt, job.number))["invalid-output"]) == 10_485_760


async def test_a_job_waits_for_a_worker_that_has_its_tool(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    """A worker without the tool does not decide for the others, whatever retries the job has."""
    payload = {"tool": "it", "input": {}}
    own = {"max_retries": 0, "max_attempts": 1}
    job = await done(configured(rt), make, "execute_tool", payload, overrides=own)
    assert (job.status, job.error_class) == (S.RETRYING, "TRANSIENT_APP")
    assert (job.attempts, job.retry_count) == (0, 0)
    assert job.last_error == "no tool 'it' on this worker; configured tools: none"
    await clock.forward(6)
    assert await rt.promotion.promote(LeaderTerm()) == 1
    async with built_in(configured(rt, tools=tool("print('{}')"))):
        assert (await wait_for_end(rt, job.number)).status is S.COMPLETED
