"""What a call costs: prices of models, and the tokens of a response, however it ends.

A call never counts for less than its provider bills: what no response reports is estimated.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

from draftsman.costs.budgets import CallEstimate
from draftsman.sandbox.gateway import api_formats
from draftsman.sandbox.gateway.api_formats import TokenUsage
from draftsman.settings.llm import PriceSettings

PER: Final = 1_000_000
"""Tokens that a price is for."""
HOUR_FACTOR: Final = 2
"""Price of input that is cached for an hour, as a multiple of `input`, unless it is set."""
BYTES_PER_TOKEN: Final = 4
"""For requests, and for responses that do not report all of their tokens."""
MAX_MODELS: Final = 20
"""Maximum models of a response whose prices are compared."""
FREE_CALLS: Final = 60
"""Calls of a run in FREE_PERIOD that count for nothing, such as those that count tokens."""
FREE_PERIOD: Final = 60.0
"""Seconds."""


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
    hour = price.cache_write_1h
    if hour is None:
        hour = max(write, price.input * HOUR_FACTOR)
    uncached = max(usage.input - usage.cache_read - usage.cache_write, 0)
    total = uncached * price.input + usage.output * price.output
    total += (usage.cache_write - usage.cache_write_1h) * write + usage.cache_write_1h * hour
    return (total + usage.cache_read * read) / PER + usage.tool_calls * price.tool_call


class Meter:
    """The models and the tokens of a response, read from a copy of it.

    `estimate` is the maximum use of the call, and `sent` the bytes of its request.
    """

    def __init__(self, estimate: CallEstimate, sent: int) -> None:
        self.left = False
        """Whether the request was sent."""
        self.refused = False
        """Whether the provider refused it, which costs nothing."""
        self.received = 0
        """Bytes of the body."""
        self.is_complete = False
        """Whether the response has its end."""
        self._estimate = estimate
        self._sent = sent
        self._models = [estimate.model]
        self._usage = TokenUsage()
        self._tools: set[str] = set()
        self._has_events = False

    @property
    def is_billed(self) -> bool:
        """Whether the provider may bill the call."""
        return self.left and not self.refused

    @property
    def model(self) -> str:
        """The model that the response names last, else the requested one."""
        return self._models[-1]

    def total(self) -> TokenUsage:
        """Return the tokens of the call.

        Of a response that is cut they are at least a token for four bytes; of one that told
        nothing, the maximum of the call.
        """
        floor = TokenUsage(self._sent // BYTES_PER_TOKEN, self.received // BYTES_PER_TOKEN)
        usage = self._usage.merge(TokenUsage(tool_calls=len(self._tools)))
        if self.is_complete:
            missing_input = 0 if usage.input else floor.input
            missing_output = 0 if usage.output else floor.output
            return usage.merge(TokenUsage(missing_input, missing_output))
        if not self._has_events:
            floor = floor.merge(
                TokenUsage(self._estimate.input_tokens, self._estimate.output_tokens)
            )
        return usage.merge(floor)

    def cost_usd(self, prices: Mapping[str, PriceSettings]) -> float:
        """Return the cost by the dearest price of the models; 0 without any, which is refused."""
        usage = self.total()
        found = (find_price(prices, model) for model in self._models)
        return max((cost_usd(price, usage) for price in found if price is not None), default=0.0)

    def add_event(self, data: str) -> None:
        """Add the data of an event."""
        self._has_events = True
        if data.strip() == api_formats.DONE:
            self.is_complete = True
        else:
            self._add(data)

    def add_body(self, body: bytes) -> None:
        """Add a complete body."""
        self.is_complete = self._add(body)

    def _add(self, text: str | bytes) -> bool:
        """Add an object; return whether it is one."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return False
        if not isinstance(data, dict):
            return False
        self.is_complete = self.is_complete or api_formats.is_last(data)
        model = api_formats.reported_model(data)
        if model and model != self.model and len(self._models) < MAX_MODELS:
            self._models.append(model)
        self._tools |= api_formats.reported_tool_calls(data)
        if (usage := api_formats.reported_usage(data)) is not None:
            self._usage = self._usage.merge(usage)
        return True


class FreeCalls:
    """Limits the calls that count for nothing: a provider limits the calls of its key, too."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def wait(self) -> float:
        """Count a call and return 0, or the seconds until the next one may start."""
        now = time.monotonic()
        while self._times and now - self._times[0] >= FREE_PERIOD:
            self._times.popleft()
        if len(self._times) >= FREE_CALLS:
            return self._times[0] + FREE_PERIOD - now
        self._times.append(now)
        return 0.0
