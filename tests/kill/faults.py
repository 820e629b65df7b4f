"""Faults for a process, or for its dependencies, at a point where it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import psutil
import psycopg

from draftsman_testing.waits import until
from tests.kill.campaign import FaultAction
from tests.kill.processes import Process, Reached
from tests.support.server import Server

CUT: Final = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY (%s)"
AGENT: Final = "agent-of-the-kill-tests"
"""An argument of the agent's command line, by which its process is found."""


async def kill(process: Process, reached: Reached) -> bool:
    """SIGKILL the process; its agent must end soon."""
    agents = _agents(process)
    await process.kill()
    _, alive = await asyncio.to_thread(psutil.wait_procs, agents, 10)
    assert alive == [], f"at {reached.points} the agent outlived its worker"
    return False


def cut(admin: psycopg.Connection[tuple[object, ...]]) -> FaultAction:
    """Return a fault that drops every connection of the process, which then continues.

    After a statement its reply is lost.
    """

    async def inject(process: Process, reached: Reached) -> bool:
        async def gone() -> bool:
            return not await asyncio.to_thread(_cut, admin, reached.backends)

        await until(gone, "the end of the sessions")
        process.go_on(lose_reply=True)
        return True

    return inject


def crash(server: Server) -> FaultAction:
    """Return a fault that stops the server at once, like a crash, and starts it again."""

    async def inject(process: Process, reached: Reached) -> bool:
        await asyncio.to_thread(server.crash)
        process.go_on(lose_reply=True)
        return True

    return inject


FAULTS: Final[dict[str, Callable[[Server], FaultAction]]] = {
    "kill": lambda _: kill,
    "cut": lambda server: cut(server.admin),
    "crash": crash,
}
"""The actions at a point, by name."""


class KillAgent:
    """SIGKILL the agent of the process, if it runs; `hit` are the points where it did."""

    def __init__(self) -> None:
        self.hit: set[str] = set()

    async def __call__(self, process: Process, reached: Reached) -> bool:
        for agent in _agents(process):
            with suppress(psutil.NoSuchProcess):
                agent.kill()
                self.hit.update(reached.points)
        process.go_on()
        return True


def _cut(admin: psycopg.Connection[tuple[object, ...]], backends: list[int]) -> bool:
    """Terminate these backends, all at once; return whether any was still connected."""
    return bool(admin.execute(CUT, [backends]).fetchall())


def _agents(process: Process) -> list[psutil.Process]:
    """Return the agents of a process, without guards and sandboxes."""
    agents = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                arguments = child.cmdline() or [""]  # a process that has just ended has none
                around = arguments[0].endswith("bwrap") or any(
                    "sandbox.processes.guard" in w for w in arguments
                )
                if AGENT in arguments and not around:
                    agents.append(child)
    return agents
