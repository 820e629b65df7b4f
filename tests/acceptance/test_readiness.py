"""Readiness of workers, bots and the web inbox, while what they need is really broken."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import psycopg
from psycopg import sql

from draftsman.database.readiness import MIN_FREE, NO_REPLY, READ_ONLY
from draftsman.runtime import Runtime
from draftsman.sandbox import bwrap
from draftsman_testing.slack import FakeSlack
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation, Process
from tests.acceptance.story_processes import free_port
from tests.core.worker.workers import wait_for_end
from tests.support.server import Server

FILLS = """
import os
from pathlib import Path
from draftsman import Done
FILE = Path(os.environ["DRAFTSMAN_DATA_DIR"], "filled")
async def fills(ctx):
    try:
        with FILE.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
    except OSError as error:
        return Done({"error": error.strerror})
async def frees(ctx):
    FILE.unlink()
    return Done({})
"""


async def readiness(url: str) -> tuple[int, dict[str, str]]:
    """Return the status and the problems of `/readyz`; 0 while nothing listens."""
    async with httpx.AsyncClient(trust_env=False) as client:
        try:
            response = await client.get(f"{url}/readyz", timeout=10)
        except httpx.TransportError:
            return 0, {}
    body = response.json()
    assert body["ready"] == (response.status_code == 200)
    return response.status_code, body["problems"]


async def wait_ready(urls: Iterable[str]) -> None:
    """Wait until all are ready."""
    for url in urls:

        async def look(url: str = url) -> bool:
            return await readiness(url) == (200, {})

        await until(look, f"{url} is ready")


async def wait_problem(url: str, key: str, *texts: str) -> None:
    """Wait until a problem has one of these texts."""
    found: list[object] = []

    async def look() -> bool:
        status, problems = await readiness(url)
        found[:] = [status, problems]
        return status == 503 and any(text in problems.get(key, "") for text in texts)

    try:
        await until(look, f"{key} of {url}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {found}") from None


async def health_url(worker: Process) -> str:
    """Return the URL of the health endpoints of a worker."""
    await worker.says("health endpoints on port")
    found = re.search(r"health endpoints on port (\d+)", worker.output_text)
    assert found is not None
    return f"http://127.0.0.1:{found[1]}"


async def test_each_process_tells_the_truth_about_its_database_and_its_chat(
    installation: Installation, server: Server, database: str
) -> None:
    async with AsyncExitStack() as chat:
        slack = await chat.enter_async_context(FakeSlack())
        bot, inbox = (f"127.0.0.1:{free_port()}" for _ in range(2))
        installation.configure(
            None,
            slack__api_url=slack.api_url,
            slack__listen=bot,
            web__listen=inbox,
            worker__poll=0.5,
        )
        with installation.config.open("a") as config:
            config.write('slack.bot_token = { env = "BOT" }\nslack.app_token = { env = "APP" }\n')
        worker = installation.start("worker", "--health-port", "0")
        installation.start("bots", env={"BOT": slack.bot_token, "APP": slack.app_token})
        installation.start("web")
        urls = [await health_url(worker), f"http://{bot}", f"http://{inbox}"]
        await wait_ready(urls)

        name = sql.Identifier(database)
        with psycopg.connect(server.url("postgres"), autocommit=True) as admin:

            def end_sessions() -> None:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                    [database],
                )

            change = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on")
            admin.execute(change.format(name))
            end_sessions()
            for url in urls:
                await wait_problem(url, "database", READ_ONLY, "no heartbeat for")
            assert (await readiness(urls[2]))[1] == {"database": READ_ONLY}
            admin.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(name))
            end_sessions()
            await wait_ready(urls)

            admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
            end_sessions()
            for url in urls:
                await wait_problem(url, "database", NO_REPLY, "no heartbeat for")
            async with httpx.AsyncClient(trust_env=False) as client:
                for url in urls:
                    assert (await client.get(f"{url}/healthz")).status_code == 200, "it is alive"
            admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
            await wait_ready(urls)

        await chat.aclose()
        await wait_problem(urls[1], "sockets", "no Socket Mode connection", "cannot reach Slack")
        assert (await readiness(urls[0]))[0] == (await readiness(urls[2]))[0] == 200


async def test_a_worker_whose_disk_is_full_is_not_ready(
    installation: Installation, rt: Runtime
) -> None:
    """On a real file system, which a job fills."""
    (installation.folder / "filling.py").write_text(FILLS)
    installation.configure(
        None, worker__poll=0.5, handlers__fills="filling:fills", handlers__frees="filling:frees"
    )
    installation.data.mkdir()
    small = ("--size", str(MIN_FREE + 10_000_000), "--tmpfs", str(installation.data))
    confined = (bwrap.programs()[0], "--dev-bind", "/", "/", *small)
    worker = installation.start("worker", "--health-port", "0", through=confined)
    url = await health_url(worker)
    await wait_ready([url])

    async def finish(type: str) -> Any:
        done = await installation.run("submit", "--json", "--type", type)
        assert done.returncode == 0, done.stderr
        number = int(re.search(r'"number": (\d+)', done.stdout)[1])  # type: ignore[index]
        return (await wait_for_end(rt, number)).result

    assert await finish("fills") == {"error": "No space left on device"}
    await wait_problem(url, "disk", "the data folder has less than 100.0 MB free")
    assert await finish("frees") == {}
    await wait_ready([url])
