"""The contract of live checks: on a fake of the service that breaks an assumption, or none.

class TestLiveChecks(LiveContract):
    checks = LIVE_CHECKS
    breaks = {"message-kept": lambda side: side.fake.lose_messages()}

    @pytest.fixture
    async def side(self): yield Side(…)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Final, Protocol

import pytest

from draftsman import log
from draftsman.deliveries.channels.live_check import LiveChecks, LiveSession
from draftsman.deliveries.channels.live_run import (
    LiveOutcome,
    LiveReport,
    LiveResult,
    LiveRun,
    hide_secrets_of,
)
from draftsman.deliveries.channels.removals import Removals
from draftsman.errors import Refused
from draftsman.formats.json_data import as_data
from draftsman.settings import Settings


class Onlooker:
    """A person who sees what is assumed, but for the questions with any of the texts in `unseen`.

    `passes` is called with the seconds of each wait, in which no time passes here.
    """

    def __init__(self, passes: Callable[[float], object] = lambda _: None) -> None:
        self.unseen: set[str] = set()
        self.refuses = False
        self.acts: Callable[[str], object] = lambda _: None
        """Called with each question, for what the person does in the service."""
        self.plans: list[str] = []
        self.passes = passes

    def confirm(self, plan: str) -> None:
        """Remember the plan; raises Refused if the person refuses it."""
        self.plans.append(plan)
        if self.refuses:
            raise Refused("canceled")

    def asks(self, question: str) -> bool:
        """Do what is asked for, and answer."""
        self.acts(question)
        return not any(text in question for text in self.unseen)

    async def wait(self, seconds: float) -> None:
        """Let time pass in the fake."""
        self.passes(seconds)


class LiveSide(Protocol):
    """A fake of the service, with a place for the checks."""

    settings: Settings
    service: str
    scratch: str | None
    secret: str
    """The token of the service."""
    person: Onlooker

    @property
    def table(self) -> object:
        """The table of the configuration with the secrets."""
        ...

    def written(self) -> Collection[object]:
        """Return what the checks created, and what is not removed yet."""
        ...

    def echo(self) -> None:
        """Let the service refuse a call with its own token in the error."""
        ...

    def keep(self) -> None:
        """Let the service refuse the next removal."""
        ...


BREAK: Final = "broken"


class LiveContract:
    """Tests of the live checks of a channel. A class inherits them, and has a fixture `side`."""

    checks: ClassVar[LiveChecks[Any]]
    breaks: ClassVar[Mapping[str, Callable[[Any], object]]]
    """For each check, what makes the fake break its assumption."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run the test of a broken assumption with each of them."""
        if BREAK in metafunc.fixturenames:
            metafunc.parametrize(BREAK, [check.name for check in self.checks.checks])

    @pytest.fixture(autouse=True)
    def _hidden(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(log, "_hidden", set())

    async def test_every_assumption_holds_on_the_fake(self, side: LiveSide) -> None:
        shown: list[LiveResult] = []
        report = await self._report(side, shown.append)
        assert [(item.name, item.answer) for item in report.checks if not _held(item)] == []
        assert report.ok
        assert shown == report.checks
        assert len(side.person.plans) == 1
        assert report.left == []
        assert [*side.written()] == []

    async def test_a_broken_assumption_is_the_only_one_that_is_named(
        self, side: LiveSide, broken: str
    ) -> None:
        self.breaks[broken](side)
        report = await self._report(side)
        named = [item.name for item in report.checks if item.outcome is LiveOutcome.BROKEN]
        assert named == [broken], report.checks
        assert not report.ok
        assert [*side.written()] == []

    async def test_nothing_is_written_before_the_plan_is_confirmed(self, side: LiveSide) -> None:
        side.person.refuses = True
        run = self._run(side)
        with pytest.raises(Refused):
            await run.execute(print)
        assert not run.began
        assert [*side.written()] == []

    async def test_an_interruption_removes_what_was_created(self, side: LiveSide) -> None:
        run = self._run(side)

        def stop(_: LiveResult) -> None:
            assert side.written()
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await run.execute(stop)
        assert [*side.written()] == []
        outcomes = [item.outcome for item in run.report.checks]
        assert outcomes[1:] == [LiveOutcome.UNTRIED] * (len(self.checks.checks) - 1)
        assert not run.report.ok

    async def test_what_cannot_be_removed_is_named(self, side: LiveSide) -> None:
        side.keep()
        report = await self._report(side)
        assert len(report.left) == 1
        assert len(side.written()) == 1
        assert "Not removed:" in report.markdown()

    async def test_no_report_contains_a_secret_of_the_service(self, side: LiveSide) -> None:
        side.echo()
        report = await self._report(side)
        texts = [report.markdown(), json.dumps(as_data(report.checks + report.left))]
        assert [text for text in texts if side.secret in text] == []
        assert "***" in texts[0]

    def _run(self, side: LiveSide) -> LiveRun:
        hide_secrets_of(side.table)
        session = LiveSession(side.settings, side.service, side.scratch, side.person, Removals())
        return LiveRun(self.checks, session)

    async def _report(
        self, side: LiveSide, show: Callable[[LiveResult], object] = lambda _: None
    ) -> LiveReport:
        run = self._run(side)
        await run.execute(show)
        return run.report


def _held(result: LiveResult) -> bool:
    return result.outcome is LiveOutcome.HELD
