"""`llm_generate` with both providers, and with broken and stalled streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from respx import MockRouter

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman.tracing.open_telemetry.export import exporting
from draftsman_testing.factories import Factory
from draftsman_testing.trace_receiver import receiving_traces
from tests.core.handlers.job_types.web_jobs import PLACE, SITE, configured, done, result_of
from tests.core.worker.workers import run_of
from tests.support.faulty_server import head, web

S = Status
KEY = "sk-0123456789abcdef0123"


@pytest.fixture(autouse=True)
def api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the API key."""
    monkeypatch.setenv("KEY_OF_TEST", KEY)


def event(data: object, name: str = "") -> bytes:
    """Return a server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def openai(*pieces: str, finish: str | None = "stop", over: bool = True) -> bytes:
    """Return a stream of chunks."""
    out = [event({"model": "m-1", "choices": [{"delta": {"content": piece}}]}) for piece in pieces]
    out.append(event({"choices": [{"delta": {}, "finish_reason": finish}]}))
    out.append(event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}))
    return b"".join([b": hello\n\n", *out, *([event("[DONE]")] if over else [])])


def anthropic(*pieces: str) -> bytes:
    """Return a stream of events."""
    start = {"model": "c-1", "usage": {"input_tokens": 7, "output_tokens": 1}}
    stop = {"stop_reason": "end_turn"}
    deltas = [{"type": "text_delta", "text": item} for item in pieces]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": item} for item in deltas),
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    return b"".join(event(item, item["type"]) for item in events)


async def bytewise(data: bytes) -> AsyncIterator[bytes]:
    """Yield single bytes, so that no read ends at an event."""
    for offset in range(len(data)):
        yield data[offset : offset + 1]


def model(rt: Runtime, provider: str = "openai", place: str = PLACE, **settings: Any) -> Runtime:
    """Return services with a model server, whose address only its entry allows."""
    base = f"http://{place}/v1" if provider == "openai" else f"http://{place}"
    entry = {
        "provider": provider,
        "base_url": base,
        "model": "m",
        "api_key": {"env": "KEY_OF_TEST"},
    }
    return configured(rt, "127.0.0.1:2", llm={"it": entry}, **settings)


async def test_openai_streams(rt: Runtime, make: Factory, respx_mock: MockRouter) -> None:
    route = respx_mock.post(f"{SITE}v1/chat/completions").respond(
        content=bytewise(openai("Hé", "llo\r\n", "☃"))
    )
    payload = {"prompt": "Say", "system": "Be brief", "stop": ["."], "temperature": 0.5}
    job = await done(model(rt), make, "llm_generate", payload)
    assert job.result is not None, job.last_error
    usage = {"input_tokens": 7, "output_tokens": 3, "models": ["m-1"]}
    assert (job.result["body"], job.result["finish"]) == ("Héllo\r\n☃", "stop")
    assert job.result["usage"] == usage
    assert (await run_of(rt, job.number)).usage == usage
    [(request, _)] = route.calls
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(request.content) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief"},
            {"role": "user", "content": "Say"},
        ],
        "max_tokens": 4096,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "stop": ["."],
    }


async def test_anthropic_streams(rt: Runtime, make: Factory, respx_mock: MockRouter) -> None:
    route = respx_mock.post(f"{SITE}v1/messages").respond(content=bytewise(anthropic("Hé", "llo")))
    payload = {"messages": [{"role": "user", "content": "Say"}], "max_tokens": 9}
    job = await done(model(rt, "anthropic"), make, "llm_generate", payload)
    assert job.result is not None, job.last_error
    assert (job.result["body"], job.result["finish"]) == ("Héllo", "end_turn")
    usage = {"input_tokens": 7, "output_tokens": 3, "models": ["c-1"]}
    assert (await run_of(rt, job.number)).usage == usage
    [(request, _)] = route.calls
    assert (request.headers["x-api-key"], request.headers["anthropic-version"]) == (
        KEY,
        "2023-06-01",
    )
    assert json.loads(request.content)["max_tokens"] == 9


async def test_requested_json_is_checked(
    rt: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    asks = model(rt)
    payload = {"prompt": "?", "output": {"type": "object", "required": ["n"]}}
    route = respx_mock.post(f"{SITE}v1/chat/completions").respond(
        content=openai('```json\n{"n"', ": 1}\n```")
    )
    job = await done(asks, make, "llm_generate", payload)
    assert job.result is not None, job.last_error
    assert job.result["body"] == {"n": 1}
    for text, problem in (("{}", "n: is required"), ("sure!", "not JSON")):
        route.respond(content=openai(text))
        job = await done(asks, make, "llm_generate", payload)
        assert (job.status, job.error_class) == (S.FAILED, "INVALID_OUTPUT")
        assert job.last_error is not None
        assert problem in job.last_error
        assert await result_of(rt, job.number) == {"invalid-output": text.encode()}
        assert (await run_of(rt, job.number)).usage is not None


ERRORS = [
    ("openai", 401, "invalid_api_key", None, "PERMANENT"),
    ("openai", 400, "context_length_exceeded", "invalid_request_error", "PERMANENT"),
    ("openai", 429, "rate_limit_exceeded", "tokens", "TRANSIENT_APP"),
    ("openai", 429, "insufficient_quota", "insufficient_quota", "PERMANENT"),
    ("openai", 500, None, "server_error", "TRANSIENT_INFRA"),
    ("openai", 418, "never_heard_of", None, "PERMANENT"),
    ("anthropic", 529, None, "overloaded_error", "TRANSIENT_APP"),
    ("anthropic", 429, None, "rate_limit_error", "TRANSIENT_APP"),
    ("anthropic", 401, None, "authentication_error", "PERMANENT"),
    ("anthropic", 500, None, "api_error", "TRANSIENT_INFRA"),
]


@pytest.mark.parametrize(("provider", "status", "code", "type", "expected"), ERRORS, ids=str)
async def test_an_error_has_the_class_of_its_code(
    rt: Runtime,
    make: Factory,
    respx_mock: MockRouter,
    provider: str,
    status: int,
    code: str | None,
    type: str | None,
    expected: str,
) -> None:
    error = {"code": code, "type": type, "message": f"no: {KEY}"}
    respx_mock.post().respond(status, json={"error": error}, headers={"retry-after": "5"})
    job = await done(model(rt, provider), make, "llm_generate", {"prompt": "?"})
    assert job.error_class == expected
    assert job.last_error is not None
    assert job.last_error.endswith(f": {status}: {code or type}: no: ***")


async def test_an_error_within_the_stream_counts(
    rt: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    stream = event({"type": "error", "error": {"type": "overloaded_error", "message": "full"}})
    respx_mock.post(f"{SITE}v1/messages").respond(content=stream)
    job = await done(model(rt, "anthropic"), make, "llm_generate", {"prompt": "?"})
    assert (job.status, job.error_class) == (S.RETRYING, "TRANSIENT_APP")
    assert (
        job.last_error == "the model server ended the stream with an error: overloaded_error: full"
    )


@pytest.mark.parametrize(
    ("stream", "error_class", "message"),
    [
        (
            openai("half", finish=None, over=False),
            "TRANSIENT_INFRA",
            "ended before the text was complete",
        ),
        (event("not json"), "TRANSIENT_INFRA", "an event that is not a JSON object"),
        (b"", "TRANSIENT_INFRA", "ended before the text was complete"),
        (b"data: " + b"x" * 5_000_000, "PERMANENT", "more than 4,194,304 characters"),
        (openai(""), "INVALID_OUTPUT", "the model returned no text (finish: stop)"),
    ],
    ids=["half", "no json", "nothing", "endless line", "empty"],
)
async def test_a_response_that_is_not_a_valid_stream_fails(
    rt: Runtime,
    make: Factory,
    respx_mock: MockRouter,
    stream: bytes,
    error_class: str,
    message: str,
) -> None:
    respx_mock.post(f"{SITE}v1/chat/completions").respond(content=stream)
    job = await done(model(rt), make, "llm_generate", {"prompt": "?"})
    assert job.last_error is not None
    assert (job.error_class, message in job.last_error) == (error_class, True)


async def test_a_stream_that_stalls_ends_with_the_idle_limit(rt: Runtime, make: Factory) -> None:
    first = openai("half", finish=None, over=False)
    limits = {"llm_generate": {"idle_timeout": 0.2}}
    async with web() as site:
        site.routes["/v1/chat/completions"] = site.stall(head() + first)
        asks = model(rt, place=site.place, types=limits)
        job = await done(asks, make, "llm_generate", {"prompt": "?"})
    assert (job.status, job.error_class) == (S.RETRYING, "TRANSIENT_APP")
    assert job.last_error == f"{site.url('/v1/chat/completions')}: no byte for 0.2 s (idle limit)"
    usage = (await run_of(rt, job.number)).usage
    assert usage == {"input_tokens": 7, "output_tokens": 3, "models": ["m-1"]}


async def test_a_call_is_a_span_with_its_tokens(
    rt: Runtime, make: Factory, respx_mock: MockRouter
) -> None:
    respx_mock.post(f"{SITE}v1/messages").respond(content=bytewise(anthropic("Hé")))
    respx_mock.post(f"{SITE}v1/chat/completions").respond(400, json={"error": {"code": "x"}})
    async with receiving_traces() as receiver, exporting(receiver.url):
        payload = {"prompt": "Say what nobody records", "max_tokens": 9}
        answered = await done(model(rt, "anthropic"), make, "llm_generate", payload)
        failed = await done(model(rt), make, "llm_generate", payload)
    assert (answered.status, failed.status) == (S.COMPLETED, S.FAILED)
    steps = [span.id for span in receiver.named("step")]
    called, refused = receiver.named("chat m")
    assert [called.parent, refused.parent] == steps
    assert called.kind == "CLIENT"
    assert called.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "c-1",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }
    assert refused.attributes["gen_ai.provider.name"] == "openai"
    assert refused.attributes["error.type"] == "Failure"
    assert refused.error is not None
    assert b"nobody records" not in b"".join(request.body for request in receiver.requests)
