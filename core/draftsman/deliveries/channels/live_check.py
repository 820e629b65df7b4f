"""Live checks: what a channel assumes of its service, tried on the service itself.

The package of a channel declares them in the `live_checks` of its plugin, and `draftsman doctor
--live` runs them, in a scratch place such as a channel or a board.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar

from draftsman.deliveries.channels.removals import Removals
from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.settings import Settings

LONG: Final = 30.0
"""Seconds from which a quick run leaves a wait out."""
PATIENCE: Final = 20
"""Seconds in which a service has to show what was written."""
T = TypeVar("T")


class AssumptionBroken(Exception):
    """The service does something else than assumed; the message says what."""


class NotTried(Exception):
    """The assumption cannot be tried here; the message says why."""


class LivePerson(Protocol):
    """The person who started the checks."""

    def confirm(self, plan: str) -> None:
        """Ask whether the plan may be carried out; raises Refused on no."""
        ...

    def asks(self, question: str) -> bool | None:
        """Return the answer to a question about what is visible; None if nobody is there."""
        ...

    async def wait(self, seconds: float) -> None:
        """Let time pass, and show it."""
        ...


@dataclass(frozen=True, slots=True)
class LiveSession:
    """What the checks of a service are given."""

    settings: Settings
    service: str
    """The name after `--live`."""
    scratch: str | None
    """The place that `--in` names."""
    person: LivePerson
    removals: Removals
    quick: bool = False

    def look(self, question: str) -> None:
        """Ask the person if something is visible; no: the assumption does not hold."""
        if not self._answer(question):
            raise AssumptionBroken(f"no: {question}")

    def request(self, text: str) -> None:
        """Ask the person to do something, and whether it is done."""
        if not self._answer(text):
            raise NotTried(f"was not done: {text}")

    def _answer(self, question: str) -> bool:
        answer = self.person.asks(question)
        if answer is None:
            raise NotTried("its question was not answered; it is asked on a terminal")
        return answer

    async def wait(self, seconds: float) -> None:
        """Let time pass; raises NotTried for a long wait of a quick run."""
        if self.quick and seconds >= LONG:
            raise NotTried(f"takes {seconds:.0f} s, which a quick run leaves out")
        await self.person.wait(seconds)

    async def until(
        self, read: Callable[[], Awaitable[T]], seconds: int = PATIENCE, every: int = 2
    ) -> T:
        """Return the first true value that is read, or the last if there is none in time."""
        for _ in range(0, seconds, every):
            if value := await read():
                return value
            await self.wait(every)
        return await read()


class LivePlace(Protocol):
    """A connection to a service, and the scratch place there."""

    @property
    def plan(self) -> str:
        """What the checks write and remove, and where: the question before the first write."""
        ...

    @property
    def facts(self) -> Mapping[str, str]:
        """What the report says about the service: its URL, its version."""
        ...

    async def begin(self) -> None:
        """Create the scratch place; what is created is removed by `LiveSession.removals`."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


PlaceT = TypeVar("PlaceT", bound=LivePlace)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCheck(Generic[PlaceT]):
    """An assumption about a service, as its page lists it."""

    name: str
    """In lower case with hyphens: `stream-in-thread`."""
    assumption: str
    """What the service is assumed to do, in Markdown."""
    otherwise: str
    """What draftsman does if it is wrong, in Markdown."""
    run: Callable[[PlaceT], Awaitable[str]]
    """Returns what the service answered. Raises AssumptionBroken; NotTried, or Failure of a call
    that is not the one of the assumption, if it cannot be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveChecks(Generic[PlaceT]):
    """The live checks of a channel."""

    connect: Callable[[LiveSession], Awaitable[PlaceT]]
    """Connects to the service, and writes nothing. Raises ConfigError, UsageError, Failure."""
    checks: tuple[LiveCheck[PlaceT], ...]
    packages: tuple[str, ...] = ()
    """Distributions whose versions the report has."""


def refused(error: Failure) -> NoReturn:
    """Raise AssumptionBroken for a refusal, or the failure itself: nothing is known then."""
    if classify(error) is ErrorClass.PERMANENT:
        raise AssumptionBroken(str(error)) from None
    raise error


async def assumed(call: Awaitable[T]) -> T:
    """Return the result of the call that an assumption is about, which may not be refused."""
    try:
        return await call
    except Failure as error:
        refused(error)


def require(condition: Any, otherwise: str) -> None:
    """Raise AssumptionBroken with what was seen, unless the condition holds."""
    if not condition:
        raise AssumptionBroken(otherwise)
