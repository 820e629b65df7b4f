"""pgbench with the statement of a submission: the speed of the database without a queue."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from bench.answer import ME
from bench.measure import WARM, Run
from bench.report import Figures
from bench.server import BenchError, session
from draftsman.database.embedded import binaries
from draftsman.database.named_queries import load
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.runtime import open_runtime
from draftsman.settings import settings_model


async def submit(run: Run) -> Figures:
    """Run the prepared statement with a single client of pgbench; raises BenchError."""
    async with open_runtime(settings_model().model_validate({"database_url": run.url})) as rt:
        request = row(invocation(type="noop", payload={"i": 0}), ME, rt.limits)
    request = {name: value for name, value in request.items() if value is not None}
    definitions = [f"{name}={_text(value)}" for name, value in request.items()]
    jobs = WARM + run.jobs
    process = await asyncio.create_subprocess_exec(
        *(str(binaries.program("pgbench")), "-n", "-M", "prepared", "-t", str(jobs), "-f", "-"),
        *(part for definition in (*definitions, "actor=bench") for part in ("-D", definition)),
        run.url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(_script(request).encode())
    async with session(run.url) as after:
        created = await after.value("SELECT count(*) FROM draftsman.jobs")
    rate = re.search(r"^tps = ([\d.]+)", out.decode(), re.MULTILINE)
    if process.returncode or not rate or created != jobs:
        raise BenchError(f"pgbench made {created} of {jobs} jobs: {err.decode().strip()[-200:]}")
    return {"rate": float(rate[1])}


def _text(value: object) -> str:
    """Return a value as PostgreSQL reads it."""
    if isinstance(value, list):
        assert not value
        return "{}"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _script(request: dict[str, Any]) -> str:
    """Return the statement of a submission, with a new id for each call."""
    queries = load("draftsman.jobs.requests.store.submissions")
    statement = re.sub(r"--.*", "", queries["submit_plain"])
    own = "WITH own AS MATERIALIZED (SELECT gen_random_uuid() AS id), request"
    statement = statement.replace("WITH request", own, 1)
    new = {"id": "(SELECT id FROM own)"}

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return new.get(name) or (f":{name}" if name in (*request, "actor") else "NULL")

    return " ".join(re.sub(r"%\((\w+)\)s", value, statement).split()) + ";\n"
