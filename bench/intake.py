"""Submitting, one by one and in batches; each function measures once, in a database of its own."""

from __future__ import annotations

import asyncio
import json
import re
import time

from psycopg.types.json import Jsonb

from bench.jobs import ME, batches, request, services
from bench.place import Broken, Place, session
from bench.report import Figures
from draftsman.embedded import wheel
from draftsman.services.intake import row
from draftsman.store.queries import load


async def singles(place: Place, jobs: int) -> Figures:
    """Submit one by one, each call awaited before the next."""
    async with place.database() as name, services(place.url(name)) as rt:
        requests = [request("noop", number) for number in range(jobs)]
        began = time.perf_counter()
        for item in requests:
            await rt.intake.submit(item, ME)
        return {"rate": jobs / (time.perf_counter() - began)}


async def singles_pgbench(place: Place, jobs: int) -> Figures:
    """Let pgbench send the same statement, prepared, with one client. Raises Broken."""
    async with place.database() as name:
        async with services(place.url(name)) as rt:
            columns = json.dumps(row(request("noop"), ME, rt.types))
        process = await asyncio.create_subprocess_exec(
            *(str(wheel.program("pgbench")), "-n", "-M", "prepared", "-t", str(jobs), "-f", "-"),
            *("-D", f"row={columns}", "-D", "actor=bench", place.url(name)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate(_pgbench_script().encode())
        async with session(place.url(name)) as after:
            made = await after.value("SELECT count(*) FROM draftsman.jobs")
    found = re.search(r"^tps = ([\d.]+)", out.decode(), re.MULTILINE)
    if process.returncode or not found or made != jobs:
        raise Broken(f"pgbench made {made} of {jobs} jobs: {err.decode().strip()[-200:]}")
    return {"rate": float(found[1])}


async def thousands(place: Place, jobs: int) -> Figures:
    """Submit in batches of a thousand."""
    async with place.database() as name, services(place.url(name)) as rt:
        every = batches(jobs)
        began = time.perf_counter()
        for batch in every:
            await rt.intake.submit_many(batch, ME)
        return {"rate": jobs / (time.perf_counter() - began)}


async def thousands_alone(place: Place, jobs: int) -> Figures:
    """Send the same statement with batches that lie ready."""
    async with place.database() as name:
        async with services(place.url(name)) as rt:
            every = [Jsonb([row(item, ME, rt.types) for item in one]) for one in batches(jobs)]
        async with session(place.url(name)) as alone:
            statement = load("intake")["submit"]
            began = time.perf_counter()
            for batch in every:
                params = {"rows": batch, "actor": "bench"}
                await alone.conn.execute(statement, params, prepare=True)
            return {"rate": jobs / (time.perf_counter() - began)}


def _pgbench_script() -> str:
    """Return the statement of a submission, with a new id and key at each call."""
    new = "jsonb_build_object('id', u, 'idempotency_key', u)"
    rows = f"(SELECT jsonb_build_array(:row::jsonb || {new}) FROM gen_random_uuid() u)"
    statement = load("intake")["submit"].replace("%(rows)s::jsonb", rows)
    return " ".join(statement.replace("%(actor)s", ":actor").split()) + ";\n"
