"""Prices of models, and the tokens that providers report."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.sandbox.gateway.api_formats import (
    TokenUsage,
    reported_model,
    reported_usage,
    request_usage_report,
    route,
    upstream_url,
)
from draftsman.sandbox.gateway.metering import cost_usd, find_price
from draftsman.settings.llm import PriceSettings


def price(given: float, made: float, **cache: float) -> PriceSettings:
    values = {"input": given, "output": made, "date": "2026-11-01", "source": "test"}
    return PriceSettings.model_validate(values | cache)


def test_the_most_specific_price_counts() -> None:
    prices = {"*": price(1, 1), "claude-*": price(2, 2), "claude-opus-5": price(3, 3)}
    chosen = [find_price(prices, name) for name in ("gpt", "claude-haiku", "claude-opus-5")]
    assert [item.input if item else None for item in chosen] == [1, 2, 3]
    assert find_price({"claude-*": price(2, 2)}, "gpt") is None


def test_a_cost_has_its_four_parts() -> None:
    usage = TokenUsage(input=1_000_000, output=200_000, cache_read=400_000, cache_write=100_000)
    assert cost_usd(price(10, 50, cache_read=1, cache_write=12), usage) == pytest.approx(16.6)
    assert cost_usd(price(10, 50), usage) == pytest.approx(20)


def test_routes_have_an_optional_prefix() -> None:
    assert route("anthropic", "POST", "/v1/messages") == "/messages"
    assert route("anthropic", "POST", "/messages") == "/messages"
    assert upstream_url("anthropic", None, "/messages") == "https://api.anthropic.com/v1/messages"
    assert upstream_url("openai", "http://x/v1/", "/responses") == "http://x/v1/responses"


def test_a_stream_of_responses_reports_at_its_end() -> None:
    event = {"type": "response.completed", "response": {"model": "m", "usage": {"input_tokens": 5}}}
    assert (reported_model(event), reported_usage(event)) == ("m", TokenUsage(5))
    assert request_usage_report("/responses", {"stream": True}) == {"stream": True}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "usage",
                        "message",
                        "response",
                        "model",
                        "input_tokens",
                        "output_tokens",
                        "prompt_tokens",
                        "prompt_tokens_details",
                        "cached_tokens",
                    ]
                ),
                inner,
            )
        ),
        max_leaves=12,
    )
)
def test_any_report_has_counts(data: Any) -> None:
    body = data if isinstance(data, dict) else {"usage": data}
    usage = reported_usage(body) or TokenUsage()
    assert min(usage.input, usage.output, usage.cache_read, usage.cache_write) >= 0
    assert isinstance(reported_model(body), str | None)
