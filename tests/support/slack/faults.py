"""What the server does wrong when it is told to."""

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
    """Something that goes wrong with one call.

    What is named "after" happens to a call that was done; Slack has it, and the app cannot know.
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
        """Say whether the call is done all the same."""
        return self.name.endswith("after")

    @staticmethod
    def RATE_LIMIT(seconds: float) -> Fault:  # noqa: N802
        """Answer 429 with this Retry-After."""
        return Fault("rate limit", seconds)

    @staticmethod
    def SLOW(seconds: float) -> Fault:  # noqa: N802
        """Wait, then do it and answer."""
        return Fault("slow", seconds)

    @staticmethod
    def error(code: str, status: int = 200) -> Fault:
        """Refuse with this error and HTTP status."""
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
    """Which call meets which fault: first those that were named, then by chance."""

    seen: Counter[str] = field(default_factory=Counter)
    """How often each happened, by name."""
    _next: defaultdict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    _random: random.Random | None = None
    _rates: dict[Fault, float] = field(default_factory=dict)
    _spare: frozenset[str] = frozenset()

    def next(self, method: str, fault: Fault, times: int = 1) -> None:
        """Let the next calls of this method (ANY: of all) meet this; PASS lets one through."""
        self._next[method].extend([fault] * times)

    def random(self, seed: int, rates: Mapping[Fault, float], spare: tuple[str, ...] = ()) -> None:
        """Let faults happen by chance: rates are the probabilities, `spare` meets none."""
        if sum(rates.values()) > 1:
            raise ValueError("the rates of the faults are more than 1 together")
        self._random, self._rates = random.Random(seed), dict(rates)
        self._spare = frozenset(spare)

    def clear(self) -> None:
        """Work well from now on."""
        self._next.clear()
        self._random = None

    @property
    def left(self) -> int:
        """Count the named faults that nobody met so far."""
        return sum(map(len, self._next.values()))

    def take(self, method: str) -> Fault:
        """Return the fault of one call."""
        found = Fault.PASS
        if waiting := self._next.get(method) or self._next.get(ANY):
            found = waiting.popleft()
        elif self._random is not None and method not in self._spare:
            names = [*self._rates, Fault.PASS]
            weights = [*self._rates.values(), 1 - sum(self._rates.values())]
            found = self._random.choices(names, weights)[0]
        if found != Fault.PASS:
            self.seen[found.name] += 1
        return found
