"""What a provider would do for an agent without a network: refused, and opened by a setting."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.sandbox.gateway.allowed_requests import NotAllowed, check_request
from draftsman.sandbox.gateway_access import Provider
from tests.attacks.catalog import attack
from tests.core.sandbox.gateway.test_bills import PATHS, body
from tests.core.sandbox.gateway.test_gateway import key, served, server
from tests.support.faulty_server import FaultyServer

__all__ = ["key", "server"]
RECORDED: Final = Path(__file__).parents[3] / "recordings" / "requests"
URL: Final = "https://evil.example/?secret=1"
FUNCTION: Final = {"type": "function", "name": "f", "parameters": {"$ref": URL}}


def block(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return messages of an agent with these blocks."""
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, *blocks]}]}


def item(*items: dict[str, Any]) -> dict[str, Any]:
    """Return the input of a response."""
    return {"input": [{"role": "user", "content": "a"}, *items]}


def part(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of a request to Google."""
    return {"contents": [{"role": "user", "parts": [{"text": "a"}, *parts]}]}


def tool(**fields: Any) -> dict[str, Any]:
    return {"tools": [{"name": "f", "input_schema": {}} if "type" in fields else {}, fields][-1:]}


IMAGE: Final = {"type": "image", "source": {"type": "url", "url": URL}}
DOCUMENT: Final = {"type": "document", "source": {"type": "url", "url": URL}}
INNER: Final = {
    "type": "document",
    "source": {"type": "content", "content": [{"type": "image", "source": IMAGE["source"]}]},
}
MCP: Final = {"type": "mcp", "server_url": URL, "server_label": "a", "connector_id": "b"}


def _sent(provider: Provider, path: str) -> str:
    """Return the path below the base URL of an agent."""
    return path.removeprefix("/v1") if provider == "openai" else path


REFUSED: Final[list[tuple[str, str, dict[str, Any]]]] = [
    # fields
    ("messages", "mcp_servers", {"mcp_servers": [{"type": "url", "url": URL, "name": "a"}]}),
    ("messages", "container", {"container": "c"}),
    ("messages", "inference_geo", {"inference_geo": "us"}),
    ("messages", "speed", {"speed": "fast"}),
    ("messages", "fallbacks", {"fallbacks": [{"model": "dear"}]}),
    ("messages", "service_tier=priority", {"service_tier": "priority"}),
    ("messages", "Messages", {"Messages": []}),
    ("responses", "background=true", {"background": True}),
    ("responses", "background=1", {"background": 1}),
    ("responses", "previous_response_id", {"previous_response_id": "r"}),
    ("responses", "conversation", {"conversation": "c"}),
    ("responses", "prompt", {"prompt": {"id": "p"}}),
    ("responses", "service_tier=priority", {"service_tier": "priority"}),
    ("chat", "web_search_options", {"web_search_options": {}}),
    ("chat", "plugins", {"plugins": [{"id": "web"}]}),
    ("chat", "models", {"models": ["dear"]}),
    ("chat", "search_parameters", {"search_parameters": {"mode": "on"}}),
    ("chat", "audio", {"audio": {"voice": "a"}, "modalities": ["text"]}),
    ("chat", "modalities=audio", {"modalities": ["text", "audio"]}),
    ("chat", "model=gpt-4o-search-preview", {"model": "gpt-4o-search-preview"}),
    ("chat", "model=claude-x:online", {"model": "claude-x:online"}),
    ("google", "cachedContent", {"cachedContent": "cachedContents/1"}),
    ("google", "cachedContent", {"cached_content": "cachedContents/1"}),
    ("google", "generationConfig.responseModalities=AUDIO",
     {"generation_config": {"response_modalities": ["AUDIO"]}}),
    ("google", "generateContentRequest.tools.googleSearch",
     {"generateContentRequest": {"tools": [{"google_search": {}}]}}),
    # tools
    *(("messages", f"tools.type={name}", tool(type=name, name="a")) for name in (
        "web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "mcp_toolset",
        "advisor_20260301", "unknown")),
    *(("responses", f"tools.type={name}", tool(type=name)) for name in (
        "web_search_preview", "file_search", "code_interpreter", "image_generation", "shell",
        "unknown")),
    ("responses", "tools.type=mcp", {"tools": [FUNCTION, MCP]}),
    ("responses", "tools.tools.type=mcp",
     {"tools": [{"type": "namespace", "name": "n", "tools": [MCP]}]}),
    ("responses", "input.tools.type=mcp", item({"type": "tool_search_output", "tools": [MCP]})),
    ("responses", "input.tools.type=mcp", item({"type": "additional_tools", "tools": [MCP]})),
    ("responses", "tools.external_web_access", tool(type="web_search")),
    ("responses", "tools.external_web_access=true",
     tool(type="web_search", external_web_access=True)),
    ("chat", "tools.type=openrouter:web_search", tool(type="openrouter:web_search")),
    *(("google", f"tools.{name}", {"tools": [{"functionDeclarations": [], name: {}}]}) for name in (
        "googleSearch", "googleSearchRetrieval", "urlContext", "codeExecution", "googleMaps",
        "fileSearch", "mcpServers")),
    ("google", "tools.urlContext", {"tools": {"url_context": {}}}),
    # content
    ("messages", "messages.content.source.type=url", block(IMAGE)),
    ("messages", "messages.content.source.type=url", block(DOCUMENT)),
    ("messages", "messages.content.source.type=file",
     block({"type": "document", "source": {"type": "file", "file_id": "f"}})),
    ("messages", "messages.content.source.content.source.type=url", block(INNER)),
    ("messages", "messages.content.content.source.type=url",
     block({"type": "tool_result", "tool_use_id": "t", "content": [IMAGE]})),
    ("messages", "messages.content.source", block({"type": "image", "source": URL})),
    ("messages", "messages.content.type=container_upload",
     block({"type": "container_upload", "file_id": "f"})),
    ("messages", "messages.content.type=None", block({"source": DOCUMENT["source"]})),
    ("messages", "messages.content", {"messages": [{"role": "user", "content": [[IMAGE]]}]}),
    ("messages", "system.type=image", {"system": [IMAGE]}),
    ("responses", "input.content.image_url",
     item({"role": "user", "content": [{"type": "input_image", "image_url": URL}]})),
    ("responses", "input.content.file_url",
     item({"role": "user", "content": [{"type": "input_file", "file_url": URL}]})),
    ("responses", "input.content.file_id",
     item({"role": "user", "content": [{"type": "input_image", "file_id": "f"}]})),
    ("responses", "input.output.image_url", item({"type": "function_call_output",
     "output": [{"type": "input_image", "image_url": URL}]})),
    ("responses", "input.output.image_url", item({"type": "computer_call_output",
     "output": {"type": "computer_screenshot", "image_url": URL}})),
    ("responses", "input.type=item_reference", item({"type": "item_reference", "id": "i"})),
    ("responses", "input.type=mcp_approval_response",
     item({"type": "mcp_approval_response", "approve": True})),
    ("chat", "messages.content.image_url.url",
     block({"type": "image_url", "image_url": {"url": URL}})),
    ("chat", "messages.content.image_url", block({"type": "image_url", "image_url": URL})),
    ("chat", "messages.content.file.file_id", block({"type": "file", "file": {"file_id": "f"}})),
    ("chat", "messages.content.type=video_url",
     block({"type": "video_url", "video_url": {"url": URL}})),
    ("chat", "messages.audio", {"messages": [{"role": "assistant", "audio": {"id": "a"}}]}),
    ("google", "contents.parts.fileData", part({"fileData": {"fileUri": URL}})),
    ("google", "contents.parts.fileData", part({"file_data": {"file_uri": URL}})),
    ("google", "contents.parts.functionResponse.parts.fileData",
     part({"functionResponse": {"name": "f", "parts": [{"fileData": {"fileUri": URL}}]}})),
    ("google", "contents.parts.inlineData.mimeType=audio/wav",
     part({"inlineData": {"mimeType": "audio/wav", "data": ""}})),
    ("google", "systemInstruction.parts.fileData",
     {"system_instruction": {"parts": [{"fileData": {"fileUri": URL}}]}}),
]  # fmt: skip
HEADERS: Final = (
    ("anthropic-beta", "mcp-client-2025-11-20"),
    ("anthropic-beta", "web-fetch-2025-09-10"),
    ("anthropic-beta", "code-execution-2025-08-25"),
    ("anthropic-beta", "files-api-2025-04-14"),
    ("anthropic-beta", "fast-mode-2026-02-01"),
    ("anthropic-beta", "advisor-tool-2026-03-01"),
    ("anthropic-beta", "server-side-fallback-2026-06-01"),
    ("anthropic-version", "2099-01-01"),
)


@attack(
    "An agent without a network has its provider fetch, search, run code or call a server",
    surface="network",
    with_sandbox="refused with the name of the field or type, unless the gateway allows it",
)
@attack(
    "An agent asks for another tier of service, a background response or stored input",
    surface="quota",
    with_sandbox="refused with its name, unless the gateway allows it",
)
@pytest.mark.parametrize(
    ("api", "name", "fields"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
async def test_what_is_not_known_is_refused_by_its_name_and_can_be_allowed(
    server: FaultyServer, api: str, name: str, fields: dict[str, Any]
) -> None:
    provider, path = PATHS[api]
    server.routes[path] = body({"usage": {"input_tokens": 1, "output_tokens": 1}})
    asked: dict[str, Any] = {"contents": []} if api == "google" else {"model": "claude-x"}
    async with served(server, provider) as peer:
        reply = await peer.client.post(_sent(provider, path), json=asked | fields)
    assert reply.status_code == 403, reply.text
    error = reply.json()["error"]["message"]
    assert f"does not allow {name}:" in error
    assert URL not in error
    assert [f"draftsman: {reason}" for reason in peer.ledger.refused] == [error]
    assert (server.requests, peer.ledger.reserved) == ([], {})
    async with served(server, provider, allow=(name,)) as peer:
        reply = await peer.client.post(_sent(provider, path), json=asked | fields)
    assert reply.status_code == 200, reply.text
    [request] = server.requests
    assert json.loads(request.body) == asked | fields


@pytest.mark.parametrize(("header", "value"), HEADERS)
async def test_versions_of_other_features_are_refused(
    server: FaultyServer, header: str, value: str
) -> None:
    asked = {"model": "claude-x", "messages": []}
    known = "effort-2025-11-24, " if header == "anthropic-beta" else ""
    async with served(server) as peer:
        sent = {header: known + value}
        reply = await peer.client.post("/v1/messages", json=asked, headers=sent)
    assert reply.status_code == 403
    assert f"does not allow {header}={value}:" in reply.json()["error"]["message"]
    assert server.requests == []
    async with served(server, allow=(f"{header}=*",)) as peer:
        reply = await peer.client.post("/v1/messages", json=asked, headers=sent)
    assert reply.status_code == 200
    assert server.requests[0].headers[header] == known + value


async def test_counting_tokens_fetches_no_address(server: FaultyServer) -> None:
    for provider, path, asked in (
        ("anthropic", "/v1/messages/count_tokens", {"model": "claude-x", **block(IMAGE)}),
        ("google", "/v1beta/models/m:countTokens", part({"fileData": {"fileUri": URL}})),
    ):
        async with served(server, cast(Provider, provider)) as peer:
            assert (await peer.client.post(path, json=asked)).status_code == 403
    assert server.requests == []


async def test_a_body_is_json_for_the_provider_too(server: FaultyServer) -> None:
    asked = json.dumps({"model": "claude-x", "messages": []}).encode()
    async with served(server) as peer:
        headers = {"content-type": "text/plain; charset=utf-7"}
        await peer.client.post("/v1/messages", content=asked, headers=headers)
    assert server.requests[0].headers["content-type"] == "application/json"


def recordings() -> list[Any]:
    """Return the recorded requests of real agents, whose long texts are cut."""
    return [
        pytest.param(request, id=f"{file.stem}-{number}")
        for file in sorted(RECORDED.glob("*.jsonl"))
        for number, request in enumerate(map(json.loads, file.read_text("utf-8").splitlines()))
    ]


@pytest.mark.parametrize("request_", recordings())
async def test_requests_of_real_agents_pass_unchanged(
    server: FaultyServer, request_: dict[str, Any]
) -> None:
    path, asked = request_["path"].partition("?")[0], request_["body"]
    provider = cast(Provider, request_["provider"])
    async with served(server, provider) as peer:
        sent = _sent(provider, path)
        reply = await peer.client.post(sent, json=asked, headers=request_["headers"])
    assert reply.status_code != 403, reply.text
    [request] = server.requests
    if path.endswith("/chat/completions") and asked.get("stream"):
        asked |= {"stream_options": {"include_usage": True}}
    assert json.loads(request.body) == asked
    for name, value in request_["headers"].items():
        assert request.headers[name] == value


def test_there_are_recordings_of_three_agents() -> None:
    agents = {file.stem.partition("-")[0] for file in RECORDED.glob("*.jsonl")}
    assert agents == {"claude", "codex", "opencode"}


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just(URL),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "content", "source", "input", "tools", "messages", "url", "image_url",
                 "parts", "contents", "fileData", "file_data", "output", "a"]
            ),
            inner | st.sampled_from(["url", "image", "document", "text", "message", "namespace"]),
            max_size=4,
        )
    ),
    max_leaves=15,
)  # fmt: skip


@given(JSON, st.sampled_from(sorted(PATHS)))
def test_any_request_is_refused_by_its_name_or_allowed(value: Any, api: str) -> None:
    provider, path = PATHS[api]
    asked = value if isinstance(value, dict) else {"messages": value, "input": value}
    with contextlib.suppress(NotAllowed):
        check_request(provider, _sent("openai", path), {}, asked)
    check_request(provider, _sent("openai", path), {}, asked, ("*",))
