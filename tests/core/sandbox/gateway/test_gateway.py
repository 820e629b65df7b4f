"""The gateway over real connections: keys, routes, streams, tokens and broken peers."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from uuid import UUID

import httpx
import pytest

from draftsman.costs.budgets import CallEstimate
from draftsman.jobs.retries import RetryPolicy
from draftsman.outbound.http_client import limit_reset
from draftsman.sandbox.gateway import gateway
from draftsman.sandbox.gateway.api_formats import TokenUsage
from draftsman.sandbox.gateway.gateway import DEFAULT_OUTPUT, Gateway, ModelCall
from draftsman.sandbox.gateway.http_server import MAX_BODY, serve
from draftsman.sandbox.gateway_access import GatewayAccess, Provider
from draftsman.settings.http import HttpSettings
from draftsman.settings.llm import GatewaySettings, PriceSettings
from draftsman.settings.secret import SecretSettings
from draftsman.tracing.open_telemetry.export import exporting
from draftsman.tracing.tracer import span
from draftsman_testing.trace_receiver import receiving_traces
from tests.support.faulty_server import FaultyServer, answer, chunk, head, web

KEY = "sk-the-real-key"
PRICE = PriceSettings(
    input=3, output=15, cache_read=0.3, cache_write=3.75, date=date(2026, 11, 1), source="test"
)
ASK = {"model": "claude-x", "max_tokens": 5, "messages": []}


def sse(*events: dict[str, Any]) -> bytes:
    """Return a chunked stream of events, cut inside of lines."""
    text = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    body = b"".join(chunk(piece) for piece in [*pieces, b""])
    return head(content_type="text/event-stream", transfer_encoding="chunked") + body


ANTHROPIC = sse(
    {
        "type": "message_start",
        "message": {
            "model": "claude-x-1",
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 100, "output_tokens": 1},
        },
    },
    {"type": "content_block_delta", "delta": {"text": "Hé ☃"}},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 20},
    },
)
CHAT = sse(
    {"choices": [{}]}, {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
)
RESPONSES = answer(
    json.dumps(
        {
            "model": "gpt-x",
            "usage": {
                "input_tokens": 9,
                "output_tokens": 2,
                "input_tokens_details": {"cached_tokens": 4},
            },
        }
    ).encode(),
    content_type="application/json",
)


GENERATE = "/v1beta/models/gemini-x"
GEMINI = sse(
    {"candidates": [], "modelVersion": "gemini-x-1", "usageMetadata": {"promptTokenCount": 12}},
    {
        "candidates": [{"finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 12,
            "cachedContentTokenCount": 8,
            "candidatesTokenCount": 3,
            "thoughtsTokenCount": 4,
        },
    },
)


@dataclass
class Ledger:
    """Estimates, recorded calls, and ids of released calls; `refusal` refuses each call."""

    refusal: str | None = None
    reserved: dict[UUID, CallEstimate] = field(default_factory=dict)
    calls: list[ModelCall] = field(default_factory=list)
    released: list[UUID] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    recorded: asyncio.Event = field(default_factory=asyncio.Event)

    async def refuse(self, reason: str) -> None:
        self.refused.append(reason)

    async def reserve(self, call: UUID, estimate: CallEstimate) -> str | None:
        self.reserved[call] = estimate
        return self.refusal

    async def record(self, call: ModelCall) -> None:
        self.calls.append(call)
        self.recorded.set()

    async def release(self, call: UUID) -> None:
        self.released.append(call)


@dataclass
class Peer:
    """A gateway that is served on this host, with a client that has its token."""

    client: httpx.AsyncClient
    access: GatewayAccess
    gateway: Gateway
    ledger: Ledger

    @property
    def calls(self) -> list[ModelCall]:
        """Recorded calls."""
        return self.ledger.calls

    @property
    def recorded(self) -> asyncio.Event:
        """Set with the first recorded call."""
        return self.ledger.recorded


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_TEST", KEY)
    monkeypatch.setattr(gateway, "FIRST_DELAY", 0.0)


@pytest.fixture
async def server() -> AsyncIterator[FaultyServer]:
    async with web() as server:
        server.routes["/v1/messages"] = ANTHROPIC
        server.routes["/v1/chat/completions"] = CHAT
        server.routes["/v1/responses"] = RESPONSES
        server.routes[f"{GENERATE}:streamGenerateContent"] = GEMINI
        yield server


@asynccontextmanager
async def served(
    server: FaultyServer,
    provider: Provider = "anthropic",
    ledger: Ledger | None = None,
    prices: Mapping[str, PriceSettings] = {"claude-x*": PRICE},
    allow: tuple[str, ...] = (),
    policy: RetryPolicy | None = None,
    stream_timeout: float | None = None,
) -> AsyncIterator[Peer]:
    """Serve a gateway to the server."""
    settings = GatewaySettings(
        provider=provider,
        base_url=server.url("/v1" if provider == "openai" else "/"),
        api_key=SecretSettings(env="KEY_OF_TEST"),
        allow=allow,
        stream_timeout=stream_timeout,
    )
    ledger = ledger or Ledger()
    served = Gateway(settings, HttpSettings(), prices, policy or RetryPolicy(), ledger)
    with GatewayAccess(provider, served.token, private_network=False) as access:
        variables = access.environment()
        [url] = [variables[name] for name in variables if name.endswith("BASE_URL")]
        headers = {
            "anthropic": {"x-api-key": served.token},
            "google": {"x-goog-api-key": served.token},
            "openai": {"authorization": f"Bearer {served.token}"},
        }[provider]
        async with (
            serve(await access.port.listener(), served.respond),
            httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as client,
        ):
            yield Peer(client, access, served, ledger)


async def test_a_call_has_the_key_and_is_streamed_and_metered(server: FaultyServer) -> None:
    async with served(server) as peer:
        response = await peer.client.post(
            "/v1/messages",
            json=ASK,
            headers={"anthropic-version": "2023-06-01", "cookie": "a=b", "x-other": "1"},
        )
        assert (response.status_code, response.headers["content-type"]) == (
            200,
            "text/event-stream",
        )
        assert "Hé ☃" in response.text.encode().decode("unicode_escape") or "☃" in response.text
        await asyncio.wait_for(peer.recorded.wait(), 10)
    [request] = server.requests
    assert (request.headers["x-api-key"], request.headers["anthropic-version"]) == (
        KEY,
        "2023-06-01",
    )
    assert not {"cookie", "x-other", "authorization"} & set(request.headers)
    assert json.loads(request.body) == ASK
    [call] = peer.calls
    assert (call.model, call.usage) == ("claude-x-1", TokenUsage(110, 20, 100, 0))
    assert call.cost_usd == pytest.approx((10 * 3 + 100 * 0.3 + 20 * 15) / 1e6)


async def test_chat_streams_are_asked_for_their_tokens(server: FaultyServer) -> None:
    async with served(server, "openai") as peer:
        asked = {"model": "gpt-x", "stream": True, "stream_options": {"other": 1}}
        assert (await peer.client.post("/chat/completions", json=asked)).status_code == 200
        await asyncio.wait_for(peer.recorded.wait(), 10)
    [request] = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(request.body)["stream_options"] == {"other": 1, "include_usage": True}
    [call] = peer.calls
    assert (call.model, call.usage, call.cost_usd) == ("gpt-x", TokenUsage(7, 3), 0)


async def test_a_response_in_one_piece_is_metered(server: FaultyServer) -> None:
    async with served(server, "openai") as peer:
        for _ in range(2):  # on a connection that is kept
            reply = await peer.client.post("/responses", json={"model": "gpt-x"})
            assert reply.json()["usage"]["output_tokens"] == 2
    assert [call.usage for call in peer.calls] == [TokenUsage(9, 2, 4)] * 2


async def test_refused_requests_reach_no_provider(server: FaultyServer) -> None:
    async with served(server) as peer:
        post = peer.client.post
        wrong = {"x-api-key": "sk-guess"}
        for status, response in (
            (401, await post("/v1/messages", json=ASK, headers=wrong)),
            (404, await post("/v1/chat/completions", json=ASK)),
            (404, await post("/v1/organizations", json=ASK)),
            (405, await peer.client.get("/v1/messages")),
            (400, await post("/v1/messages", content=b"[1]")),
            (400, await post("/v1/messages", content=b"[" * 100_000)),
            (400, await post("/v1/messages", json={"model": "m" * 201})),
            (400, await post("/v1/messages", json={"messages": []})),
            (400, await post("/v1/messages", content=b'{"model": "a", "model": "b"}')),
            (400, await post("/v1/messages", content=b'{"model": "a", "m": [{"x": 1, "x": 1}]}')),
            (400, await post("/v1/messages", content=b'{"model": "a", "mo\\u0064el": "b"}')),
        ):
            error = response.json()
            assert (response.status_code, error["type"]) == (status, "error"), error
            assert error["error"]["message"].startswith("draftsman: ")
        repeated = (await post("/v1/messages", content=b'{"model": "a", "model": "b"}')).json()
        assert "the key 'model' more than once" in repeated["error"]["message"]
    assert server.requests == []
    assert peer.calls == []


async def test_a_large_request_is_refused(server: FaultyServer) -> None:
    async with served(server) as peer:
        body = bytes(MAX_BODY + 1)
        response = await peer.client.post("/v1/messages", content=body, timeout=60)
        assert response.status_code == 413
    assert server.requests == []


async def test_broken_requests_end_only_their_connection(server: FaultyServer) -> None:
    async with served(server) as peer:
        for data in (b"\x16\x03\x01\r\n\r\n", b"POST /v1/messages HTTP/1.1\r\n\r\n", b"GET /" * 99):
            reader, writer = await asyncio.open_connection("127.0.0.1", peer.access.port.port)
            writer.write(data)
            writer.write_eof()
            received = await asyncio.wait_for(reader.read(), 10)
            assert not received or received.startswith(b"HTTP/1.1 4")
            writer.close()
        assert (await peer.client.post("/v1/messages", json=ASK)).status_code == 200


async def test_an_error_of_the_provider_is_passed_without_the_key(server: FaultyServer) -> None:
    text = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    server.routes["/v1/messages"] = answer(text, 429, "Slow", retry_after="700")
    async with served(server) as peer:
        response = await peer.client.post("/v1/messages", json=ASK)
    assert (response.status_code, response.headers["retry-after"]) == (429, "700")
    assert response.json() == {"error": {"message": "bad key ***"}}
    assert peer.calls == []


async def test_an_unreachable_provider_is_a_502(server: FaultyServer) -> None:
    server.routes["/v1/messages"] = b"nonsense\r\n\r\n"
    async with served(server) as peer:
        response = await peer.client.post("/v1/messages", json=ASK)
        assert (response.status_code, response.json()["error"]["type"]) == (502, "api_error")


async def test_a_cut_response_is_an_error_and_metered(server: FaultyServer) -> None:
    server.routes["/v1/messages"] = ANTHROPIC[:-60]
    async with served(server) as peer:
        with pytest.raises(httpx.RemoteProtocolError):
            await peer.client.post("/v1/messages", json=ASK)
        await asyncio.wait_for(peer.recorded.wait(), 10)
    [call] = peer.calls
    assert (call.usage.input, call.usage.cache_read) == (110, 100)
    assert call.usage.output > 20, "estimated by its bytes: the end has the report"


async def test_an_agent_that_hangs_up_pays_for_the_whole_response(server: FaultyServer) -> None:
    start, _, rest = ANTHROPIC.partition(b"\r\n\r\n")

    async def slow(_: object, writer: asyncio.StreamWriter) -> None:
        writer.write(start + b"\r\n\r\n")
        await writer.drain()
        await server.go.wait()
        writer.write(rest)
        await writer.drain()

    server.routes["/v1/messages"] = slow
    async with served(server) as peer:
        client = socket.create_connection(("127.0.0.1", peer.access.port.port))
        body = json.dumps(ASK).encode()
        fields = f"host: a\r\nx-api-key: {peer.gateway.token}\r\ncontent-length: {len(body)}"
        client.sendall(f"POST /v1/messages HTTP/1.1\r\n{fields}\r\n\r\n".encode() + body)
        await server.asked()
        client.close()
        server.go.set()
        await asyncio.wait_for(peer.recorded.wait(), 10)
    assert peer.calls[0].usage == TokenUsage(110, 20, 100, 0)


async def test_unreported_tokens_are_estimated(server: FaultyServer) -> None:
    server.routes["/v1/messages"] = answer(
        b'{"a": "' + b"x" * 391 + b'"}', content_type="text/json"
    )
    async with served(server) as peer:
        body = json.dumps(ASK).encode()
        assert (await peer.client.post("/v1/messages", content=body)).status_code == 200
    [call] = peer.calls
    assert (call.model, call.usage) == ("claude-x", TokenUsage(len(body) // 4, 100))


async def test_a_call_is_reserved_with_its_maximum_and_recorded_with_the_same_id(
    server: FaultyServer,
) -> None:
    routes: tuple[tuple[str, str, Provider], ...] = (
        ("max_tokens", "/v1/messages", "anthropic"),
        ("max_completion_tokens", "/chat/completions", "openai"),
        ("max_output_tokens", "/responses", "openai"),
    )
    for field_, path, provider in routes:
        async with served(server, provider) as peer:
            body = {"model": "claude-x", field_: 2000}
            await peer.client.post(path, json=body)
            await asyncio.wait_for(peer.recorded.wait(), 10)
        [(id, estimate)] = peer.ledger.reserved.items()
        size = len(server.requests[-1].body) // 4
        assert (estimate.input_tokens, estimate.output_tokens) == (size, 2000)
        assert estimate.cost_usd == pytest.approx((size * 3.75 + 2000 * 15) / 1e6)
        assert (peer.calls[0].id, peer.ledger.released) == (id, [])


async def test_a_request_without_a_maximum_reserves_the_default(server: FaultyServer) -> None:
    async with served(server, "openai") as peer:
        await peer.client.post("/responses", json={"model": "gpt-x", "max_output_tokens": -1})
    [estimate] = peer.ledger.reserved.values()
    assert (estimate.output_tokens, estimate.cost_usd) == (DEFAULT_OUTPUT, None)


async def test_a_call_over_a_budget_ends_the_clients_of_each_provider(
    server: FaultyServer,
) -> None:
    refusal = "D-1 has used $5.00 of $5.00"
    async with served(server, ledger=Ledger(refusal)) as peer:
        response = await peer.client.post("/v1/messages", json=ASK)
        count = await peer.client.post("/v1/messages/count_tokens", json=ASK)
    assert (response.status_code, response.json()) == (
        402,
        {"type": "error", "error": {"type": "billing_error", "message": f"draftsman: {refusal}"}},
    )
    assert count.status_code == 404, "it costs nothing, and reaches the provider"
    async with served(server, "openai", ledger=Ledger(refusal)) as peer:
        response = await peer.client.post("/responses", json={"model": "claude-x"})
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "insufficient_quota"
    async with served(server, "google", ledger=Ledger(refusal)) as peer:
        response = await peer.client.post(f"{GENERATE}:generateContent", json={})
    error = {"code": 403, "message": f"draftsman: {refusal}", "status": "PERMISSION_DENIED"}
    assert (response.status_code, response.json()) == (403, {"error": error})
    assert [request.path for request in server.requests] == ["/v1/messages/count_tokens"]
    assert peer.ledger.released == [], "it was not reserved"


async def test_a_call_that_the_provider_refuses_is_released(server: FaultyServer) -> None:
    server.routes["/v1/messages"] = answer(b"{}", 529, content_type="application/json")
    async with served(server) as peer:
        assert (await peer.client.post("/v1/messages", json=ASK)).status_code == 529
    assert (peer.ledger.released, peer.calls) == ([*peer.ledger.reserved], [])


async def test_a_call_that_never_left_is_released(server: FaultyServer) -> None:
    server.port = 1
    async with served(server) as peer:
        assert (await peer.client.post("/v1/messages", json=ASK)).status_code == 502
    assert (peer.ledger.released, peer.calls) == ([*peer.ledger.reserved], [])


async def answer_in_turn(server: FaultyServer, *responses: bytes) -> None:
    """Let the server send these responses, the last of them again and again."""
    left = list(responses)

    async def respond(_: object, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()

    server.routes["/v1/messages"] = respond


async def test_a_busy_provider_is_called_again_before_the_first_byte(server: FaultyServer) -> None:
    busy = [
        answer(b"{}", 429, retry_after="0"),
        answer(b"{}", 503, retry_after_ms="1"),
        answer(b"{}", 529),
        answer(b"{}", 429, x_ratelimit_reset_tokens="1ms"),
    ]
    await answer_in_turn(server, *busy, ANTHROPIC)
    async with served(server) as peer:
        assert (await peer.client.post("/v1/messages", json=ASK)).status_code == 200
    assert len(server.requests) == 5
    assert (len(peer.calls), peer.ledger.released) == (1, [])


async def test_a_provider_that_stays_busy_is_called_five_times(server: FaultyServer) -> None:
    await answer_in_turn(server, answer(b"{}", 502))
    async with served(server) as peer:
        assert (await peer.client.post("/v1/messages", json=ASK)).status_code == 502
    assert len(server.requests) == gateway.MAX_TRIES
    assert peer.ledger.released == [*peer.ledger.reserved]


async def test_a_stream_lasts_longer_than_a_call_while_bytes_arrive(server: FaultyServer) -> None:
    start, _, rest = ANTHROPIC.partition(b"\r\n\r\n")

    async def slow(_: object, writer: asyncio.StreamWriter) -> None:
        writer.write(start + b"\r\n\r\n")
        for _ in range(10):
            writer.write(chunk(b": ping\n\n"))
            await writer.drain()
            await asyncio.sleep(0.25)
        writer.write(rest)
        await writer.drain()

    server.routes["/v1/messages"] = slow
    policy = RetryPolicy(call_timeout=2.0)
    async with served(server, policy=policy) as peer:
        reply = await peer.client.post("/v1/messages", json=ASK)
        assert "message_stop" in reply.text or "end_turn" in reply.text
    async with served(server, policy=policy, stream_timeout=0.5) as peer:
        with pytest.raises(httpx.RemoteProtocolError):
            await peer.client.post("/v1/messages", json=ASK)
    server.routes["/v1/messages"] = server.stall(start + b"\r\n\r\n" + rest[:40])
    async with served(server, policy=policy) as peer:
        with pytest.raises(httpx.RemoteProtocolError):
            await peer.client.post("/v1/messages", json=ASK)
        await asyncio.wait_for(peer.recorded.wait(), 10)


def test_the_end_of_a_limit_is_a_span() -> None:
    for text, seconds in (("6m0s", 360), ("20ms", 0.02), ("1.5", 1.5), ("1h2m3s", 3723)):
        assert limit_reset({"x-ratelimit-reset-tokens": text}) == pytest.approx(seconds)
    assert limit_reset({"x-ratelimit-reset-requests": "soon"}) is None
    both = {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "2s"}
    assert limit_reset(both) == 2


async def test_a_call_of_an_agent_is_a_span_of_its_run(server: FaultyServer) -> None:
    async with receiving_traces() as receiver, exporting(receiver.url):
        with span("run", {}):
            async with served(server) as peer:
                await peer.client.post("/v1/messages", json=ASK)
                await asyncio.wait_for(peer.recorded.wait(), 10)
                server.routes["/v1/messages"] = head(400)
                await peer.client.post("/v1/messages", json=ASK)
    [run] = receiver.named("run")
    called, refused = receiver.named("chat claude-x")
    assert (called.parent, refused.parent) == (run.id, run.id)
    assert called.attributes["gen_ai.response.model"] == "claude-x-1"
    assert called.attributes["gen_ai.usage.input_tokens"] == 110
    assert called.attributes["gen_ai.usage.output_tokens"] == 20
    assert "error.type" not in called.attributes
    assert refused.attributes["error.type"] == "refused"
