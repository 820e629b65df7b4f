"""The Gemini API through the gateway: the model is part of the path, and a stream is metered."""

from __future__ import annotations

import asyncio

from draftsman.handlers.gateway.api_formats import TokenUsage
from tests.core.handlers.gateway.test_gateway import ASK, GENERATE, KEY, key, served, server
from tests.support.faulty_server import FaultyServer

__all__ = ["key", "server"]


async def test_a_stream_of_the_gemini_api_has_its_model_in_the_path_and_is_metered(
    server: FaultyServer,
) -> None:
    asked = {"contents": [], "generationConfig": {"maxOutputTokens": 2000}}
    async with served(server, "google") as peer:
        post = peer.client.post
        reply = await post(f"{GENERATE}:streamGenerateContent?alt=sse&key=mine", json=asked)
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream")
        await asyncio.wait_for(peer.recorded.wait(), 10)
        for status, response in (
            (401, await post(f"{GENERATE}:generateContent", headers={"x-goog-api-key": "mine"})),
            (404, await post(f"{GENERATE}:predict", json=asked)),
            (404, await post("/v1beta/models/../files:generateContent", json=asked)),
            (404, await post("/v1/messages", json=ASK)),
            (405, await peer.client.get(f"{GENERATE}:generateContent")),
            (400, await post(f"{GENERATE}:generateContent", content=b"[]")),
        ):
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (status, status), error
            assert error["message"].startswith("draftsman: ")
    [request] = server.requests
    assert request.path == f"{GENERATE}:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == KEY
    [estimate] = peer.ledger.reserved.values()
    assert (estimate.model, estimate.output_tokens) == ("gemini-x", 2000)
    [call] = peer.calls
    assert (call.model, call.usage) == ("gemini-x-1", TokenUsage(12, 7, 8))
