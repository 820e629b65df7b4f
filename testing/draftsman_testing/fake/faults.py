"""Fault injection into the responses of a fake server."""

from __future__ import annotations

import asyncio
import copy
import random
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar

from aiohttp import web

Change = Callable[[Mapping[str, Any], Callable[[], Any]], Any]
ANY: Final = "*"
"""Every call."""
HTML: Final = "<!DOCTYPE html><html><body><h1>503 Service Unavailable</h1></body></html>"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a call.

    The faults named "after" happen after the call took effect, which the app cannot know.
    """

    name: str
    seconds: float = 0.0
    code: str = ""
    status: int = 200
    text: str = ""

    PASS: ClassVar[Fault]
    DROP_BEFORE: ClassVar[Fault]
    DROP_AFTER: ClassVar[Fault]
    HTML_503: ClassVar[Fault]
    HTML_AFTER: ClassVar[Fault]
    CUT_AFTER: ClassVar[Fault]

    @property
    def after(self) -> bool:
        """Whether the call takes effect all the same."""
        return self.name.endswith("after")

    @staticmethod
    def SLOW(seconds: float) -> Fault:  # noqa: N802
        """Delay the call and its response."""
        return Fault("slow", seconds)


Fault.PASS = Fault("pass")
Fault.DROP_BEFORE = Fault("drop before")
Fault.DROP_AFTER = Fault("drop after")
Fault.HTML_503 = Fault("html 503")
Fault.HTML_AFTER = Fault("html after")
Fault.CUT_AFTER = Fault("cut after")

CallName = TypeVar("CallName", bound=Hashable)


class Faults(ABC, Generic[CallName]):
    """The faults of calls: queued faults first, then random faults."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        """Number of faults that occurred, by name."""
        self._queues: defaultdict[CallName, deque[Fault]] = defaultdict(deque)
        self._random: random.Random | None = None
        self._rates: dict[Fault, float] = {}
        self._spared: frozenset[CallName] = frozenset()
        self._changes: dict[CallName, Change] = {}

    @abstractmethod
    def _queue(self, call: CallName) -> deque[Fault] | None:
        """Return the queued faults of a call, if there are any."""

    def change(self, call: CallName, change: Change) -> None:
        """Let the service do something else in a call from now on.

        `change` gets the arguments of a call, and the function that performs it. It returns the
        response, which it may change, or raises an error of the fake.
        """
        self._changes[call] = change

    def perform(self, call: CallName, args: Mapping[str, Any], work: Callable[[], Any]) -> Any:
        """Perform a call, as it was changed."""
        if (change := self._changes.get(call)) is None:
            return work()
        return change(args, lambda: copy.deepcopy(work()))

    def random(
        self, seed: int, rates: Mapping[Fault, float], spare: tuple[CallName, ...] = ()
    ) -> None:
        """Inject random faults: rates are the probabilities, `spare` calls have none."""
        if sum(rates.values()) > 1:
            raise ValueError("the rates of the faults are more than 1 together")
        self._random = random.Random(seed)
        self._rates = dict(rates)
        self._spared = frozenset(spare)

    def clear(self) -> None:
        """Remove all faults."""
        self._queues.clear()
        self._changes.clear()
        self._random = None

    @property
    def left(self) -> int:
        """Return the number of queued faults."""
        return sum(map(len, self._queues.values()))

    def take(self, call: CallName) -> Fault:
        """Return the fault of a call."""
        fault = Fault.PASS
        if queue := self._queue(call):
            fault = queue.popleft()
        elif self._random is not None and call not in self._spared:
            names = [*self._rates, Fault.PASS]
            weights = [*self._rates.values(), 1 - sum(self._rates.values())]
            fault = self._random.choices(names, weights)[0]
        if fault != Fault.PASS:
            self.seen[fault.name] += 1
        return fault


async def respond(
    request: web.Request,
    fault: Fault,
    perform: Callable[[], Awaitable[web.Response]],
    refuse: Callable[[Fault], web.Response | None],
) -> web.Response:
    """Perform a call with its fault.

    `refuse` records a call without effect, and returns its response or None for a common fault.
    """
    if fault.name == "slow":
        await asyncio.sleep(fault.seconds)
    if fault.name in ("pass", "slow"):
        return await perform()
    if not fault.after:
        refusal = refuse(fault)
        return _damaged(web.Response(), request, fault) if refusal is None else refusal
    return _damaged(await perform(), request, fault)


def _damaged(response: web.Response, request: web.Request, fault: Fault) -> web.Response:
    """Return the response as it arrives."""
    if fault.name.startswith("html"):
        status = 200 if fault.name == "html 200" else 503
        return web.Response(text=HTML, status=status, content_type="text/html")
    if fault.name == "created 201 after":
        return web.Response(text=response.text, status=201, content_type="application/json")
    if fault.name == "garbage after":
        return web.Response(text="upstream says: <oops>", content_type="application/json")
    if fault == Fault.CUT_AFTER:
        half = (response.text or "")[: len(response.text or "") // 2]
        return web.Response(text=half, content_type="application/json")
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
