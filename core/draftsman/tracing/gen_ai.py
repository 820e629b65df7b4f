"""Spans of calls of models, by the GenAI semantic conventions of OpenTelemetry."""

from __future__ import annotations

from typing import Final

from draftsman.tracing.tracer import Attributes

CONVENTIONS: Final = "1.41.0"
"""The version of the semantic conventions."""
SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{CONVENTIONS}"
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CHAT: Final = "chat"
_PROVIDERS: Final = {"google": "gcp.gemini"}
"""Providers that have another name in the conventions."""


def call_name(model: str) -> str:
    """Return the name of the span of a call."""
    return f"{CHAT} {model}"


def call(provider: str, model: str) -> Attributes:
    """Return the attributes of a call that begins."""
    return {
        OPERATION: CHAT,
        PROVIDER: _PROVIDERS.get(provider, provider),
        REQUEST_MODEL: model,
    }


def response(model: str, input_tokens: int, output_tokens: int) -> Attributes:
    """Return the attributes of a call that has ended."""
    return {
        RESPONSE_MODEL: model or None,
        INPUT_TOKENS: input_tokens,
        OUTPUT_TOKENS: output_tokens,
    }
