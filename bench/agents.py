"""Start of a program in the sandbox, and calls of an agent through its gateway.

Each is measured in alternation with the same work without it.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.measure import Run
from bench.report import Figures
from bench.server import BenchError, session
from bench.volumes import ME, PEOPLE
from draftsman.agent_runs.clones.git import git
from draftsman.handlers import registry
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.configuration import configured_directory, configured_policy
from draftsman.runtime import Runtime, open_runtime
from draftsman.sandbox.gateway_access import GatewayAccess
from draftsman.sandbox.network_proxy.access import PROXY_PORT, ProxyAccess
from draftsman.sandbox.processes.process import AgentProcess
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.sandbox.sandbox_port import SandboxPort
from draftsman.settings import settings_model
from draftsman.settings.agents import AgentSettings
from draftsman.settings.sandbox import SandboxSettings

PROGRAM: Final = ("/bin/sh", "-c", "echo started")
MODES: Final = ("bwrap", "landlock", "off")
WARM: Final = 3
"""Starts and calls that are not counted."""
LEASE: Final = 60.0
SECONDS: Final = 300.0
"""Limit of the job that makes the calls."""
PROVIDER: Final = """
import http.server, json, sys
BODY = json.dumps({"model": "m", "usage": {"input_tokens": 10, "output_tokens": 10}}).encode()
class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        head = "HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\n"
        head += f"content-length: {len(BODY)}\\r\\n\\r\\n"
        self.wfile.write(head.encode() + BODY)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
print(server.server_port, flush=True)
server.serve_forever()
"""
"""A model that answers at once, in a process of its own."""
CALLS: Final = """
import http.client, json, os, sys, time, urllib.parse
def calls(url, count, token):
    parts, times = urllib.parse.urlsplit(url), []
    client = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    body = json.dumps({"model": "m", "max_tokens": 10, "messages": []})
    for _ in range(count):
        began = time.perf_counter()
        client.request("POST", "/v1/messages", body, {"x-api-key": token})
        response = client.getresponse()
        assert response.status == 200, response.read()
        response.read()
        times.append((time.perf_counter() - began) * 1e3)
    return times
"""
AGENT: Final = f"""{CALLS}
start = json.loads(sys.stdin.readline())
url, token = os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]
times = calls(url, int(start["request"]["text"]), token)
print(json.dumps({{"type": "result", "summary": "", "data": {{"times": times}}}}), flush=True)
"""
DIRECT: Final = f"{CALLS}\nprint(json.dumps(calls(sys.argv[1], int(sys.argv[2]), '')))"
Start = Callable[[], Awaitable[float]]


async def agents(run: Run) -> Figures:
    """Measure starts in each mode, and calls; differences are of medians."""
    with tempfile.TemporaryDirectory(prefix="draftsman-bench-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        figures = await _starts(folder, max(10, run.jobs // 10))
        figures |= await _calls(run, folder, run.jobs)
    return figures


async def _starts(folder: Path, count: int) -> Figures:
    """Start the program in alternation: alone, in each mode, and in bwrap with two ports."""
    starts: dict[str, Start] = {"bare_ms": _bare}
    for mode in MODES:
        starts[f"{mode}_ms"] = _starter(folder / mode, mode, ports=False)
    starts["ports_ms"] = _starter(folder / "ports", "bwrap", ports=True)
    times: dict[str, list[float]] = {name: [] for name in starts}
    cpu: dict[str, list[float]] = {name: [] for name in starts}
    for _ in range(WARM + count):
        for name, start in starts.items():
            used = _cpu()
            times[name].append(await start())
            cpu[name].append((_cpu() - used) * 1e3)
    figures = {name: median(taken[WARM:]) for name, taken in times.items()}
    own = {name: median(used[WARM:]) for name, used in cpu.items()}
    return figures | {
        "over_ms": figures["bwrap_ms"] - figures["bare_ms"],
        "over_cpu_ms": own["bwrap_ms"] - own["bare_ms"],
        "ports_over_ms": figures["ports_ms"] - figures["bwrap_ms"],
    }


def _cpu() -> float:
    """Return the CPU seconds of this process and of its ended children."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


async def _bare() -> float:
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*PROGRAM, stdout=PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    taken = time.perf_counter() - began
    await process.wait()
    return taken * 1e3


def _starter(folder: Path, mode: str, *, ports: bool) -> Start:
    """Return a function that returns the milliseconds from a start to the first output."""
    settings = SandboxSettings.model_validate({"mode": mode})

    async def ignore(_: bytes) -> None:
        pass

    async def start() -> float:
        began = time.perf_counter()
        sandbox = await open_run_sandbox(settings, repo=folder / "repo", home=folder / "home")
        with closing(sandbox), GatewayAccess("anthropic", "x", private_network=True) as gateway:
            proxy = ProxyAccess(SandboxPort("network proxy", PROXY_PORT))
            async with await AgentProcess.start(
                AgentSettings(command=PROGRAM),
                cwd=folder / "repo",
                home=folder / "home",
                lease=LEASE,
                on_stderr=ignore,
                sandbox=sandbox,
                gateway=gateway if ports else None,
                proxy=proxy if ports else None,
            ) as process:
                printed = await anext(process.chunks())
                taken = time.perf_counter() - began
            proxy.port.close()
        if printed != b"started\n":
            raise BenchError(f"the program printed {printed!r} in {mode}")
        return taken * 1e3

    return start


async def _calls(run: Run, folder: Path, count: int) -> Figures:
    """Call a model directly, then as an agent of a job, whose gateway records each call."""
    async with _provider() as url:
        direct = await _direct(url, WARM + count)
        values = {
            "database_url": run.url,
            "data_dir": folder / "data",
            "people": PEOPLE,
            "agents": {
                "bench": {
                    "command": [sys.executable, "-I", "-S", "-c", AGENT],
                    "gateway": "model",
                }
            },
            "gateways": {"model": {"provider": "anthropic", "base_url": url}},
            "prices": {"m": {"input": 1, "output": 1, "date": "2026-11-01", "source": "bench"}},
        }
        async with open_runtime(settings_model().model_validate(values)) as rt:
            repo = await _prepare(rt, folder)
            cpu = []
            for calls in (WARM, WARM + count):
                used = time.process_time()
                times = await _job(rt, repo, calls)
                cpu.append(time.process_time() - used)
    async with session(run.url) as database:
        used = await database.value("SELECT max((usage->>'output_tokens')::int) FROM job_runs")
    if used != 10 * (WARM + count):
        raise BenchError(f"{used} tokens were recorded of {WARM + count} calls")
    figures = {"direct_ms": median(direct[WARM:]), "call_ms": median(times[WARM:])}
    return figures | {
        "call_over_ms": figures["call_ms"] - figures["direct_ms"],
        "call_cpu_ms": (cpu[1] - cpu[0]) / count * 1e3,
    }


async def _prepare(rt: Runtime, folder: Path) -> Path:
    """Save the people, and return a new repository."""
    directory = configured_directory(rt.settings)
    await rt.people.save(directory)
    rt.policy.update_from(configured_policy(rt.settings, directory))
    repo = folder / "repo"
    repo.mkdir()
    await git("init", "-q", "--template=", ".", cwd=repo)
    (repo / "a").write_text("a\n")
    await git("add", "-A", cwd=repo)
    await git("commit", "-qm", "a", cwd=repo)
    return repo


async def _job(rt: Runtime, repo: Path, count: int) -> list[float]:
    """Return the milliseconds of the calls that an agent makes."""
    request = invocation(agent="bench", repo=str(repo), text=str(count), title="calls")
    [submitted] = await rt.submissions.submit_many([request], ME)
    process = rt.worker_process(registry.load({}), slots=1, leader=False, queues=None)
    working = asyncio.create_task(process.run())
    try:
        async with asyncio.timeout(SECONDS):
            while (job := await rt.read_model.job(submitted.number)).finished_at is None:
                await asyncio.wait({working}, timeout=0.2)
                if working.done():
                    working.result()
    finally:
        process.stop.set()
        await working
    result: dict[str, Any] | None = job.result
    if result is None:
        raise BenchError(f"the calls failed: {job.last_error}")
    return [float(taken) for taken in result["data"]["times"]]


@asynccontextmanager
async def _provider() -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", PROVIDER, stdout=PIPE
    )
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


async def _direct(url: str, count: int) -> list[float]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", DIRECT, url, str(count)),
        stdout=PIPE,
        env={"PATH": os.defpath},
    )
    output, _ = await process.communicate()
    times: list[float] = json.loads(output)
    return times
