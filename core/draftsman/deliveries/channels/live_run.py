"""Run of the live checks of a service, and its report, which contains no secret."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from importlib import metadata
from typing import Any, Final
from urllib.parse import quote

from pydantic import BaseModel

from draftsman import log
from draftsman.deliveries.channels.live_check import (
    AssumptionBroken,
    LiveCheck,
    LiveChecks,
    LiveSession,
    NotTried,
)
from draftsman.errors import DraftsmanError, Failure
from draftsman.formats.invisible import one_line
from draftsman.formats.times import format_time
from draftsman.formats.truncation import truncate
from draftsman.outbound.secret_values import MIN_LENGTH, MissingSecret, read_secret
from draftsman.settings.secret import SecretSettings
from draftsman.version import installed

MAX_ANSWER: Final = 400
"""Characters of an answer in the report."""
INTERRUPTED: Final = "the checks were interrupted"
_ODD_ANSWER: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a check that reads an answer of another form."""


class LiveOutcome(StrEnum):
    """Result of a live check."""

    HELD = "held"
    BROKEN = "did not hold"
    UNTRIED = "could not be tried"


@dataclass(frozen=True, slots=True)
class LiveResult:
    """The result of a check: `answer` is what the service answered, or why it was not tried."""

    name: str
    outcome: LiveOutcome
    assumption: str
    answer: str


@dataclass(slots=True)
class LiveReport:
    """The results of the checks of a service."""

    service: str
    at: datetime
    versions: dict[str, str]
    facts: dict[str, str] = field(default_factory=dict)
    checks: list[LiveResult] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """What could not be removed, and why."""

    @property
    def ok(self) -> bool:
        """Whether every assumption held."""
        return all(result.outcome is LiveOutcome.HELD for result in self.checks)

    @property
    def summary(self) -> str:
        """The number of each result: `17 held, 1 did not hold`."""
        outcomes = [result.outcome for result in self.checks]
        counts = ((outcomes.count(outcome), outcome) for outcome in LiveOutcome)
        return ", ".join(f"{count} {outcome}" for count, outcome in counts if count)

    def markdown(self) -> str:
        """Return the report for people, such as for an issue; no text in it has an effect there."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"# Live check of {_code(self.service)}"
        yield ""
        yield f"- {format_time(self.at)}: {self.summary}"
        for name, value in (self.versions | self.facts).items():
            yield f"- {name}: {_code(value)}"
        yield ""
        yield "| check | result | assumption | answer |"
        yield "|---|---|---|---|"
        for item in self.checks:
            cells = (f"`{item.name}`", item.outcome, item.assumption, _code(item.answer))
            yield f"| {' | '.join(cells)} |"
        if self.left:
            yield ""
            yield "Not removed:"
            yield ""
            yield from (f"- {_code(item)}" for item in self.left)


class LiveRun:
    """The checks of a service; `report` is complete whatever ends them."""

    def __init__(self, live: LiveChecks[Any], session: LiveSession) -> None:
        self._live = live
        self._session = session
        versions = {"draftsman": installed(), "Python": platform.python_version()}
        versions |= {name: metadata.version(name) for name in live.packages}
        self.report = LiveReport(session.service, datetime.now(UTC), versions)
        self.began = False
        """Whether the person confirmed the plan."""

    async def execute(self, show: Callable[[LiveResult], object]) -> None:
        """Connect, ask, try every assumption, and remove what was created.

        `show` is called with each result.
        Raises Refused, ConfigError, UsageError and Failure before the first write; a failure to
        create the scratch place is raised, too.
        """
        place = await self._live.connect(self._session)
        try:
            self._session.person.confirm(place.plan)
            self.began = True
            reason = INTERRUPTED
            try:
                await place.begin()
                self.report.facts = {name: _safe(value) for name, value in place.facts.items()}
                for check in self._live.checks:
                    result = await _try(check, place)
                    self.report.checks.append(result)
                    show(result)
            except DraftsmanError as error:
                reason = str(error)
                raise
            finally:
                rest = self._live.checks[len(self.report.checks) :]
                self.report.checks += [_untried(check, reason) for check in rest]
                try:
                    await self._session.removals.run()
                finally:
                    self.report.left = [_safe(item) for item in self._session.removals.left]
        finally:
            await place.close()


def hide_secrets_of(section: object) -> None:
    """Let no report contain the secrets of a table, as far as they can be read here."""
    if isinstance(section, SecretSettings):
        try:
            secret = read_secret(section, "")
        except MissingSecret:
            return
        for form in {secret, quote(secret, safe="")}:
            if len(form) >= MIN_LENGTH:
                log.hide(form)
    elif isinstance(section, BaseModel):
        for name in type(section).model_fields:
            hide_secrets_of(getattr(section, name))
    elif isinstance(section, dict):
        for value in section.values():
            hide_secrets_of(value)


async def _try(check: LiveCheck[Any], place: Any) -> LiveResult:
    try:
        outcome, answer = LiveOutcome.HELD, await check.run(place)
    except AssumptionBroken as broken:
        outcome, answer = LiveOutcome.BROKEN, str(broken)
    except (NotTried, Failure) as reason:
        outcome, answer = LiveOutcome.UNTRIED, str(reason)
    except _ODD_ANSWER as error:
        outcome = LiveOutcome.BROKEN
        answer = f"the answer has another form: {type(error).__name__}: {error}"
    except Exception as error:
        outcome, answer = LiveOutcome.UNTRIED, f"{type(error).__name__}: {error}"
    return LiveResult(check.name, outcome, check.assumption, _safe(answer))


def _untried(check: LiveCheck[Any], reason: str) -> LiveResult:
    return LiveResult(check.name, LiveOutcome.UNTRIED, check.assumption, _safe(reason))


def _safe(text: str) -> str:
    """Return a text of the service as a line without secrets."""
    return truncate(one_line(log.redact(text)), MAX_ANSWER)


def _code(text: str) -> str:
    """Return a text as code in a table of Markdown, where nothing in it has an effect."""
    inert = text.replace("`", "'").replace("|", "\u00a6").strip()
    return f"`{inert}`" if inert else ""
