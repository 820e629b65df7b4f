"""Any bytes in any pieces in both directions, with a slow peer: nothing hangs."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from draftsman.agent_runs.protocol.codec import parse_line
from draftsman.agents.agent_client import AgentClient, RequestRefused, RunParked
from draftsman.agents.program import AgentFailure, AgentProgram
from draftsman.sandbox.processes.process import LineSplitter, MalformedLine

HANG = 20.0
"""Seconds after which a peer counts as hung."""
NOISE = (
    b"\n",
    b"{}\n",
    b"ordinary output\n",
    b'{"type":"log","text":"\\ud83d"}\n',
    b'{"type":"ack","id":"1"}\n',
    b"x" * 5000 + b"\n",
    b"[" * 5000 + b"\n",
)
PIECES = some.lists(some.binary(max_size=40) | some.sampled_from(NOISE), max_size=12)


@given(some.lists(some.binary(max_size=60) | some.sampled_from(NOISE)), some.integers(1, 200))
def test_lines_do_not_depend_on_the_pieces_in_which_they_arrive(
    pieces: list[bytes], limit: int
) -> None:
    def split(chunks: Sequence[bytes]) -> list[bytes | MalformedLine]:
        splitter = LineSplitter(limit)
        lines = [line for chunk in chunks for line in splitter.feed(chunk)]
        return [*lines, *splitter.end()]

    data = b"".join(pieces)
    lines = split(pieces)
    assert lines == split([data]) == split([data[at : at + 1] for at in range(len(data))])
    for line in lines:
        message = parse_line(line)
        assert not isinstance(message, MalformedLine) or message.reason.isprintable()


class Pipes:
    """A client of the protocol between two pipes, whose worker is a thread."""

    def __init__(self, replies: Sequence[bytes], pause: float) -> None:
        self.source, self.to_agent = os.pipe()
        self.from_agent, self.target = os.pipe()
        self.heard = 0
        os.write(self.to_agent, b'{"type":"start","answers":{},"steps":{}}\n')
        self.client = AgentClient(self.source, self.target)
        self.threads = [
            threading.Thread(target=self._write, args=(replies, pause), daemon=True),
            threading.Thread(target=self._read, args=(pause,), daemon=True),
        ]

    def _write(self, replies: Sequence[bytes], pause: float) -> None:
        for piece in replies:
            os.write(self.to_agent, piece)
            time.sleep(pause)
        os.close(self.to_agent)

    def _read(self, pause: float) -> None:
        while chunk := os.read(self.from_agent, 7 + int(pause * 1e6)):
            self.heard += len(chunk)

    def run(self) -> None:
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        os.close(self.target)
        for thread in self.threads:
            thread.join(HANG)
            assert not thread.is_alive()
        os.close(self.source)
        os.close(self.from_agent)


@settings(max_examples=60, deadline=HANG * 1000)
@given(PIECES, some.sampled_from([0.0, 0.002]), some.text(some.characters(), max_size=50))
def test_a_client_ends_whatever_its_worker_writes(
    replies: list[bytes], pause: float, text: str
) -> None:
    pipes = Pipes(replies, pause)
    pipes.run()
    try:
        for _ in range(3):
            pipes.client.send("log", text=text * 400)
            pipes.client.call("event", kind="k", payload={text: text})
    except (RunParked, RequestRefused, ValueError, RecursionError):
        pass
    finally:
        pipes.close()


PEER = r"""
import os, sys, time
pieces, pause, reads, flood = map(eval, sys.argv[1:])
def write(data):
    while data:
        data = data[os.write(1, data):]
for piece in pieces:
    write(piece)
    time.sleep(pause)
write(b'{"n":1}\n' * flood)
while reads and (chunk := os.read(0, reads)):
    write(b'{"type":"read","count":%d}\n' % len(chunk))
"""
"""A program that writes before it reads, and a line for each read; without `reads` it ends."""


@settings(max_examples=25, deadline=HANG * 1000, suppress_health_check=list(HealthCheck))
@given(
    PIECES,
    some.sampled_from([0.0, 0.002]),
    some.sampled_from([0, 1000, 1 << 16]),
    some.sampled_from([1, 300_000]),
    some.sampled_from([1, 40_000]),
)
def test_an_adapter_and_its_agent_end_whatever_the_agent_writes(
    pieces: list[bytes], pause: float, reads: int, sent: int, flood: int
) -> None:
    pipes = Pipes([], 0)
    pipes.threads[1].start()
    arguments = map(repr, (pieces, pause, reads, flood))
    command = (sys.executable, "-I", "-S", "-c", PEER, *arguments)
    program = AgentProgram(pipes.client, command, "/")
    ended = threading.Timer(HANG, program.close)
    ended.start()
    size = 2 * (len(json.dumps({"text": "x" * sent})) + 1)
    failed = False
    try:
        for _ in range(2):
            program.send({"text": "x" * sent})
        while size > 0:
            message = program.receive()
            if message.get("type") == "read":
                size -= message["count"]
    except AgentFailure:
        failed = True
    finally:
        assert ended.is_alive(), "the adapter hung"
        ended.cancel()
        program.close()
        pipes.threads = pipes.threads[1:]
        os.close(pipes.to_agent)
        pipes.close()
    assert failed == (reads == 0)
