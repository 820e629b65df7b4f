"""`execute_tool`: run of a configured program, with schemas for its input and output."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
from typing import Any, Final

from draftsman.agent_runs.clones.tree_removal import clone_tag, remove_tree
from draftsman.agent_runs.clones.workspace import make_private
from draftsman.agent_runs.session.quota_tracker import enforce_disk_quota
from draftsman.errors import Failure, NotOnThisWorker
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.job_types.result_content import (
    check_schema,
    decode_output,
    reject_output,
    to_result,
)
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.requests.payloads import ExecuteTool, parse
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.log import redact
from draftsman.outbound.timeouts import time_limit
from draftsman.sandbox.network_proxy.access import open_network_proxy
from draftsman.sandbox.processes.process import AgentProcess
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.sandbox.sandbox_plan import RunSandbox
from draftsman.settings.agents import AgentSettings
from draftsman.settings.tools import ToolSettings

STEP: Final = "tool"
OUTPUT: Final = "output"
"""Artifact with an output too long for the result."""
MAX_OUTPUT: Final = 10 * 1024 * 1024
"""Maximum bytes of standard output."""
INVOCATION: Final = "TOOL_INVOCATION_ID"
"""Variable with an id that is the same in every run, for use as an idempotency key."""
SYSEXITS: Final = {
    **dict.fromkeys((64, 65, 66, 67, 68, 72, 73, 77, 78, 126, 127), "PERMANENT"),
    **dict.fromkeys((69, 75), "TRANSIENT_APP"),
}
"""Default error classes of the exit codes of `sysexits.h` and shells."""


async def execute_tool(ctx: RunContext) -> Outcome:
    """Run the tool; an interrupted run repeats it with the same invocation id."""
    run = worker_run(ctx)
    payload = parse("execute_tool", ctx.job.payload)
    assert isinstance(payload, ExecuteTool)  # noqa: S101 - the type's own model
    tool = run.settings.tools.get(payload.tool)
    if tool is None:
        names = ", ".join(sorted(run.settings.tools)) or "none"
        text = f"no tool {payload.tool!r} on this worker; configured tools: {names}"
        raise NotOnThisWorker(text, origin="tool", code="no_such_tool")
    if (problem := await run.schemas.problem(tool.input_schema, payload.input)) is not None:
        text = f"input does not match the schema of tool {payload.tool!r}: {problem}"
        raise Failure(text, origin="tool", declared="PERMANENT")
    return Done(await ctx.step(STEP, lambda invocation: _run(run, payload, tool, invocation)))


async def _run(
    run: WorkerRun, payload: ExecuteTool, tool: ToolSettings, invocation: str
) -> dict[str, Any]:
    name = f"{run.job.name}.{run.job.run}-{clone_tag(run.job.id)}"
    folder = run.settings.data_dir / "tools" / name
    make_private(folder)
    label = f"tool {payload.tool!r}"
    sandbox = None
    try:
        sandbox = await open_run_sandbox(run.settings.sandbox, repo=None, home=folder)
        network = run.settings.resolve_network(tool.network)
        applied = sandbox.as_event(network)
        await run.describe(
            {
                "tool": payload.tool,
                "command": [redact(word) for word in tool.command],
                "sandbox": applied,
            }
        )
        await run.event("sandbox_applied", applied, Owner.WORKER)
        async with time_limit("call", run.limits.call_timeout, f"{label} ran", origin="tool"):
            code, data = await _drive(run, payload, tool, invocation, network, sandbox)
        await run.exited(code)
    finally:
        if sandbox is not None:
            sandbox.close()
        with contextlib.suppress(OSError):
            await asyncio.to_thread(remove_tree, folder)
    if code != 0:
        raise _exit_failure(label, tool, code)
    if len(data) > MAX_OUTPUT:
        problem = f"{label} printed more than {MAX_OUTPUT:,} bytes"
        raise await reject_output(run, data[:MAX_OUTPUT], problem)
    output = decode_output(data, "" if tool.output_schema is None else "application/json")
    await check_schema(run, tool.output_schema, output, data, f"output of {label}")
    return {"exit_code": code} | await to_result(run, data, output, OUTPUT)


async def _drive(
    run: WorkerRun,
    payload: ExecuteTool,
    tool: ToolSettings,
    invocation: str,
    network: bool | tuple[str, ...],
    sandbox: RunSandbox,
) -> tuple[int, bytes]:
    """Return exit code and output, at most one byte over MAX_OUTPUT; the tool is killed then."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def on_stderr(chunk: bytes) -> None:
        await run.log_stream(decoder.decode(chunk))

    program = AgentSettings(
        command=tool.command,
        env={**tool.env, INVOCATION: invocation},
        pass_env=tool.pass_env,
        network=network,
    )
    async with open_network_proxy(
        http=run.settings.http,
        network=network,
        sandbox=sandbox,
        limits=run.limits,
        setting=f"network of [tools.{payload.tool}], or to a group in [networks]",
        log=run.log_line,
    ) as proxy:
        async with time_limit(
            "connect", run.limits.connect_timeout, "tool did not start", origin="tool"
        ):
            starting = await AgentProcess.start(
                program,
                cwd=sandbox.home,
                home=sandbox.home,
                lease=run.settings.worker.stop_after,
                on_stderr=on_stderr,
                sandbox=sandbox,
                proxy=proxy,
            )
        async with (
            starting as process,
            enforce_disk_quota(process, sandbox.home, run.settings.quotas),
        ):
            return await _read_output(run, process, payload.input)


async def _read_output(run: WorkerRun, process: AgentProcess, tool_input: Any) -> tuple[int, bytes]:
    """Send the input, and return exit code and output."""
    run.on_heartbeat(process.heartbeat)
    await process.send(json.dumps(tool_input, ensure_ascii=False).encode())
    process.close_input()
    data = bytearray()
    async for chunk in process.chunks():
        data += chunk
        if len(data) > MAX_OUTPUT:
            return 0, bytes(data[: MAX_OUTPUT + 1])
    return await process.wait(), bytes(data)


def _exit_failure(label: str, tool: ToolSettings, code: int) -> Failure:
    text = f"{label} exited with code {code}; see the log of the run"
    declared = tool.exit_codes.get(str(code)) or SYSEXITS.get(code)
    return Failure(text, origin="tool", code="exit", declared=declared, program_exit=code)
