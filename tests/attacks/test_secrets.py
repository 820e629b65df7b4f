"""Attacks on secrets of draftsman's processes and the embedded database."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg.conninfo import conninfo_to_dict

from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.slack import FakeSlack
from tests.acceptance.processes import Installation
from tests.attacks.catalog import attack
from tests.attacks.process_snooping import SNOOPING_SOURCE, WITHOUT_PTRACE
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.core.worker.workers import wait_for_end, wait_for_status

TAKER = """
token, place = re.compile("xoxb-[0-9a-f-]+"), start["request"]["text"]
if start["checkpoint"] is None:
    found = {
        "worker": pry(grandparent()),
        "tokens": token.findall(" ".join(str(attempt(environ, pid)) for pid in processes())),
        "socket": attempt(knock, place),
    }
    say("checkpoint", id="loot", data=found)
    parked(hear())
say("approve", id="gate", key="gate", action={"push": "main"}, text="Push to main?")
reply = parked(hear())
say("result", summary=reply["outcome"], data=start["checkpoint"] or found)
"""
"""An agent that collects secrets, and asks for an approval that it would give itself."""


@pytest.fixture
def database(own_database: str) -> str:
    """Give a database that no process of another test uses."""
    return own_database


@pytest.fixture
def installation(folder: Path, database_url: str) -> Iterator[Installation]:
    """Give an installation on the database of the session's server."""
    installation = Installation(folder / "installation", database_url)
    yield installation
    installation.close()


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    """Give an empty Slack workspace."""
    async with FakeSlack() as slack:
        yield slack


def snoop(pid: int) -> dict[str, str]:
    """Attack a process from another process of the same user."""
    code = f"{SNOOPING_SOURCE}\nprint(json.dumps(pry({pid})))"
    command = [*WITHOUT_PTRACE, sys.executable, "-I", "-S", "-c", code]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    results: dict[str, str] = json.loads(completed.stdout)
    return results


def refused(results: dict[str, str]) -> bool:
    """Return whether every attempt failed."""
    return all(result.startswith("refused: ") for result in results.values())


def test_the_attack_works_without_protection() -> None:
    sleep = str(shutil.which("sleep"))
    with subprocess.Popen([*WITHOUT_PTRACE, sleep, "60"], env={"SECRET": "xoxb-1"}) as target:
        while Path(f"/proc/{target.pid}/comm").read_text() != "sleep\n":
            pass
        results = snoop(target.pid)
        target.kill()
    assert "SECRET=xoxb-1" in results["environ"]
    assert "SECRET=xoxb-1" in results["memory"]


@attack(
    "An agent reads Slack tokens from its worker's /proc and memory, and connects to the database's"
    " socket to approve its own request",
    surface="process",
    with_sandbox="the worker, the socket and the password are not visible",
    without_sandbox="permission denied: the worker is not dumpable, the server needs a password;"
    " an agent that runs as the worker's user can read the password's file, and a worker's"
    " environment while the worker starts: only the sandbox prevents that",
)
async def test_an_agent_gets_no_token_and_does_not_approve_its_own_request(
    rt: Runtime,
    make: Factory,
    owner: Actor,
    installation: Installation,
    database_url: str,
    tmp_path: Path,
) -> None:
    token = f"xoxb-{uuid4()}"
    host = str(conninfo_to_dict(database_url)["host"])
    installation.configure(SNOOPING_SOURCE + TAKER)
    repo = make_repository(tmp_path / "repo")
    number = await submit_agent_job(make, repo, text=str(Path(host) / ".s.PGSQL.5432"))
    installation.start("worker", env={"SLACK_BOT_TOKEN": token})
    await wait_for_status(rt, number, Status.WAITING_FOR_APPROVAL)
    await make.decide(number, True, owner)
    stolen = ((await wait_for_end(rt, number)).result or {})["data"]
    assert stolen["tokens"] == []
    assert refused(stolen["worker"])
    assert stolen["socket"].startswith("refused: ")
    assert token not in json.dumps(stolen)


@attack(
    "A process of the same user reads the environment, memory and files of the bots or a dashboard,"
    " or attaches to them",
    surface="process",
    with_sandbox="they are not visible",
    without_sandbox="permission denied: they are not dumpable",
)
async def test_bots_and_dashboards_cannot_be_inspected(
    installation: Installation, slack: FakeSlack
) -> None:
    installation.configure(slack__api_url=slack.api_url)
    with installation.config.open("a") as config:
        config.write('slack.bot_token = { env = "BOT" }\nslack.app_token = { env = "APP" }\n')
    secrets = {"BOT": slack.bot_token, "APP": slack.app_token}
    up = installation.start("up", "--headless", env=secrets, through=WITHOUT_PTRACE)
    await slack.sockets.wait(2)
    screen, end = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), end)
    dashboard = installation.start(
        "dashboard", env={"TERM": "xterm"}, through=WITHOUT_PTRACE, **streams
    )
    await asyncio.to_thread(os.read, screen, 1)  # drawn: the configuration is loaded
    pids = [up.pid, *up.children(), dashboard.pid]
    assert len(pids) == 4
    assert [pid for pid in pids if not refused(snoop(pid))] == []
    os.close(screen)
    os.close(end)
