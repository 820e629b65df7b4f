"""A process of a queue: `python -m bench.peers.child NAME ROLE [URL SETTINGS [TARGET]]`.

Its CPU is measured separately. It reads commands on stdin and writes events on stdout, a JSON
object per line. Roles: `about` prints the description, `prepare` creates tables, `produce` submits
jobs, `work` runs them.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict

from bench.peers.peer import Peer, Probe, emit

BATCH = 1000
GRACE = 3.0
"""Seconds for a worker to exit; it has reported everything by then."""


async def produce(peer: Peer, commands: asyncio.StreamReader) -> None:
    """Submit jobs on command, until the end of stdin."""
    await peer.open()
    emit(event="ready")
    while line := await commands.readline():
        order = json.loads(line)
        first = order["first"]
        jobs = order["jobs"]
        times = list[int]()
        cpu = time.process_time()
        began = time.monotonic_ns()
        if order["many"]:
            for number in range(first, first + jobs, BATCH):
                await peer.submit_many(range(number, min(number + BATCH, first + jobs)))
        else:
            numbers = iter(range(first, first + jobs))
            tasks = order.get("tasks", 1)
            await asyncio.gather(*(submit(peer, numbers, times) for _ in range(tasks)))
        took = time.monotonic_ns() - began
        cpu = time.process_time() - cpu
        emit(event="done", began=began, took=took, cpu=cpu, times=times)


async def submit(peer: Peer, numbers: Iterator[int], times: list[int]) -> None:
    """Submit jobs one after the other, and add the nanoseconds of each call."""
    for number in numbers:
        call = time.monotonic_ns()
        await peer.submit(number)
        times.append(time.monotonic_ns() - call)


async def work(peer: Peer, commands: asyncio.StreamReader, target: int) -> None:
    """Wait for `go`, work until `stop`."""
    emit(event="ready")
    await commands.readline()
    probe = Probe(target)
    working = asyncio.create_task(peer.work(probe))
    stop = asyncio.create_task(commands.readline())
    await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        working.result()
        raise RuntimeError("the worker ended by itself")
    probe.end()
    working.cancel()
    await asyncio.wait((working,), timeout=GRACE)


async def main(role: str, peer: Peer, target: int) -> None:
    """Run a role to its end."""
    commands = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(commands)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    if role == "prepare":
        await peer.prepare()
        emit(event="prepared")
    elif role == "produce":
        await produce(peer, commands)
    else:
        await work(peer, commands, target)
    sys.stderr.flush()
    os._exit(0)  # a library may leave threads behind


def load(name: str) -> type[Peer]:
    """Return the queue class of a module."""
    module = importlib.import_module(f"bench.peers.{name}")
    queue: type[Peer] = module.Queue
    return queue


if __name__ == "__main__":
    name, role, *rest = sys.argv[1:]
    kind = load(name)
    if role == "about":
        from importlib.metadata import version  # not in the memory of a worker

        release = version(kind.ABOUT.distribution)
        python = ".".join(map(str, sys.version_info[:2]))
        emit(event="about", version=release, python=python, **asdict(kind.ABOUT))
    else:
        url = rest[0]
        settings = json.loads(rest[1])
        target = int(rest[2])
        asyncio.run(main(role, kind(url, settings), target))
