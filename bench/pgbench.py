"""pgbench with the statement of a submission: what the database alone makes of it."""

from __future__ import annotations

import asyncio
import json
import re

from bench.answer import ME
from bench.measure import WARM, Run
from bench.report import Figures
from bench.server import BenchError, session
from draftsman.embedded import binaries
from draftsman.runtime import open_runtime
from draftsman.services.jobs.submissions import invocation, row
from draftsman.settings import Settings
from draftsman.store.queries import load


async def submit(run: Run) -> Figures:
    """Let pgbench send it, prepared, with one client. Raises Broken."""
    async with open_runtime(Settings.model_validate({"database_url": run.url})) as rt:
        request = row(invocation(type="noop", payload={"i": 0}), ME, rt.limits)
    columns = json.dumps(request, default=str)
    jobs = WARM + run.jobs
    process = await asyncio.create_subprocess_exec(
        *(str(binaries.program("pgbench")), "-n", "-M", "prepared", "-t", str(jobs), "-f", "-"),
        *("-D", f"shared={columns}", "-D", "actor=bench", run.url),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(_script().encode())
    async with session(run.url) as after:
        made = await after.value("SELECT count(*) FROM draftsman.jobs")
    found = re.search(r"^tps = ([\d.]+)", out.decode(), re.MULTILINE)
    if process.returncode or not found or made != jobs:
        raise BenchError(f"pgbench made {made} of {jobs} jobs: {err.decode().strip()[-200:]}")
    return {"rate": float(found[1])}


def _script() -> str:
    """Return the statement of a submission, with a new id and key at each call."""
    new = "jsonb_build_object('id', u, 'idempotency_key', u)"
    rows = f"(SELECT jsonb_build_array({new}) FROM gen_random_uuid() u)"
    statement = re.sub(r"--.*", "", load("intake")["submit"]).replace("%(rows)s::jsonb", rows)
    for name in ("shared", "actor"):
        statement = statement.replace(f"%({name})s", f":{name}")
    return " ".join(statement.split()) + ";\n"
