"""A growing message of an agent: complete, and at most two messages of the protocol a second."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from draftsman.agents import adapter as text_stream
from draftsman.agents.adapter import PIECE, TextStream
from draftsman.agents.agent_client import AgentClient


class Recorder:
    """A client that keeps the messages."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send(self, kind: str, /, **fields: Any) -> None:
        assert kind == "activity"
        self.sent.append(fields)


def test_a_thousand_chunks_a_second_are_two_messages_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(text_stream, "time", SimpleNamespace(monotonic=lambda: now))
    client = Recorder()
    stream = TextStream(cast(AgentClient, client), "message")
    for n in range(10_000):
        stream.add(f"{n} ")
        now += 0.001
    stream.end()
    assert len(client.sent) <= 22
    assert "".join(item["text"] for item in client.sent) == "".join(f"{n} " for n in range(10_000))
    assert [item["continues"] for item in client.sent] == [False, *[True] * (len(client.sent) - 1)]


def test_a_long_text_is_sent_in_pieces_and_an_empty_text_is_not_sent() -> None:
    client = Recorder()
    stream = TextStream(cast(AgentClient, client), "thought")
    stream.end(" \n")
    assert client.sent == []
    stream.end("x" * (PIECE + 1))
    assert [len(item["text"]) for item in client.sent] == [PIECE, 1]
    stream.end("another")
    assert client.sent[-1] == {"kind": "thought", "text": "another", "continues": False}
