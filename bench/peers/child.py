"""A process of one queue: `python -m bench.peers.child NAME ROLE [URL SETTINGS [TARGET]]`.

Its CPU is its own. It is told what to do on stdin and tells what happens on stdout, one JSON object
a line. Roles: `about` tells who it is, `prepare` makes tables, `produce` submits, `work` works.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from dataclasses import asdict

from bench.peers.peer import Peer, Probe, emit

BATCH = 1000
GRACE = 3.0
"""Seconds for a worker to end by itself; it has told everything by then."""


async def produce(peer: Peer, said: asyncio.StreamReader) -> None:
    """Submit as told, until nobody says any more."""
    await peer.open()
    emit(event="ready")
    while line := await said.readline():
        order = json.loads(line)
        first, jobs, times = order["first"], order["jobs"], []
        began = time.monotonic_ns()
        if order["many"]:
            for number in range(first, first + jobs, BATCH):
                await peer.submit_many(range(number, min(number + BATCH, first + jobs)))
        else:
            for number in range(first, first + jobs):
                call = time.monotonic_ns()
                await peer.submit(number)
                times.append(time.monotonic_ns() - call)
        emit(event="done", began=began, took=time.monotonic_ns() - began, times=times)


async def work(peer: Peer, said: asyncio.StreamReader, target: int) -> None:
    """Wait for `go`, work until `stop`."""
    emit(event="ready")
    await said.readline()
    probe = Probe(target)
    working, stop = asyncio.create_task(peer.work(probe)), asyncio.create_task(said.readline())
    await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        working.result()
        raise RuntimeError("the worker ended by itself")
    probe.end()
    working.cancel()
    await asyncio.wait((working,), timeout=GRACE)


async def main(role: str, peer: Peer, target: int) -> None:
    """Play a role to its end."""
    said = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(said)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    if role == "prepare":
        await peer.prepare()
        emit(event="prepared")
    elif role == "produce":
        await produce(peer, said)
    else:
        await work(peer, said, target)
    sys.stderr.flush()
    os._exit(0)  # whatever threads a library keeps


def load(name: str) -> type[Peer]:
    """Return the one class of a queue's file."""
    module = importlib.import_module(f"bench.peers.{name}")
    found: type[Peer] = module.Queue
    return found


if __name__ == "__main__":
    name, role, *rest = sys.argv[1:]
    kind = load(name)
    if role == "about":
        from importlib.metadata import version  # not in the memory of a worker

        found = version(kind.ABOUT.distribution)
        emit(event="about", version=found, **asdict(kind.ABOUT))
    else:
        url, settings, target = rest[0], json.loads(rest[1]), int(rest[2])
        asyncio.run(main(role, kind(url, settings), target))
