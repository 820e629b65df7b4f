"""Services, settings and limits that the pages share."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Final

from draftsman.formats.shown_zone import SHOWN_ZONE
from draftsman.jobs.counts import number_of
from draftsman.processes.lifecycle import StopSignal
from draftsman_bots.process.background import BackgroundTasks
from draftsman_bots.web.access import Access, Tabs, Visit
from draftsman_bots.web.problems import PageProblem

if TYPE_CHECKING:
    from starlette.requests import Request

    from draftsman.people.service.browser_sessions import BrowserSessions
    from draftsman.runtime import Runtime
    from draftsman_bots.web.oidc import OidcProvider
    from draftsman_bots.web.settings import WebSettings


# Rate limits of requests by key, in the memory of the process.


MAX_KEYS: Final = 10_000
"""Keys that are remembered; the least recently used is dropped."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RequestLimit:
    """At most `count` requests of a key in `seconds`, spread evenly after a first burst."""

    def __init__(self, count: int, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._count = count
        self._rate = count / seconds
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str) -> int:
        """Count a request; return 0, or the seconds after which the next request is allowed."""
        now = self._clock()
        bucket = self._buckets.pop(key, None) or _Bucket(float(self._count), now)
        self._buckets[key] = bucket
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)
        bucket.tokens = min(self._count, bucket.tokens + (now - bucket.at) * self._rate)
        bucket.at = now
        if bucket.tokens < 1:
            return math.ceil((1 - bucket.tokens) / self._rate)
        bucket.tokens -= 1
        return 0


MAX_STREAMS: Final = 6
"""Live logs of a session at a time."""
MAX_ALL_STREAMS: Final = 300


class Limits:
    """Rate limits by address and by session."""

    def __init__(self) -> None:
        self._requests = RequestLimit(600, 60)
        self._sign_ins = RequestLimit(10, 60)
        self._forms = RequestLimit(30, 60)
        self._forms_of_address = RequestLimit(120, 60)

    def count_request(self, address: str) -> None:
        """Count a request; raises PageProblem above 600 a minute from an address."""
        _refuse(self._requests.take(address))

    def count_sign_in(self, address: str) -> None:
        """Count an attempt to sign in; raises PageProblem above 10 a minute from an address."""
        _refuse(self._sign_ins.take(address))

    def count_form(self, session: int, address: str) -> None:
        """Count a form; raises PageProblem above 30 a minute of a session, 120 of an address."""
        _refuse(self._forms.take(str(session)) or self._forms_of_address.take(address))


@dataclass(frozen=True)
class WebContext:
    """The services of the pages."""

    rt: Runtime
    settings: WebSettings
    sessions: BrowserSessions
    access: Access
    provider: OidcProvider | None = None
    limits: Limits = field(default_factory=Limits)
    stop: StopSignal = field(default_factory=StopSignal)
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    """Answers that wait for the end of their undo window."""
    streams: Counter[int] = field(default_factory=Counter)
    """Live logs by session."""

    async def visit(self, request: Request) -> Visit:
        """Return the visit of a page, with the numbers in its menu; raises SignInRequired."""
        visit = await self.access.required(request)
        policy = self.rt.policy
        SHOWN_ZONE.set(policy.zone_of(policy.people.get(visit.actor.person or "")))
        rt = self.rt_of(visit)
        counts = await rt.read_model.counts() or {}
        tabs = Tabs(await rt.questions.counts(visit.actor), number_of("jobs", counts))
        newest = await rt.pending_decisions.newest_of(visit.actor)
        held = newest if newest and newest.question is not None else None
        visit = replace(visit, tabs=tabs, held=held)
        request.state.visit = visit
        return visit

    def rt_of(self, visit: Visit) -> Runtime:
        """Return the services that show what the visitor may see."""
        return self.rt.seen_by(visit.actor)


def _refuse(seconds: int) -> None:
    if seconds:
        raise PageProblem(
            429, "Too many requests.", f"Try again in {seconds} s.", retry_after=seconds
        )
