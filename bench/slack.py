"""Slack over HTTP: from a signed event to the job and to the acknowledgment.

The reference is a Bolt app behind the same ASGI server that only acknowledges.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from bench import checks
from bench.measure import WARM, Run, percentiles
from bench.report import Figures
from bench.server import DEADLINE, BenchError

AT_ONCE = 16
"""Number of connections, each with an event in flight."""
SECRET = "0123456789abcdef0123456789abcdef"
SERVES = "serving HTTP on 127.0.0.1:"
CONFIG = """
[slack]
mode = "http"
listen = "127.0.0.1:0"
api_url = "{api}"
bot_token = {{ env = "BENCH_BOT_TOKEN" }}
signing_secret = {{ env = "BENCH_SIGNING_SECRET" }}
[people.bench]
slack = "U000000001"
roles = ["invoker"]
"""
OURS = (sys.executable, "-m", "draftsman_tui", "bots")
BARE = (sys.executable, "-m", "bench.bare_bolt_app")


async def events(run: Run) -> Figures:
    """Send mentions to `draftsman bots`; each acknowledged mention must be a job."""
    after = await run.newest()
    with tempfile.TemporaryDirectory() as folder:
        async with _api() as api:
            config = Path(folder, "draftsman.toml")
            config.write_text(CONFIG.format(api=api))
            where = {"DRAFTSMAN_CONFIG": str(config), "DRAFTSMAN_DATA_DIR": folder}
            async with _served(OURS, where | {"DRAFTSMAN_DATABASE_URL": run.url}) as port:
                await _ready(port)
                figures = await _sent(port, run.jobs)
    await checks.submitted(run.url, after, WARM + run.jobs)
    return figures


async def bare(run: Run) -> Figures:
    """Send as many mentions to the bare Bolt app."""
    async with _api() as api, _served(BARE, {"BENCH_API": api}) as port:
        return await _sent(port, run.jobs)


async def _sent(port: int, count: int) -> Figures:
    """Send events, all signed in advance; raises BenchError if any is rejected."""
    requests = [_request(number) for number in range(WARM + count)]
    await _through(port, iter(requests[:WARM]))
    left = iter(requests[WARM:])
    began = time.monotonic()
    lines = await asyncio.gather(*(_through(port, left) for _ in range(AT_ONCE)))
    took = time.monotonic() - began
    return {"rate": count / took} | percentiles(
        [seconds * 1e3 for line in lines for seconds in line]
    )


async def _through(port: int, requests: Iterator[bytes]) -> list[float]:
    """Send requests in sequence on a connection; return the seconds to each response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = []
    try:
        for request in requests:
            began = time.monotonic()
            status = await _answer(reader, writer, request)
            times.append(time.monotonic() - began)
            if status != 200:
                raise BenchError(f"an event was answered with {status}")
    finally:
        writer.close()
    return times


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> int:
    writer.write(request)
    async with asyncio.timeout(DEADLINE):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
        await reader.readexactly(int(length or 0))
    return int(head.split()[1])


def _request(number: int) -> bytes:
    """Return a new mention, signed now."""
    now = time.time()
    ts = f"{int(now)}.{number:06d}"
    event = {
        "type": "app_mention",
        "user": "U000000001",
        "text": f"<@U00000BOT1> fix thing {number}",
        "ts": ts,
        "channel": "C000000001",
        "event_ts": ts,
        "team": "T000000001",
    }
    whole = {
        "token": "bench",
        "team_id": "T000000001",
        "api_app_id": "A000000001",
        "event": event,
        "type": "event_callback",
        "event_id": f"Ev{number:09d}",
        "event_time": int(now),
        "authorizations": [{"team_id": "T000000001", "user_id": "U00000BOT1", "is_bot": True}],
    }
    body = json.dumps(whole).encode()
    signed = hmac.new(SECRET.encode(), b"v0:%d:%s" % (now, body), hashlib.sha256).hexdigest()
    lines = (
        "POST /slack/events HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-Slack-Request-Timestamp: {int(now)}",
        f"X-Slack-Signature: v0={signed}",
    )
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _ready(port: int) -> None:
    """Wait until the bot knows its identity."""
    ask = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    deadline = time.monotonic() + DEADLINE
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while await _answer(reader, writer, ask) != 200:
        if time.monotonic() > deadline:
            raise BenchError("draftsman bots is not ready")
        await asyncio.sleep(0.05)
    writer.close()


@asynccontextmanager
async def _api() -> AsyncIterator[str]:
    """Yield the address of a Web API that accepts everything."""
    identity = {
        "ok": True,
        "team_id": "T000000001",
        "user_id": "U00000BOT1",
        "bot_id": "B000000001",
    }

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(identity | {"channel": "C000000001", "ts": f"{time.time():.6f}"})

    app = web.Application()
    app.add_routes([web.route("*", "/api/{method}", answer)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/api/"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def _served(command: tuple[str, ...], more: dict[str, str]) -> AsyncIterator[int]:
    """Start a server; yield its port and kill it on exit; raises BenchError."""
    secrets = {"BENCH_BOT_TOKEN": "xoxb-bench", "BENCH_SIGNING_SECRET": SECRET}
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | secrets | more,
        cwd=Path(__file__).parents[1],
    )
    assert process.stderr is not None
    last = b""
    try:
        async with asyncio.timeout(DEADLINE):
            while line := await process.stderr.readline():
                last = line
                if SERVES.encode() in line:
                    break
        if not line:
            raise BenchError(f"no server: {last.decode(errors='replace').strip()[:200]}")
        rest = asyncio.create_task(process.stderr.read())
        yield int(line.partition(SERVES.encode())[2].split()[0])
        process.terminate()
        async with asyncio.timeout(DEADLINE):
            await process.wait()
            await rest
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
