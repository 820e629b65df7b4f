"""Fault injection into the server's responses."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

ANY = "*"
"""Every method, the response_url ("response_url") and the upload of bytes ("upload")."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one call.

    The faults named "after" happen after the call took effect, which the app cannot know.
    """

    name: str
    seconds: float = 0.0
    code: str = ""
    status: int = 200

    PASS: ClassVar[Fault]
    DROP_BEFORE: ClassVar[Fault]
    DROP_AFTER: ClassVar[Fault]
    HTML_503: ClassVar[Fault]
    HTML_AFTER: ClassVar[Fault]
    GARBAGE_AFTER: ClassVar[Fault]
    CUT_AFTER: ClassVar[Fault]

    @property
    def after(self) -> bool:
        """Whether the call takes effect all the same."""
        return self.name.endswith("after")

    @staticmethod
    def RATE_LIMIT(seconds: float) -> Fault:  # noqa: N802
        """Respond with 429 and this Retry-After."""
        return Fault("rate limit", seconds)

    @staticmethod
    def SLOW(seconds: float) -> Fault:  # noqa: N802
        """Delay the call and its response."""
        return Fault("slow", seconds)

    @staticmethod
    def error(code: str, status: int = 200) -> Fault:
        """Respond with this error and HTTP status."""
        return Fault("error", code=code, status=status)


Fault.PASS = Fault("pass")
Fault.DROP_BEFORE = Fault("drop before")
Fault.DROP_AFTER = Fault("drop after")
Fault.HTML_503 = Fault("html 503")
Fault.HTML_AFTER = Fault("html after")
Fault.GARBAGE_AFTER = Fault("garbage after")
Fault.CUT_AFTER = Fault("cut after")
error = Fault.error


@dataclass
class Faults:
    """The faults of calls: queued faults first, then random faults."""

    seen: Counter[str] = field(default_factory=Counter)
    """Number of faults that occurred, by name."""
    _next: defaultdict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    _random: random.Random | None = None
    _rates: dict[Fault, float] = field(default_factory=dict)
    _spare: frozenset[str] = frozenset()

    def next(self, method: str, fault: Fault, times: int = 1) -> None:
        """Queue faults for the next calls of this method (ANY: of all); PASS is no fault."""
        self._next[method].extend([fault] * times)

    def random(self, seed: int, rates: Mapping[Fault, float], spare: tuple[str, ...] = ()) -> None:
        """Inject random faults: rates are the probabilities, `spare` methods have none."""
        if sum(rates.values()) > 1:
            raise ValueError("the rates of the faults are more than 1 together")
        self._random, self._rates = random.Random(seed), dict(rates)
        self._spare = frozenset(spare)

    def clear(self) -> None:
        """Remove all faults."""
        self._next.clear()
        self._random = None

    @property
    def left(self) -> int:
        """Return the number of queued faults."""
        return sum(map(len, self._next.values()))

    def take(self, method: str) -> Fault:
        """Return the fault of one call."""
        fault = Fault.PASS
        if waiting := self._next.get(method) or self._next.get(ANY):
            fault = waiting.popleft()
        elif self._random is not None and method not in self._spare:
            names = [*self._rates, Fault.PASS]
            weights = [*self._rates.values(), 1 - sum(self._rates.values())]
            fault = self._random.choices(names, weights)[0]
        if fault != Fault.PASS:
            self.seen[fault.name] += 1
        return fault
