"""A search of an agent for the key of its gateway."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from draftsman.handlers import registry
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.attacks.catalog import attack
from tests.core.agent_runs.gateway_agents import REPLY, provider, with_gateway
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.core.worker.workers import running_worker, wait_for_end
from tests.support.faulty_server import FaultyServer
from tests.support.slow import slow_except

__all__ = ["provider"]
SEARCH = """
import glob, re
reply = call(max_tokens=5)
patterns = {
    "key": re.compile(b"sk-[0-9a-f]{32}"),
    "token": re.compile(re.escape(os.environ["ANTHROPIC_API_KEY"].encode())),
}
found = {name: 0 for name in patterns}
searched = {"processes": 0, "bytes": 0}
def is_open(number):
    try: return bool(os.fstat(number))
    except OSError: return False
descriptors = [number for number in range(256) if is_open(number)]
def look(data):
    searched["bytes"] += len(data)
    for name, pattern in patterns.items():
        found[name] += len(set(pattern.findall(data)))
for folder in glob.glob("/proc/[0-9]*"):
    searched["processes"] += 1
    for name in ("environ", "cmdline"):
        try: look(open(f"{folder}/{name}", "rb").read())
        except OSError: pass
    try:
        maps = open(f"{folder}/maps").read().splitlines()
        with open(f"{folder}/mem", "rb", 0) as memory:
            for line in maps:
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                if "r" in line.split()[1] and end - start < 1 << 28:
                    try:
                        memory.seek(start)
                        look(memory.read(end - start))
                    except (OSError, ValueError, OverflowError): pass
    except OSError: pass
for root in ("/home", "/workspace", "/run", "/tmp", "/etc"):
    for path in glob.glob(f"{root}/**", recursive=True, include_hidden=True):
        try:
            if os.path.isfile(path): look(open(path, "rb").read())
        except OSError: pass
say("result", summary=json.dumps([reply, found, searched, descriptors]))
"""


@attack(
    "An agent searches all memory, environments and files that it can read for the gateway's key",
    surface="process",
    with_sandbox="there is none: the worker adds it outside",
    without_sandbox="Landlock: there is none in what it can read",
)
@pytest.mark.parametrize("mode", slow_except(["bwrap"], ["bwrap", "landlock"]))
async def test_the_key_of_the_gateway_is_not_in_the_sandbox(
    rt: Runtime,
    make: Factory,
    tmp_path: Path,
    provider: FaultyServer,
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = f"sk-{uuid4().hex}"
    monkeypatch.setenv("KEY_OF_TEST", key)
    services = with_gateway(rt, tmp_path, provider, SEARCH, mode)
    number = await submit_agent_job(make, make_repository(tmp_path / "repo"))
    async with running_worker(services, registry.load({}), leader=False):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    reply, found, searched, descriptors = json.loads((job.result or {})["summary"])
    assert [request.headers["x-api-key"] for request in provider.requests] == [key]
    assert (reply, found["key"]) == (REPLY, 0)
    assert descriptors == [0, 1, 2]
    assert found["token"] > 1, "the search finds the token in the environment and in memory"
    assert searched["processes"] > 1
    assert searched["bytes"] > 1 << 20
