"""`execute_tool`: run a declared program, with input and output that fit their schemas."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
from typing import Any, Final

from draftsman.domain.job_payloads import ExecuteTool, parse
from draftsman.domain.outcome import Done, Outcome
from draftsman.domain.reserved_names import Owner
from draftsman.errors import Failure
from draftsman.handlers.builtin.result_content import check_schema, read, reject_output, to_result
from draftsman.handlers.clone.clone_cleanup import clone_tag
from draftsman.handlers.clone.tree_removal import remove_tree
from draftsman.handlers.clone.workspace import make_private
from draftsman.handlers.context import RunContext
from draftsman.handlers.run_agent.quota_tracker import enforce_disk_quota
from draftsman.handlers.sandbox.run_sandbox import RunSandbox, open_run_sandbox
from draftsman.handlers.subprocesses.process import AgentProcess
from draftsman.outbound.timeouts import time_limit
from draftsman.settings import AgentSettings, ToolSettings

STEP: Final = "tool"
OUTPUT: Final = "output"
"""Artifact with an output that is too long for the result."""
MAX_OUTPUT: Final = 10 * 1024 * 1024
"""Bytes of standard output at most."""
INVOCATION: Final = "TOOL_INVOCATION_ID"
"""Variable with the id that is the same in every run, to make an effect once."""
SYSEXITS: Final = {
    **dict.fromkeys((64, 65, 66, 67, 68, 72, 73, 77, 78, 126, 127), "PERMANENT"),
    **dict.fromkeys((69, 75), "TRANSIENT_APP"),
}
"""What `sysexits.h` and shells mean by their codes, where the tool does not say otherwise."""


async def execute_tool(ctx: RunContext) -> Outcome:
    """Run the tool once; a resumed run repeats it, with the same invocation id."""
    asked = parse("execute_tool", ctx.job.payload)
    assert isinstance(asked, ExecuteTool)  # noqa: S101 - the type's own model
    tool = ctx.settings.tools.get(asked.tool)
    if tool is None:
        known = ", ".join(sorted(ctx.settings.tools)) or "none"
        text = f"there is no tool {asked.tool!r} on this worker; configured are: {known}"
        raise Failure(text, origin="tool", code="no_such_tool")
    if (why := await ctx.schemas.problem(tool.input, asked.input)) is not None:
        text = f"the input does not fit tool {asked.tool!r}: {why}"
        raise Failure(text, origin="tool", declared="PERMANENT")
    return Done(await ctx.step(STEP, lambda invocation: _run(ctx, asked, tool, invocation)))


async def _run(
    ctx: RunContext, asked: ExecuteTool, tool: ToolSettings, invocation: str
) -> dict[str, Any]:
    name = f"{ctx.job.name}.{ctx.job.run}-{clone_tag(ctx.job.id)}"
    folder = ctx.settings.data_dir / "tools" / name
    make_private(folder)
    what = f"tool {asked.tool!r}"
    box = None
    try:
        box = await open_run_sandbox(ctx.settings.sandbox, repo=None, home=folder)
        await ctx.event("sandbox_applied", box.as_event(tool.network), Owner.WORKER)
        async with time_limit("call", ctx.limits.call_timeout, f"{what} ran", origin="tool"):
            code, data = await _drive(ctx, tool, asked.input, invocation, box)
    finally:
        if box is not None:
            box.close()
        with contextlib.suppress(OSError):
            await asyncio.to_thread(remove_tree, folder)
    if code != 0:
        raise _exited(what, tool, code)
    if len(data) > MAX_OUTPUT:
        why = f"{what} printed over {MAX_OUTPUT:,} bytes"
        raise await reject_output(ctx, data[:MAX_OUTPUT], why)
    found = read(data, "" if tool.output is None else "application/json")
    await check_schema(ctx, tool.output, found, data, f"what {what} printed")
    return {"exit_code": code} | await to_result(ctx, data, found, OUTPUT)


async def _drive(
    ctx: RunContext, tool: ToolSettings, given: Any, invocation: str, box: RunSandbox
) -> tuple[int, bytes]:
    """Return exit code and output; a tool that prints too much is ended, one byte over."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def on_stderr(chunk: bytes) -> None:
        await ctx.log_stream(decoder.decode(chunk))

    program = AgentSettings(
        command=tool.command,
        env={**tool.env, INVOCATION: invocation},
        pass_env=tool.pass_env,
        network=tool.network,
    )
    async with time_limit("connect", ctx.limits.connect_timeout, "it did not start", origin="tool"):
        starting = await AgentProcess.start(
            program,
            cwd=box.home,
            home=box.home,
            lease=ctx.settings.worker.lease,
            on_stderr=on_stderr,
            box=box,
        )
    async with starting as process, enforce_disk_quota(process, box.home, ctx.settings.quotas):
        ctx.on_heartbeat(process.heartbeat)
        await process.send(json.dumps(given, ensure_ascii=False).encode())
        process.close_input()
        data = bytearray()
        async for chunk in process.chunks():
            data += chunk
            if len(data) > MAX_OUTPUT:
                return 0, bytes(data[: MAX_OUTPUT + 1])
        return await process.wait(), bytes(data)


def _exited(what: str, tool: ToolSettings, code: int) -> Failure:
    text = f"{what} exited with code {code}; what it said is in the log"
    declared = tool.exits.get(str(code)) or SYSEXITS.get(code)
    return Failure(text, origin="tool", code="exit", declared=declared, program_exit=code)
