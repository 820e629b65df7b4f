"""What an agent may ask of a provider: the fields, types and headers of requests that reach it.

A provider can fetch addresses, run code and call servers for an agent, which would give it a
network, and bill what no response reports. All that is not known to do neither is refused. Pure.

Sources: Anthropic, "Messages" and "Beta headers"; OpenAI, "Responses" and "Chat completions";
Google, "Gemini API: generating content".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from draftsman.sandbox.gateway_access import Provider

MAX_NAME: Final = 120
"""Maximum characters of the name of what is refused."""


class NotAllowed(ValueError):
    """A part of a request that the gateway does not allow, by its name."""

    def __init__(self, name: str) -> None:
        shown = "".join(letter if letter.isprintable() else "?" for letter in name)[:MAX_NAME]
        super().__init__(
            f"this gateway does not allow {shown}: the provider could reach others for the agent,"
            f' or bill what it does not report; allow = ["{shown}"] of the gateway permits it'
        )


@dataclass(frozen=True, slots=True)
class _Values:
    """Scalars that match a pattern, or a list of them. `named`: a refusal has the value."""

    patterns: tuple[str, ...]
    named: bool = True


@dataclass(frozen=True, slots=True)
class _Fields:
    """An object with these fields, or a list of such objects; with `text` also a string."""

    fields: Mapping[str, _Shape]
    text: bool = False
    others: bool = False
    """Whether it may have more fields."""
    required: str | None = None


@dataclass(frozen=True, slots=True)
class _Types:
    """An object whose `type` matches a pattern, or a list of such objects."""

    types: Mapping[str, _Shape]
    text: bool = False
    default: str | None = None
    """The type of an object without one."""


_Shape = _Values | _Fields | _Types | None
"""None: any value."""


def _any(*names: str) -> dict[str, _Shape]:
    return dict.fromkeys(names)


_DATA_URL: Final = _Values(("data:*",), named=False)

# Anthropic

_TEXT_OR_IMAGE: Final[Mapping[str, _Shape]] = {
    "text": None,
    "image": _Fields({"source": _Types({"base64": None}), **_any("type", "cache_control")}),
}
_DOCUMENT: Final = _Fields(
    {
        "source": _Types(
            {
                "base64": None,
                "text": None,
                "content": _Fields({"type": None, "content": _Types(_TEXT_OR_IMAGE, text=True)}),
            }
        ),
        **_any("type", "title", "context", "citations", "cache_control"),
    }
)
_RESULT: Final = _Types(
    {**_TEXT_OR_IMAGE, "document": _DOCUMENT, **_any("search_result", "tool_reference")}, text=True
)
_BLOCK: Final = _Types(
    {
        **_RESULT.types,
        "tool_result": _Fields(
            {"content": _RESULT, **_any("type", "tool_use_id", "is_error", "cache_control")}
        ),
        **_any("tool_use", "thinking", "redacted_thinking", "compaction"),
        **_any("server_tool_use", "tool_search_tool_result"),
    },
    text=True,
)
_MESSAGES: Final = _Fields(
    {
        "messages": _Fields({"content": _BLOCK, **_any("role", "output_config")}),
        "system": _Types({"text": None}, text=True),
        "tools": _Types(
            _any("custom", "bash_*", "text_editor_*", "computer_*", "memory_*", "tool_search_*"),
            default="custom",
        ),
        "service_tier": _Values(("auto", "standard_only")),
        **_any("model", "max_tokens", "stop_sequences", "stream", "temperature", "top_k", "top_p"),
        **_any("metadata", "thinking", "tool_choice", "output_config", "output_format"),
        **_any("context_management", "cache_control", "diagnostics"),
    }
)

# OpenAI

_PARTS: Final = _Types(
    {
        **_any("input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"),
        "input_image": _Fields({"image_url": _DATA_URL, **_any("type", "detail")}),
        "input_file": _Fields(_any("type", "filename", "file_data", "detail")),
    },
    text=True,
)
_OUTPUT: Final = _Fields({"output": _PARTS}, others=True)
_FUNCTIONS: Final[Mapping[str, _Shape]] = _any("function", "custom")
_RESPONSE_TOOLS: Final = _Types(
    {
        **_FUNCTIONS,
        "namespace": _Fields(
            {"tools": _Types(_FUNCTIONS), **_any("type", "name", "description")},
        ),
        "web_search": _Fields(  # of its own index, as of an earlier day
            {"external_web_access": _Values(("false",))},
            others=True,
            required="external_web_access",
        ),
        **_any("apply_patch", "computer", "computer_use_preview", "local_shell", "tool_search"),
    }
)
_TIERS: Final = _Values(("auto", "default", "flex"))
_MODELS_THAT_SEARCH: Final = (
    *("*-search-preview*", "*-search-api*", "*deep-research*", "*:online"),
    *("sonar*", "*/sonar*", "compound*", "*/compound*"),
)
_SHARED: Final[Mapping[str, _Shape]] = {
    "service_tier": _TIERS,
    **_any("model", "stream", "stream_options", "temperature", "top_p", "top_logprobs", "store"),
    **_any("metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
    **_any("tool_choice", "parallel_tool_calls", "reasoning", "verbosity"),
}
"""Fields of both APIs of OpenAI."""
_RESPONSES: Final = _Fields(
    {
        **_SHARED,
        "input": _Types(
            {
                "message": _Fields({"content": _PARTS}, others=True),
                "function_call_output": _OUTPUT,
                "custom_tool_call_output": _OUTPUT,
                "computer_call_output": _Fields(
                    {"output": _Fields({"type": None, "image_url": _DATA_URL})}, others=True
                ),
                "tool_search_output": _Fields({"tools": _RESPONSE_TOOLS}, others=True),
                "additional_tools": _Fields({"tools": _RESPONSE_TOOLS}, others=True),
                **_any("function_call", "custom_tool_call", "computer_call", "tool_search_call"),
                **_any("local_shell_call", "local_shell_call_output", "web_search_call"),
                **_any("apply_patch_call", "apply_patch_call_output"),
                **_any("reasoning", "compaction", "compaction_summary"),
            },
            text=True,
            default="message",
        ),
        "tools": _RESPONSE_TOOLS,
        "background": _Values(("false",)),
        **_any("instructions", "include", "text", "truncation", "client_metadata"),
        **_any("max_output_tokens", "max_tool_calls"),
    }
)
_CHAT: Final = _Fields(
    {
        **_SHARED,
        "messages": _Fields(
            {
                "content": _Types(
                    {
                        "image_url": _Fields(
                            {
                                "image_url": _Fields({"url": _DATA_URL, "detail": None}),
                                **_any("type", "cache_control"),
                            }
                        ),
                        "file": _Fields(
                            {"file": _Fields(_any("filename", "file_data")), "type": None}
                        ),
                        **_any("text", "refusal", "thinking", "reasoning"),
                    },
                    text=True,
                ),
                **_any("role", "name", "tool_calls", "tool_call_id", "function_call", "refusal"),
                **_any("annotations", "cache_control", "prefix", "partial"),
                **_any("reasoning", "reasoning_content", "reasoning_details", "reasoning_text"),
                **_any("reasoning_opaque", "thinking", "extra_content"),
            }
        ),
        "tools": _Types(_FUNCTIONS),
        "modalities": _Values(("text",)),
        **_any("max_tokens", "max_completion_tokens", "n", "stop", "seed", "logprobs"),
        **_any("frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias"),
        **_any("functions", "function_call", "prediction", "response_format"),
        **_any("reasoning_effort", "thinking", "enable_thinking", "thinking_budget"),
        **_any("chat_template_kwargs", "min_p", "top_k", "usage", "vl_high_resolution_images"),
    }
)

# Google

_INLINE: Final = _Fields(  # audio has a price of its own
    {
        "mimeType": _Values(("application/pdf", "image/*", "text/*", "video/*")),
        **_any("data", "displayName"),
    }
)
_CONTENT: Final = _Fields(
    {
        "role": None,
        "parts": _Fields(
            {
                **_any("text", "thought", "thoughtSignature", "mediaResolution"),
                "inlineData": _INLINE,
                **_any("functionCall", "videoMetadata", "partMetadata"),
                "functionResponse": _Fields(
                    {"parts": _Fields({"inlineData": _INLINE})}, others=True
                ),
            }
        ),
    }
)
_GENERATION: Final[Mapping[str, _Shape]] = {
    "contents": _CONTENT,
    "systemInstruction": _CONTENT,
    "tools": _Fields(_any("functionDeclarations", "computerUse")),
    "generationConfig": _Fields({"responseModalities": _Values(("TEXT",))}, others=True),
    "serviceTier": _Values(("standard", "flex")),
    **_any("model", "toolConfig", "safetySettings", "labels"),
}
_GENERATE: Final = _Fields({**_GENERATION, "generateContentRequest": _Fields(_GENERATION)})

# Headers

_HEADERS: Final[Mapping[str, _Values]] = {
    "anthropic-version": _Values(("2023-01-01", "2023-06-01")),
    "anthropic-beta": _Values(
        (
            *("adaptive-thinking-*", "advanced-tool-use-*", "cache-diagnosis-*", "claude-code-*"),
            *("compact-*", "computer-use-*", "context-1m-*", "context-hint-*"),
            *("context-management-*", "effort-*", "extended-cache-ttl-*", "fallback-credit-*"),
            *("fine-grained-tool-streaming-*", "interleaved-thinking-*", "max-tokens-*"),
            *(
                "mid-conversation-system-*",
                "mid-conversation-tool-changes-*",
                "model-context-window-exceeded-*",
                "output-128k-*",
            ),
            *(
                "pdfs-*",
                "per-turn-control-*",
                "prompt-caching-*",
                "redact-thinking-*",
                "search-results-*",
            ),
            *("structured-outputs-*", "summarize-connector-text-*", "task-budgets-*"),
            *(
                "thinking-display-updates-*",
                "thinking-token-count-*",
                "token-counting-*",
                "token-efficient-tools-*",
            ),
            *("tool-examples-*", "tool-search-tool-*"),
        )
    ),
    "openai-beta": _Values(("responses=*",)),
}
_SHAPES: Final[Mapping[str, _Fields]] = {
    "/messages": _MESSAGES,
    "/messages/count_tokens": _MESSAGES,
    "/responses": _RESPONSES,
    "/chat/completions": _CHAT,
}
"""By path; those of Google have the model in it."""


def check_request(
    provider: Provider,
    path: str,
    headers: Mapping[str, str],
    body: Mapping[str, Any],
    allow: Sequence[str] = (),
) -> None:
    """Raise NotAllowed for what is neither known nor matches a pattern of `allow`."""
    checker = _Checker(tuple(allow), camel=provider == "google")
    for name, values in _HEADERS.items():
        for value in headers.get(name, "").split(","):
            if value.strip():
                checker.check(value.strip(), values, name)
    if provider == "openai":
        model = str(body.get("model"))
        if any(fnmatchcase(model.lower(), pattern) for pattern in _MODELS_THAT_SEARCH):
            checker.refuse(f"model={model}")
    checker.check_fields(body, _SHAPES.get(path, _GENERATE), "")


_SNAKE: Final = re.compile(r"_([a-z])")


@dataclass(frozen=True, slots=True)
class _Checker:
    """Compares a request with its shape."""

    allow: tuple[str, ...]
    camel: bool = field(kw_only=True)
    """Whether names in snake case are those in camel case, as for Google."""

    def refuse(self, name: str) -> None:
        """Raise NotAllowed unless the configuration allows it."""
        if not any(fnmatchcase(name, pattern) for pattern in self.allow):
            raise NotAllowed(name)

    def check(self, value: object, shape: _Shape, path: str) -> None:
        """Check a value, or each item of a list."""
        if shape is None or value is None:
            return
        for item in value if isinstance(value, list) else [value]:
            if isinstance(shape, _Values):
                self._check_value(item, shape, path)
            elif isinstance(item, dict):
                if isinstance(shape, _Fields):
                    self.check_fields(item, shape, path)
                else:
                    self._check_type(item, shape, path)
            elif not (shape.text and isinstance(item, str)):
                self.refuse(path)

    def check_fields(self, value: Mapping[str, Any], shape: _Fields, path: str) -> None:
        """Check the fields of an object."""
        names = set()
        for given, item in value.items():
            name = _SNAKE.sub(lambda match: match[1].upper(), given) if self.camel else given
            names.add(name)
            inner = f"{path}.{name}" if path else name
            if name in shape.fields:
                self.check(item, shape.fields[name], inner)
            elif not shape.others:
                self.refuse(inner)
        if shape.required is not None and shape.required not in names:
            self.refuse(f"{path}.{shape.required}")

    def _check_type(self, value: Mapping[str, Any], shape: _Types, path: str) -> None:
        kind = value.get("type") or shape.default
        if isinstance(kind, str):
            for pattern, inner in shape.types.items():
                if fnmatchcase(kind, pattern):
                    self.check(value, inner, path)
                    return
        self.refuse(f"{path}.type={kind}")

    def _check_value(self, value: object, shape: _Values, path: str) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        if not any(fnmatchcase(text, pattern) for pattern in shape.patterns):
            self.refuse(f"{path}={text}" if shape.named else path)
