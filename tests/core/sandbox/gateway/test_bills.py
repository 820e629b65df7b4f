"""Ways to hang up and to lie, against a provider that keeps its bill: no call counts for less."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import pytest

from draftsman.sandbox.gateway_access import Provider
from draftsman.settings.llm import PriceSettings
from tests.attacks.catalog import attack
from tests.core.sandbox.gateway.test_gateway import Peer, key, served, server
from tests.support.faulty_server import FaultyServer, Request, Writer, answer, chunk, head

__all__ = ["key", "server"]
PATHS: Final[dict[str, tuple[Provider, str]]] = {
    "messages": ("anthropic", "/v1/messages"),
    "chat": ("openai", "/v1/chat/completions"),
    "responses": ("openai", "/v1/responses"),
    "google": ("google", "/v1beta/models/claude-x:streamGenerateContent"),
}
LIMITS: Final[dict[str, dict[str, Any]]] = {
    "messages": {"max_tokens": 500, "metadata": {"text": "x" * 150}},
    "chat": {"max_tokens": 500, "metadata": {"text": "x" * 150}},
    "responses": {"max_output_tokens": 500, "metadata": {"text": "x" * 150}},
    "google": {"generationConfig": {"maxOutputTokens": 500}, "labels": {"text": "x" * 150}},
}
PRICE: Final = PriceSettings(
    input=3, output=15, cache_read=0.3, cache_write=3.75, date=date(2026, 11, 1), source="test"
)
DEAR: Final = PRICE.model_copy(update={"input": 30.0, "output": 150.0})
PRICES: Final = {"claude-x": PRICE, "dear": DEAR}
STREAM: Final = head(content_type="text/event-stream", transfer_encoding="chunked")
END: Final = chunk(b"")
TEXT: Final = "word " * 400
"""2,000 bytes: the fake bills 500 tokens for it."""
JSON: Final = "application/json"


def event(data: dict[str, Any] | str) -> bytes:
    """Return an event of a stream, as a chunk."""
    text = data if isinstance(data, str) else json.dumps(data)
    return chunk(b"data: " + text.encode() + b"\n\n")


def start(model: str = "claude-x", **usage: Any) -> bytes:
    """Return the first event of a message."""
    return event({"type": "message_start", "message": {"model": model, "usage": usage}})


def body(data: dict[str, Any], status: int = 200, kind: str = JSON) -> bytes:
    """Return a response in one piece."""
    return answer(json.dumps(data).encode(), status, content_type=kind)


DELTA: Final = event({"type": "content_block_delta", "delta": {"text": TEXT}})
STOP: Final = event({"type": "message_delta", "usage": {"output_tokens": 500}}) + event(
    {"type": "message_stop"}
)
WHOLE: Final = STREAM + start(input_tokens=50, output_tokens=1) + DELTA + STOP + END
ONE: Final = {"model": "claude-x", "usage": {"input_tokens": 50, "output_tokens": 500}}
CHAT: Final = {"choices": [{"delta": {"content": TEXT}}]}
DONE: Final = {"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 500}}
COMPLETED: Final = {"type": "response.completed"}


@dataclass(frozen=True)
class Case:
    """A way to hang up or to lie.

    `response` is what the provider sends before it closes the connection, and `input`, `output`
    and `price` are what it bills. `agent` is what the agent does meanwhile.
    """

    name: str
    response: bytes
    api: str = "messages"
    input: int = 30
    output: int = 500
    price: PriceSettings = PRICE
    extra: float = 0.0
    """Dollars that it bills besides the tokens."""
    agent: str = "reads"
    request: dict[str, Any] = field(default_factory=dict)


CASES: Final = (
    # the agent hangs up
    Case("it resets the connection before the response", WHOLE, agent="resets"),
    Case("it resets before a response in one piece", body(ONE), agent="resets"),
    Case("it closes the connection before the response", WHOLE, agent="closes"),
    Case("it closes the connection after the first byte", WHOLE, agent="closes late"),
    Case("it ends with its run before the response", WHOLE, agent="ends"),
    # the provider hangs up
    Case("no response at all", b""),
    Case("half a head", head()[:20]),
    Case("not HTTP", b"nonsense\r\n\r\n"),
    Case("a head only", STREAM),
    Case("a head of a response in one piece only", head(content_type=JSON, content_length="900")),
    Case("half of one piece", body(ONE | {"content": TEXT})[:-40]),
    Case("cut after the first event", STREAM + start(input_tokens=30, output_tokens=1), output=1),
    Case("cut before the last event", STREAM + start(input_tokens=30, output_tokens=1) + DELTA),
    Case("ended before the last event", STREAM + start(input_tokens=30) + DELTA + END),
    Case("an error in the stream", STREAM + start(input_tokens=30) + DELTA
         + event({"type": "error", "error": {"type": "overloaded_error"}}) + END),
    Case("chat, cut before its usage", STREAM + event(CHAT), "chat", input=20),
    Case("chat without usage", STREAM + event(CHAT) + event("[DONE]") + END, "chat", input=20),
    Case("responses, cut before the end", STREAM + event({"type": "response.created"})
         + event({"type": "response.output_text.delta", "delta": TEXT}), "responses", input=20),
    Case("a failed response without usage", STREAM + event({"delta": TEXT})
         + event({"type": "response.failed", "response": {"usage": None}}) + END,
         "responses", input=20),
    Case("google, cut before its usage", STREAM + event(
         {"candidates": [{"content": {"parts": [{"text": TEXT}]}}]}), "google", input=10),
    # the provider lies
    Case("a snapshot without a price", body(ONE | {"model": "claude-x-20261101"}), input=50),
    Case("a model without a price", body(ONE | {"model": "gone"}), input=50),
    Case("a cheaper model", body(ONE), request={"model": "dear"}, input=50, price=DEAR),
    Case("a dearer model", body(ONE | {"model": "dear"}), input=50, price=DEAR),
    Case("a dear model, then a cheap one", STREAM + start("dear", input_tokens=50)
         + start() + DELTA + STOP + END, input=50, price=DEAR),
    Case("no usage", body({"model": "claude-x", "content": TEXT})),
    Case("usage of 0", body({"usage": {"input_tokens": 0, "output_tokens": 0}, "content": TEXT})),
    Case("no tokens of output", body({"usage": {"input_tokens": 50}, "content": TEXT})),
    Case("negative usage", body({"usage": {"input_tokens": -5, "output_tokens": -5}, "a": TEXT})),
    Case("usage as text", body({"usage": {"input_tokens": "5", "output_tokens": "5"}, "a": TEXT})),
    Case("less usage at the end", STREAM + start(input_tokens=50, output_tokens=500)
         + event({"type": "message_delta", "usage": {"output_tokens": 1}})
         + event({"type": "message_stop"}) + END, input=50),
    Case("reasoning in the total only", body({"usage": {"prompt_tokens": 50,
         "completion_tokens": 100, "total_tokens": 550}}), "chat", input=50),
    Case("google's thoughts in the total only", STREAM + event({"usageMetadata": {
         "promptTokenCount": 50, "candidatesTokenCount": 100, "totalTokenCount": 550},
         "candidates": [{"finishReason": "STOP"}]}) + END, "google", input=50),
    Case("a stream as JSON", answer(b'data: {"text": "' + TEXT.encode() + b'"}\n\n',
         content_type=JSON)),
    Case("JSON as a stream", body(ONE, kind="text/event-stream"), input=50),
    Case("accepted, and answered", body(ONE, 202), input=50),
    Case("a part, and answered", body(ONE, 206), input=50),
    Case("a cache for an hour", body({"usage": {"input_tokens": 0, "output_tokens": 500,
         "cache_creation_input_tokens": 1000,
         "cache_creation": {"ephemeral_1h_input_tokens": 1000}}}), input=0, extra=1000 * 6 / 1e6),
    Case("searches of the web", body({"usage": {"input_tokens": 50, "output_tokens": 500,
         "server_tool_use": {"web_search_requests": 3}}}), input=50, extra=0.03),
    Case("searches of the web in responses", STREAM + event(COMPLETED | {"response": {
         "usage": {"input_tokens": 50, "output_tokens": 500},
         "output": [{"type": "web_search_call"}] * 2}}) + END, "responses", input=50, extra=0.02),
    Case("an encoding that nobody asked for", answer(TEXT.encode(), content_type=JSON,
         content_encoding="br")),
)  # fmt: skip


@attack(
    "An agent hangs up before or within a response, or ends, so that the call costs nothing",
    surface="quota",
    with_sandbox="the response is read to its end, or estimated, and counted",
)
@attack(
    "A provider hangs up, reports no tokens, or names a model without a price",
    surface="quota",
    with_sandbox="its calls count for no less than their bytes, at the dearer price",
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_call_counts_for_no_less_than_its_bill(server: FaultyServer, case: Case) -> None:
    provider, path = PATHS[case.api]
    bills: list[float] = []

    async def bill(_: Request, writer: Writer) -> None:
        await server.go.wait()
        tokens = case.input * case.price.input + case.output * case.price.output
        bills.append(tokens / 1e6 + case.extra)
        writer.write(case.response)
        await writer.drain()

    server.routes[path] = bill
    asked: dict[str, Any] = {"model": "claude-x", **LIMITS[case.api], **case.request}
    async with served(server, provider, prices=PRICES) as peer:
        await AGENTS[case.agent](peer, server, path, json.dumps(asked).encode())
        if case.agent != "ends":
            await asyncio.wait_for(peer.recorded.wait(), 10)
    if case.agent == "ends":
        bills = bills or [(30 * 3 + 500 * 15) / 1e6]  # it had begun
    [call] = peer.calls
    assert call.cost_usd >= bills[0] - 1e-12, call
    assert peer.ledger.released == []
    assert call.cost_usd < 40 * bills[0], "and not for any amount"


async def _reads(peer: Peer, server: FaultyServer, path: str, data: bytes) -> None:
    """Send a request, and read what comes."""
    connection = _send(peer, path, data)
    await server.asked()
    server.go.set()
    await asyncio.wait_for(peer.recorded.wait(), 10)
    connection.close()


async def _resets(peer: Peer, server: FaultyServer, path: str, data: bytes) -> None:
    connection = _send(peer, path, data)
    await server.asked()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    server.go.set()


async def _closes(peer: Peer, server: FaultyServer, path: str, data: bytes) -> None:
    connection = _send(peer, path, data)
    await server.asked()
    connection.close()
    server.go.set()


async def _closes_late(peer: Peer, server: FaultyServer, path: str, data: bytes) -> None:
    connection = _send(peer, path, data)
    await server.asked()
    server.go.set()
    await asyncio.get_running_loop().run_in_executor(None, connection.recv, 1)
    connection.close()


async def _ends(peer: Peer, server: FaultyServer, path: str, data: bytes) -> None:
    """Let the run end, with its gateway, while the provider works."""
    _send(peer, path, data).close()
    await server.asked()


AGENTS: Final[dict[str, Callable[[Peer, FaultyServer, str, bytes], Awaitable[None]]]] = {
    "reads": _reads,
    "resets": _resets,
    "closes": _closes,
    "closes late": _closes_late,
    "ends": _ends,
}


def _send(peer: Peer, path: str, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", peer.access.port.port), timeout=10)
    fields = f"host: a\r\nx-api-key: {peer.gateway.token}\r\ncontent-length: {len(data)}"
    connection.sendall(f"POST {path} HTTP/1.1\r\n{fields}\r\n\r\n".encode() + data)
    return connection


async def test_a_refused_call_costs_nothing(server: FaultyServer) -> None:
    async with served(server, prices=PRICES) as peer:
        for status in (400, 401, 404, 422, 500, 501):
            server.routes["/v1/messages"] = body({"error": {}}, status)
            asked = {"model": "claude-x", "max_tokens": 5, "messages": []}
            assert (await peer.client.post("/v1/messages", json=asked)).status_code == status
        server.routes.clear()
    assert peer.calls == []
    assert [*peer.ledger.reserved] == peer.ledger.released


@attack(
    "An agent floods the provider with calls that count tokens, which cost nothing",
    surface="quota",
    with_sandbox="60 in a minute, then the status 429",
)
async def test_calls_that_cost_nothing_are_limited(server: FaultyServer) -> None:
    server.routes["/v1/messages/count_tokens"] = body({"input_tokens": 5})
    statuses = []
    async with served(server) as peer:
        for _ in range(70):
            asked = {"model": "claude-x", "messages": []}
            reply = await peer.client.post("/v1/messages/count_tokens", json=asked)
            statuses.append(reply.status_code)
    assert statuses == [200] * 60 + [429] * 10
    assert 1 <= int(reply.headers["retry-after"]) <= 60
    assert reply.json()["error"]["type"] == "rate_limit_error"
    assert len(server.requests) == 60


@attack(
    "An agent uses batches, files or stored responses, which are billed apart or later",
    surface="quota",
    with_sandbox="the gateway has no such paths",
)
async def test_calls_outside_of_the_meter_are_not_available(server: FaultyServer) -> None:
    """Batches, files and stored responses are billed apart, or later."""
    unmetered: tuple[tuple[Provider, tuple[str, ...]], ...] = (
        ("anthropic", ("/v1/messages/batches", "/v1/files", "/v1/complete", "/v1/sessions")),
        ("openai", ("/batches", "/files", "/embeddings", "/images/generations", "/realtime",
                    "/responses/resp_1", "/responses/compact", "/conversations", "/containers")),
        ("google", ("/v1beta/models/m:batchGenerateContent", "/v1beta/cachedContents",
                    "/v1beta/models/m:predict", "/v1beta/files", "/v1beta/interactions")),
    )  # fmt: skip
    for provider, paths in unmetered:
        async with served(server, provider) as peer:
            for path in paths:
                reply = await peer.client.post(path, json={"model": "claude-x"})
                assert reply.status_code == 404, path
    assert server.requests == []
