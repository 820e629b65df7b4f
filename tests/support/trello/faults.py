"""Injected faults of the fake server."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

ANY: Final = "*"
"""Every HTTP method, or every path."""
Route = tuple[str, str]
"""An HTTP method and the template of a path, such as ("POST", "/cards/{id}/actions/comments")."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong with one call.

    What is named "after" happens to a call that was done: Trello has it, and the client cannot
    know. `ECHO_FIRST` is no fault of Trello's: the webhooks of the call arrive before its answer.
    """

    name: str
    seconds: float = 0.0
    status: int = 0
    text: str = ""

    PASS: ClassVar[Fault]
    DROP_BEFORE: ClassVar[Fault]
    DROP_AFTER: ClassVar[Fault]
    RATE_LIMIT: ClassVar[Fault]
    HTML_503: ClassVar[Fault]
    HTML_AFTER: ClassVar[Fault]
    HTML_200: ClassVar[Fault]
    CUT_AFTER: ClassVar[Fault]
    CREATED_201: ClassVar[Fault]
    ECHO_FIRST: ClassVar[Fault]

    @property
    def after(self) -> bool:
        """Whether the call is applied despite the fault."""
        return self.name.endswith("after")

    @staticmethod
    def SLOW(seconds: float) -> Fault:  # noqa: N802
        """Wait, then do it and answer."""
        return Fault("slow", seconds)

    @staticmethod
    def error(status: int, text: str) -> Fault:
        """Refuse with this status and this plain text, undone."""
        return Fault("error", status=status, text=text)


Fault.PASS = Fault("pass")
Fault.DROP_BEFORE = Fault("drop before")
Fault.DROP_AFTER = Fault("drop after")
Fault.RATE_LIMIT = Fault("rate limit")
Fault.HTML_503 = Fault("html 503")
Fault.HTML_AFTER = Fault("html after")
Fault.HTML_200 = Fault("html 200")
Fault.CUT_AFTER = Fault("cut after")
Fault.CREATED_201 = Fault("created 201 after")
Fault.ECHO_FIRST = Fault("echo first")
error = Fault.error


@dataclass
class Faults:
    """Selects the fault of each call: first the planned faults, then random faults."""

    routes: frozenset[Route]
    """What can be named."""
    seen: Counter[str] = field(default_factory=Counter)
    """How often each happened, by name."""
    _next: defaultdict[Route, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    _random: random.Random | None = None
    _rates: dict[Fault, float] = field(default_factory=dict)
    _spare: frozenset[Route] = frozenset()

    def next(self, method: str, path: str, fault: Fault, times: int = 1) -> None:
        """Let the next calls of this route meet this; PASS lets one through."""
        if not any(self._named((method, path), route) for route in self.routes):
            raise LookupError(f"the fake has no {method} {path}")
        self._next[method, path].extend([fault] * times)

    def random(
        self, seed: int, rates: Mapping[Fault, float], spare: tuple[Route, ...] = ()
    ) -> None:
        """Let faults happen by chance: rates are the probabilities, `spare` meets none."""
        if sum(rates.values()) > 1:
            raise ValueError("the rates of the faults are more than 1 together")
        self._random, self._rates = random.Random(seed), dict(rates)
        self._spare = frozenset(spare)

    def clear(self) -> None:
        """Stop injecting faults."""
        self._next.clear()
        self._random = None

    @property
    def left(self) -> int:
        """Return the number of planned faults that are left."""
        return sum(map(len, self._next.values()))

    def take(self, route: Route) -> Fault:
        """Return the fault of one call."""
        found = Fault.PASS
        if waiting := self._waiting(route):
            found = waiting.popleft()
        elif self._random is not None and route not in self._spare:
            names = [*self._rates, Fault.PASS]
            weights = [*self._rates.values(), 1 - sum(self._rates.values())]
            found = self._random.choices(names, weights)[0]
        if found != Fault.PASS:
            self.seen[found.name] += 1
        return found

    def _waiting(self, route: Route) -> deque[Fault] | None:
        for named, faults in self._next.items():
            if faults and self._named(named, route):
                return faults
        return None

    @staticmethod
    def _named(named: Route, route: Route) -> bool:
        return all(one in (ANY, two) for one, two in zip(named, route, strict=True))
