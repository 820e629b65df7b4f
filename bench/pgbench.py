"""pgbench with the statement of a submission: the speed of the database without a queue."""

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
    """Run the prepared statement with a single client of pgbench; raises BenchError."""
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
        created = await after.value("SELECT count(*) FROM draftsman.jobs")
    rate = re.search(r"^tps = ([\d.]+)", out.decode(), re.MULTILINE)
    if process.returncode or not rate or created != jobs:
        raise BenchError(f"pgbench made {created} of {jobs} jobs: {err.decode().strip()[-200:]}")
    return {"rate": float(rate[1])}


def _script() -> str:
    """Return the statement of a submission, with a new id and key for each call."""
    new = "jsonb_build_object('id', u, 'idempotency_key', u)"
    rows = f"(SELECT jsonb_build_array({new}) FROM gen_random_uuid() u)"
    statement = re.sub(r"--.*", "", load("submissions")["submit"]).replace("%(rows)s::jsonb", rows)
    for name in ("shared", "actor"):
        statement = statement.replace(f"%({name})s", f":{name}")
    return " ".join(statement.split()) + ";\n"
