"""Models: their servers, gateways for agents, and prices."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

from pydantic import Field

from draftsman.settings.addresses import WebAddress
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section


class LlmSettings(Section):
    """Models for llm_generate."""

    provider: Literal["openai", "anthropic"] = Field(examples=["openai"])
    """openai: any server with /chat/completions. anthropic: /v1/messages."""
    base_url: WebAddress | None = Field(None, examples=["http://localhost:11434/v1"])
    """URL of the server; an IP address or localhost is allowed. Unset: the provider's own URL.
    OpenAI's ends with /v1, Anthropic's does not."""
    model: str = Field(min_length=1, max_length=200, examples=["some-model"])
    """The provider's name of the model."""
    max_tokens: int = Field(4096, ge=1, le=1_000_000)
    """Default for the maximum tokens of a response."""
    api_key: SecretSettings | None = Field(None, examples=[{"env": "LLM_KEY"}])
    """The API key. Unset: no key is sent."""


_Part = Annotated[str, Field(min_length=1, max_length=200)]


class GatewaySettings(Section):
    """Model providers that agents call through the worker (docs/gateway.md).

    The worker adds the key.
    """

    provider: Literal["openai", "anthropic", "google"] = Field(examples=["anthropic"])
    """anthropic: Messages. openai: Responses and Chat Completions. google: the Gemini API."""
    base_url: WebAddress | None = Field(None, examples=["http://localhost:4000"])
    """URL of the server; an IP address or localhost is allowed. Unset: the provider's own URL.
    OpenAI's ends with /v1, those of the others do not."""
    api_key: SecretSettings | None = Field(None, examples=[{"env": "ANTHROPIC_KEY"}])
    """The API key. Unset: no key is sent."""
    stream_timeout: float | None = Field(None, gt=0, le=86_400, examples=[3600.0])
    """Seconds of a streamed response. Unset: a stream has no limit while bytes arrive."""
    allow: Annotated[tuple[_Part, ...], Field(max_length=100)] = Field(
        (), examples=[["tools.type=web_search_*", "mcp_servers"]]
    )
    """Fields, types and headers of requests that are refused otherwise, as the refusal names them,
    or patterns of these: with them the provider can reach others for an agent without a network."""


_Price = Annotated[float, Field(ge=0, le=1_000_000)]


class PriceSettings(Section):
    """Prices of models, by name or pattern, in US dollars per million tokens.

    Examples: look up your provider's.
    """

    input: _Price = Field(examples=[3.0])
    """Price of the input."""
    output: _Price = Field(examples=[15.0])
    """Price of the output."""
    cache_read: _Price | None = Field(None, examples=[0.3])
    """Input that was read from a cache. Unset: as input."""
    cache_write: _Price | None = Field(None, examples=[3.75])
    """Input that was written to a cache. Unset: as input."""
    cache_write_1h: _Price | None = Field(None, examples=[6.0])
    """Input that was written to a cache for an hour. Unset: twice input, or cache_write if it is
    more."""
    tool_call: float = Field(0.05, ge=0, le=1_000)
    """US dollars for a call of a tool that the provider runs, such as its search of the web."""
    date: datetime.date = Field(examples=[datetime.date(2026, 11, 1)])
    """Day on which the price was looked up."""
    source: str = Field(min_length=1, max_length=500, examples=["the provider's price list"])
    """Where it was looked up."""
