"""Prices of models. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from draftsman.sandbox.gateway.api_formats import TokenUsage
    from draftsman.settings import PriceSettings

PER: Final = 1_000_000
"""Tokens that a price is for."""


def find_price(prices: Mapping[str, PriceSettings], model: str) -> PriceSettings | None:
    """Return the price of a model: of its name, else of the longest pattern that matches it."""
    if model in prices:
        return prices[model]
    patterns = [pattern for pattern in prices if fnmatchcase(model, pattern)]
    return prices[max(patterns, key=lambda item: (len(item), item))] if patterns else None


def cost_usd(price: PriceSettings, usage: TokenUsage) -> float:
    """Return the cost of a call in US dollars."""
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    uncached = max(usage.input - usage.cache_read - usage.cache_write, 0)
    total = uncached * price.input + usage.output * price.output
    return (total + usage.cache_read * read + usage.cache_write * write) / PER
