"""APIs of model providers: their paths, keys, errors and reported tokens. Pure.

Sources: Anthropic, "Messages" and "Streaming messages"; OpenAI, "Responses" and "Chat completions"
(stream_options.include_usage); Google, "Gemini API: generating content" (UsageMetadata).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from draftsman.sandbox.gateway_access import PREFIX, Provider

ROUTES: Final[Mapping[Provider, Mapping[str, tuple[str, ...]]]] = {
    "anthropic": {"/messages": ("POST",), "/messages/count_tokens": ("POST",), "/models": ("GET",)},
    "openai": {"/responses": ("POST",), "/chat/completions": ("POST",), "/models": ("GET",)},
    "google": {"/models": ("GET",)},
}
"""Methods of the paths, without the prefix."""
METERED: Final = frozenset({"/messages", "/responses", "/chat/completions"})
"""Paths of calls that cost money."""
PREFIXES: Final[Mapping[Provider, str]] = {
    "anthropic": PREFIX,
    "openai": PREFIX,
    "google": "/v1beta",
}
_OF_MODEL: Final = re.compile(r"/models/(?P<model>\w[\w.-]*)(?::(?P<method>\w+))?", re.ASCII)
"""A path of Google, which has the model."""
_STREAM: Final = "streamGenerateContent"
_GENERATE: Final = frozenset({"generateContent", _STREAM})
_METHODS: Final = _GENERATE | {"countTokens"}
_MAX_OUTPUT: Final = (
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "maxOutputTokens",
)
_ANSWERS: Final = ("n", "candidateCount", "candidate_count")
"""Numbers of answers to a request, each with the maximum of tokens."""
DONE: Final = "[DONE]"
"""Data of the last event of a stream of Chat Completions."""
_LAST: Final = frozenset(
    {"message_stop", "response.completed", "response.failed", "response.incomplete"}
)
"""Types of the last event of a stream of Messages and Responses."""
_PROVIDER_CALLS: Final = frozenset(
    {
        "code_interpreter_call",
        "file_search_call",
        "image_generation_call",
        "mcp_call",
        "web_search_call",
    }
)
"""Types of calls of tools that OpenAI runs."""
MAX_COUNT: Final = 1_000_000_000
"""Maximum tokens of a call."""
DEFAULT_URLS: Final[Mapping[Provider, str]] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com",
}
PASSED_HEADERS: Final = frozenset(
    {"accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "user-agent"}
)
"""Headers of an agent's request that reach the provider."""
RETURNED_HEADERS: Final = ("content-type", "request-id", "retry-after", "x-request-id")
"""Headers of the provider's response that reach the agent."""
BUDGET_STATUS: Final[Mapping[Provider, int]] = {"anthropic": 402, "openai": 403, "google": 403}
"""Status of a call over a budget; clients of these APIs end at it, and repeat after others."""
_QUOTA: Final = "insufficient_quota"
"""OpenAI's type and code of an error without credit."""
_ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
_GOOGLE_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
}


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of a call. `input` includes those that were read from or written to a cache.

    `cache_write` includes those that are cached for an hour. `tool_calls` are calls of tools that
    the provider runs, such as its search of the web.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    tool_calls: int = 0

    def merge(self, later: TokenUsage) -> TokenUsage:
        """Return the usage after a later report of the same call, which repeats or adds to it."""
        return TokenUsage(*map(max, astuple(self), astuple(later)))


def route(provider: Provider, method: str, path: str) -> str | int:
    """Return the path without its prefix, or the HTTP status of a refusal."""
    bare = path.removeprefix(PREFIXES[provider])
    methods = ROUTES[provider].get(bare)
    if methods is None and provider == "google":
        methods = _methods_of_model(bare)
    if methods is None:
        return 404
    return bare if method in methods else 405


def _methods_of_model(path: str) -> tuple[str, ...] | None:
    match = _OF_MODEL.fullmatch(path)
    if match is None or match["method"] not in {None, *_METHODS}:
        return None
    return ("GET",) if match["method"] is None else ("POST",)


def is_metered(path: str) -> bool:
    """Return whether a call of a path costs money."""
    match = _OF_MODEL.fullmatch(path)
    return path in METERED or (match is not None and match["method"] in _GENERATE)


def requested_model(path: str, body: Mapping[str, Any]) -> object:
    """Return the model of a request; any value, if it names none."""
    match = _OF_MODEL.fullmatch(path)
    return body.get("model") if match is None else match["model"]


def upstream_url(provider: Provider, base_url: str | None, path: str) -> str:
    """Return the provider's URL of a path; OpenAI's base URL ends with `/v1`, those of others not.

    Streams of Google are requested as server-sent events, like those of the others.
    """
    base = (base_url or DEFAULT_URLS[provider]).rstrip("/")
    prefix = "" if provider == "openai" else PREFIXES[provider]
    return f"{base}{prefix}{path}{'?alt=sse' if path.endswith(f':{_STREAM}') else ''}"


def key_headers(provider: Provider, key: str) -> dict[str, str]:
    """Return the header that has the key."""
    if provider == "openai":
        return {"authorization": f"Bearer {key}"}
    return {"x-api-key" if provider == "anthropic" else "x-goog-api-key": key}


def received_token(headers: Mapping[str, str]) -> str:
    """Return the token of a request, which agents send as they would send a key."""
    if token := headers.get("x-api-key") or headers.get("x-goog-api-key"):
        return token
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def error_body(provider: Provider, status: int, message: str) -> dict[str, Any]:
    """Return an error as the provider words it."""
    kind = _ERROR_TYPES.get(status, "api_error")
    error = {"type": kind, "message": f"draftsman: {message}"}
    if provider == "anthropic":
        return {"type": "error", "error": error}
    if provider == "google":
        name = _GOOGLE_STATUSES.get(status, "UNKNOWN")
        return {"error": {"code": status, "message": error["message"], "status": name}}
    return {"error": {**error, "code": None, "param": None}}


def budget_error(provider: Provider, message: str) -> dict[str, Any]:
    """Return the error of a call over a budget as the provider words one without credit."""
    body = error_body(provider, BUDGET_STATUS[provider], message)
    if provider == "openai":
        body["error"] |= {"type": _QUOTA, "code": _QUOTA}
    return body


def max_output(body: Mapping[str, Any]) -> int | None:
    """Return the maximum of output tokens that a request sets, of all its answers; None without.

    Google takes names in both styles. Of several names the provider may use any.
    """
    configs = (body.get("generationConfig"), body.get("generation_config"))
    objects = [body, *(config for config in configs if isinstance(config, dict))]
    limits = _positive(objects, _MAX_OUTPUT)
    if not limits:
        return None
    return min(max(limits) * max(_positive(objects, _ANSWERS), default=1), MAX_COUNT)


def _positive(objects: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[int]:
    numbers = (item.get(name) for item in objects for name in names)
    return [number for number in numbers if type(number) is int and number > 0]


def request_usage_report(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a request whose stream reports its tokens."""
    if path != "/chat/completions" or body.get("stream") is not True:
        return body
    options = body.get("stream_options")
    options = options if isinstance(options, dict) else {}
    return {**body, "stream_options": {**options, "include_usage": True}}


def reported_model(data: Mapping[str, Any]) -> str | None:
    """Return the model that a response or an event of its stream names."""
    for part in (data, data.get("message"), data.get("response")):
        if isinstance(part, dict) and isinstance(part.get("model"), str):
            return str(part["model"])
    version = data.get("modelVersion")
    return version if isinstance(version, str) else None


def is_last(data: Mapping[str, Any]) -> bool:
    """Return whether an event ends its stream: none that reports more can follow it."""
    if data.get("type") in _LAST:
        return True
    delta = data.get("delta")
    if isinstance(delta, dict) and delta.get("stop_reason"):
        return True
    if data.get("choices") == [] and data.get("usage"):  # of Chat Completions
        return True
    candidates = data.get("candidates")
    return any(
        isinstance(item, dict) and item.get("finishReason")
        for item in (candidates if isinstance(candidates, list) else ())
    )


def reported_tool_calls(data: Mapping[str, Any]) -> set[str]:
    """Return the ids of calls of the provider's own tools that a response or an event names."""
    items: list[object] = [data.get("item")]
    for part in (data, data.get("response")):
        output = part.get("output") if isinstance(part, dict) else None
        items += output if isinstance(output, list) else []
    return {
        str(item.get("id") or f"{item['type']} {number}")
        for number, item in enumerate(items)
        if isinstance(item, dict) and item.get("type") in _PROVIDER_CALLS
    }


def reported_usage(data: Mapping[str, Any]) -> TokenUsage | None:
    """Return the tokens that a response or an event of its stream reports; None without."""
    for part in (data, data.get("message"), data.get("response")):
        if isinstance(part, dict) and isinstance(usage := part.get("usage"), dict):
            return _read_usage(usage)
    if isinstance(usage := data.get("usageMetadata"), dict):
        sent = _count(usage, "promptTokenCount") + _count(usage, "toolUsePromptTokenCount")
        output = _count(usage, "candidatesTokenCount") + _count(usage, "thoughtsTokenCount")
        output = max(output, _count(usage, "totalTokenCount") - sent)
        return TokenUsage(sent, output, _count(usage, "cachedContentTokenCount"))
    return None


def _read_usage(usage: Mapping[str, Any]) -> TokenUsage:
    total = _count(usage, "total_tokens")  # some servers have reasoning in the total only
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        cached = _count(usage.get("prompt_tokens_details"), "cached_tokens")
        sent = _count(usage, "prompt_tokens")
        return TokenUsage(sent, max(_count(usage, "completion_tokens"), total - sent), cached)
    fresh = _count(usage, "input_tokens")
    output = max(_count(usage, "output_tokens"), total - fresh if fresh else 0)
    read = _count(usage, "cache_read_input_tokens")
    write = _count(usage, "cache_creation_input_tokens")
    hour = min(_count(usage.get("cache_creation"), "ephemeral_1h_input_tokens"), write)
    tools = usage.get("server_tool_use")
    calls = sum(_count(tools, name) for name in tools) if isinstance(tools, dict) else 0
    if read or write:  # Anthropic's input_tokens excludes both
        return TokenUsage(fresh + read + write, output, read, write, hour, calls)
    cached = _count(usage.get("input_tokens_details"), "cached_tokens")
    return TokenUsage(fresh, output, cached, tool_calls=calls)


def _count(usage: object, name: str) -> int:
    """Return a number of tokens; 0 for any other value."""
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if type(value) is int and 0 <= value <= MAX_COUNT else 0
