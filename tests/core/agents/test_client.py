"""The agent's side of the protocol, against a worker that is a pipe."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from draftsman.agents.agent_client import AgentClient, RequestRefused, RunParked


@dataclass
class Worker:
    """The other ends of the pipes."""

    client: AgentClient
    to_agent: int
    from_agent: int

    def say(self, *messages: dict[str, Any]) -> None:
        os.write(self.to_agent, b"".join(json.dumps(m).encode() + b"\n" for m in messages))

    def heard(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in os.read(self.from_agent, 1 << 16).splitlines()]


@pytest.fixture
def worker() -> Iterator[Worker]:
    source, to_agent = os.pipe()
    from_agent, target = os.pipe()
    os.write(to_agent, b'{"type":"start","job":"D-1"}\n')
    yield Worker(AgentClient(source, target), to_agent, from_agent)
    for descriptor in (source, to_agent, from_agent, target):
        os.close(descriptor)


def test_a_call_returns_its_own_reply(worker: Worker) -> None:
    worker.say({"type": "refused", "line": 7, "reason": "a line"}, {"type": "ack", "id": "1"})
    assert worker.client.start["job"] == "D-1"
    assert worker.client.call("checkpoint", data={"n": 1}) == {"type": "ack", "id": "1"}
    assert worker.heard() == [{"type": "checkpoint", "id": "1", "data": {"n": 1}}]
    worker.say({"type": "refused", "id": "2", "reason": "too large"})
    with pytest.raises(RequestRefused, match="too large") as refused:
        worker.client.call("checkpoint", data=None)
    assert refused.value.error_class == "PERMANENT"


def test_a_refusal_of_its_line_without_an_id_ends_a_call(worker: Worker) -> None:
    worker.client.send("log", text="x")
    worker.say({"type": "refused", "line": 1, "reason": "the log"})
    worker.say({"type": "refused", "line": 2, "reason": "the call", "class": "PERMANENT"})
    with pytest.raises(RequestRefused, match="the call"):
        worker.client.call("checkpoint", data=None)
    worker.say({"type": "refused", "reason": "of a worker that does not number lines"})
    with pytest.raises(RequestRefused, match="of a worker"):
        worker.client.call("checkpoint", data=None)


def test_a_question_that_waits_for_a_person_parks(worker: Worker) -> None:
    worker.say({"type": "park", "id": "1"})
    with pytest.raises(RunParked):
        worker.client.call("ask", key="k", text="t")


def test_a_checkpoint_during_a_shutdown_is_saved_before_the_park(worker: Worker) -> None:
    worker.say({"type": "park"}, {"type": "ack", "id": "1"})
    assert worker.client.call("checkpoint", data=None)["type"] == "ack"
    with pytest.raises(RunParked):
        worker.client.wait(worker.from_agent, 0)


def test_a_park_in_the_same_read_as_another_line_is_handled(worker: Worker) -> None:
    worker.say({"type": "ack", "id": "1"}, {"type": "park"})
    worker.client.call("checkpoint", data=None)
    with pytest.raises(RunParked):
        worker.client.wait(worker.from_agent, 0)


def test_wait_ends_at_output_timeout_or_park(worker: Worker) -> None:
    reader, writer = os.pipe()
    assert not worker.client.wait(reader, 0)
    os.write(writer, b"x")
    assert worker.client.wait(reader, 60)
    worker.say({"type": "park"})
    with pytest.raises(RunParked):
        worker.client.wait(reader, 60)
    os.close(reader)
    os.close(writer)


def test_a_line_is_joined_from_several_reads(worker: Worker) -> None:
    reader, writer = os.pipe()
    os.write(worker.to_agent, b'{"type":')
    assert not worker.client.wait(reader, 60)
    os.write(worker.to_agent, b'"ack","id":"1"}\n')
    assert worker.client.call("checkpoint", data=None)["id"] == "1"
    os.close(reader)
    os.close(writer)
