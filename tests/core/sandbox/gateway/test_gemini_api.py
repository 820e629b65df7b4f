"""The Gemini API through the gateway: the model is part of the path, and a stream is metered."""

from __future__ import annotations

import asyncio
from typing import Any

from draftsman.sandbox.gateway.api_formats import MAX_COUNT, TokenUsage, max_output
from tests.core.sandbox.gateway.test_gateway import ASK, GENERATE, KEY, key, served, server
from tests.support.cases import cases
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


@cases(
    ("body", "tokens"),
    [
        ({}, None),
        ({"max_tokens": -1, "maxOutputTokens": True}, None),
        ({"max_completion_tokens": 1, "max_tokens": 9000}, 9000),
        ({"max_tokens": 1, "generationConfig": {"maxOutputTokens": 9000}}, 9000),
        ({"generation_config": {"max_output_tokens": 9000, "candidate_count": 8}}, 72_000),
        ({"generationConfig": {"maxOutputTokens": 10}, "generation_config": {}}, 10),
        ({"max_tokens": 100, "n": 5}, 500),
        ({"max_tokens": MAX_COUNT, "n": 5}, MAX_COUNT),
    ],
)
def test_the_maximum_of_a_request_is_that_of_all_its_names_and_answers(
    body: dict[str, Any], tokens: int | None
) -> None:
    assert max_output(body) == tokens
