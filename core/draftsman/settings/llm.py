"""Models: their servers, gateways for agents, and prices."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

from pydantic import Field

from draftsman.settings.addresses import WebAddress
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section


class LlmSettings(Section):
    """A model for `llm_generate`."""

    provider: Literal["openai", "anthropic"]
    """Protocol of the server: `/chat/completions` or `/v1/messages`."""
    base_url: WebAddress | None = None
    """Default: the provider's URL. OpenAI's ends with `/v1`, Anthropic's does not."""
    model: str = Field(min_length=1, max_length=200)
    max_tokens: int = Field(4096, ge=1, le=1_000_000)
    """Default maximum of the output tokens."""
    api_key: SecretSettings | None = None
    """API key; default: no key is sent, as for a local server."""


class GatewaySettings(Section):
    """A model provider that agents call through the worker, which adds the key."""

    provider: Literal["openai", "anthropic", "google"]
    """API of the server: Responses and Chat Completions, Messages, or the Gemini API."""
    base_url: WebAddress | None = None
    """Default: the provider's URL. OpenAI's ends with `/v1`, those of the others do not."""
    api_key: SecretSettings | None = None
    """API key; default: no key is sent, as for a local server."""


_Price = Annotated[float, Field(ge=0, le=1_000_000)]


class PriceSettings(Section):
    """Price of a model, in US dollars per million tokens."""

    input: _Price
    output: _Price
    cache_read: _Price | None = None
    """Input that was read from a cache; default: as `input`."""
    cache_write: _Price | None = None
    """Input that was written to a cache; default: as `input`."""
    date: datetime.date
    """Day on which the price was looked up."""
    source: str = Field(min_length=1, max_length=500)
    """Where it was looked up, such as the URL of the provider's price list."""
