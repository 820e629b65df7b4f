"""Order of the benchmarks: every measure for every queue in every round, in alternation."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

import psycopg

from bench import (
    agents,
    answer,
    catalog,
    checks,
    commands,
    dashboard,
    deep_queue,
    floor,
    functions,
    limits,
    measure,
    pgbench,
    slack,
    vacuum,
    volumes,
    workers,
)
from bench.history import Backlog, seed
from bench.measure import Run
from bench.queue_process import Contestant
from bench.report import OURS, Figures, Key, Results
from bench.resource_usage import BUSY, OtherWork, ServerCpu, busy
from bench.server import BenchError, BenchServer

FAILURES = (BenchError, psycopg.Error, OSError)
"""Errors of a peer after which the others continue."""
Measure = Callable[[Run], Awaitable[Figures]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A measure, the settings of the peers, and its number of jobs."""

    name: str
    measure: Measure | None
    """None if only the programs are measured that it is against."""
    preset: str
    jobs: int
    same: bool = False
    """Whether every queue gets the same number of jobs, however slow."""
    alone: bool = False
    """Whether only draftsman has it."""
    once: bool = False
    """Whether a single round is enough."""
    against: tuple[tuple[str, Measure], ...] = ()
    """Programs other than a queue that draftsman's figure is compared with."""
    extra: bool = False
    """Whether it is measured only by name."""
    hosts: bool = False
    """Whether it is also measured on the servers with default settings, peers excepted."""
    fresh: bool = False
    """Whether it is not measured over a history."""
    function: str = ""
    """Where a function runs; only the queues that run it there are measured."""

    def is_for(self, side: Contestant) -> bool:
        """Return whether a queue is measured."""
        if self.function:
            return self.function in side.about.get("functions", ())
        return side.ours or not (self.alone or side.about.get("keeps_nothing"))


def scenarios(
    jobs: int = 0, minutes: float | None = None, deep: int = deep_queue.JOBS
) -> list[Scenario]:
    """Return the measures, for the jobs of the largest drain and of a deep queue.

    `minutes` is the duration of those that have one.
    """
    samples = max(20, jobs // 160)
    own = partial(Scenario, same=True, alone=True)
    return [
        Scenario(
            "submit",
            measure.submit,
            "default",
            max(200, jobs // 8),
            same=True,
            against=(("pgbench", pgbench.submit),),
        ),
        own("submit50", partial(measure.submit, tasks=50), "default", jobs // 2),
        *(
            own(
                name,
                partial(catalog.submit, repos=repos),
                "default",
                max(200, jobs // 8),
                fresh=True,
            )
            for name, repos in (("repo1", 1), ("repo1000", catalog.REPOS))
        ),
        Scenario("batch1000", measure.batches, "fast", jobs),
        Scenario("drain10", measure.drain, "default", jobs // 2, hosts=True),
        Scenario("drain100", measure.drain, "fast", jobs, hosts=True),
        *(
            own(name, partial(limits.drain, name=limit), preset, count)
            for name, limit, preset, count in (
                ("wide10", "wide", "default", jobs // 2),
                ("wide100", "wide", "fast", jobs),
                ("limited10", "of 10", "default", jobs // 2),
                ("limited100", "of 100", "fast", jobs),
                ("rate10", "rate", "default", jobs // 2),
                ("rate100", "rate", "fast", jobs),
            )
        ),
        *(
            own(name, partial(limits.drain, name="rate", persons=limits.PERSONS), preset, count)
            for name, preset, count in (
                ("persons10", "default", jobs // 2),
                ("persons100", "fast", jobs),
            )
        ),
        *(
            Scenario(
                f"{function}10",
                partial(functions.drain, function=function),
                "default",
                max(200, jobs // share),
                extra=True,
                fresh=True,
                function=function,
            )
            for function, share in functions.SHARES.items()
        ),
        *(
            own(name, workers.drains, preset, count, fresh=True)
            for name, preset, count in (
                ("workers10", "default", jobs // 2),
                ("workers100", "fast", jobs),
            )
        ),
        *(
            own(
                name,
                partial(deep_queue.drain, snapshot=snapshot),
                "fast",
                deep,
                once=True,
                fresh=True,
            )
            for name, snapshot in (("deep", False), ("deep_snapshot", True))
        ),
        own("held", volumes.held, "default", jobs, once=True, fresh=True),
        own("schedules", volumes.schedules, "fast", jobs, once=True, fresh=True),
        own("agents", agents.agents, "default", max(20, jobs // 50), fresh=True),
        own("commands", commands.commands, "default", 20, once=True, fresh=True),
        own("helps", commands.helps, "default", 5, once=True, fresh=True),
        Scenario("idle", measure.idle, "fast", samples, same=True),
        own("answer", answer.answer, "default", samples),
        own("slack", slack.events, "default", max(200, jobs // 4), against=(("bolt", slack.bare),)),
        own("slack1000", catalog.events, "default", max(200, jobs // 4), fresh=True),
        own(
            "dashboard",
            partial(dashboard.measured, minutes=10 if minutes is None else minutes),
            "fast",
            max(20, jobs // 100),
            once=True,
        ),
        own(
            "floor",
            None,
            "default",
            0,
            against=(
                ("commits", floor.commits),
                ("swap of 10", floor.swap10),
                ("swap of 100", floor.swap100),
            ),
            hosts=True,
        ),
        own(
            "vacuum",
            partial(vacuum.load, minutes=vacuum.MINUTES if minutes is None else minutes),
            "fast",
            0,
            once=True,
            extra=True,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Host:
    """A server besides that of the bench, on which only draftsman is measured."""

    name: str
    place: BenchServer
    server: ServerCpu | None


@dataclass(slots=True)
class BenchRun:
    """The participants of a benchmark, and its results."""

    place: BenchServer
    sides: list[Contestant]
    past: Backlog | None
    server: ServerCpu | None
    results: Results
    seeded: dict[str, str] = field(default_factory=dict)
    """Databases with a history, by queue."""
    hosts: list[Host] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    """Part of the CPU of the machine that other programs used, in each round."""

    async def prepare(self) -> None:
        """Create the tables of all queues; raises BenchError if draftsman's are incomplete."""
        for side in list(self.sides):
            try:
                await _prepare(side, self.place)
            except FAILURES as error:
                self._missing(side, side.name, error)
                self.sides.remove(side)
            if side.ours:
                for host in self.hosts:
                    await _prepare(side, host.place)

    async def run(self, rounds: int, selected: Sequence[Scenario]) -> None:
        """Measure everything; raises BenchError if draftsman fails or breaks a promise."""
        async with AsyncExitStack() as stack:
            if self.past is not None:
                for side in self.sides:
                    if not side.about.get("keeps_nothing"):
                        await self._seed(side, self.past, stack)
            servers = [self.server, *(host.server for host in self.hosts)]
            for number in range(1, rounds + 1):
                others = OtherWork(servers)
                for scenario in selected:
                    if scenario.once and number > 1:
                        continue
                    await self._turn(f"[{number}/{rounds}]", scenario, number == 1)
                self.others.append(others.share())
                if self.others[-1] > BUSY:
                    _say(f"[{number}/{rounds}] {busy(self.others[-1])}")

    async def _seed(self, side: Contestant, past: Backlog, stack: AsyncExitStack) -> None:
        database = await stack.enter_async_context(self.place.database(side.name))
        began = _now()
        try:
            await seed(self.place, side, database, past)
        except FAILURES as error:
            self._missing(side, f"{side.name} over a past", error)
            return
        if side.ours:
            await checks.guarded(self.place.url(database))
        self.seeded[side.name] = database
        _say(f"{past}: {side.name} {_now() - began:.1f} s")

    async def _turn(self, label: str, scenario: Scenario, first: bool) -> None:
        """Measure every queue once; with a history, the peers only in the first round."""
        for side in filter(scenario.is_for, self.sides):
            if scenario.measure is not None:
                await self._once(label, scenario, side)
            hosts = self.hosts if side.ours and scenario.hosts else ()
            for against in scenario.against if side.ours else ():
                for host in (None, *hosts):
                    await self._once(label, scenario, side, against=against, host=host)
            if scenario.measure is None:
                continue
            for host in hosts:
                await self._once(label, scenario, side, host=host)
            if side.name in self.seeded and not scenario.fresh and (first or side.ours):
                await self._once(label, scenario, side, past=True)

    async def _once(
        self,
        label: str,
        scenario: Scenario,
        side: Contestant,
        *,
        past: bool = False,
        against: tuple[str, Measure] | None = None,
        host: Host | None = None,
    ) -> None:
        name, do = against or (side.name, scenario.measure)
        assert do is not None
        if host:
            name = f"{name} {host.name}" if against else host.name
        key = Key(scenario.name, name, past)
        what = f"{key.queue} {key.measure}{' over a past' if past else ''}"
        if what in self.results.missing:
            return
        jobs = scenario.jobs if scenario.same else side.jobs(scenario.preset, scenario.jobs)
        began = _now()
        place, server = (host.place, host.server) if host else (self.place, self.server)
        async with AsyncExitStack() as stack:
            if past:
                database = self.seeded[side.name]
            else:
                database = await stack.enter_async_context(place.database(side.name))
            run = Run(place, side, database, scenario.preset, jobs, server, past)
            try:
                figures = await do(run)
            except FAILURES as error:
                self._missing(side, what, error)
                return
        self.results.add(key, figures)
        shown = " ".join(f"{name} {value:.4g}" for name, value in figures.items())
        _say(f"{label} {what:34} {_now() - began:5.1f} s  {shown}")

    def _missing(self, side: Contestant, what: str, error: Exception) -> None:
        if side.name == OURS:
            raise error
        reason = self.results.missing[what] = str(error).strip().splitlines()[0]
        _say(f"{what} could not be measured: {reason}")


async def _prepare(side: Contestant, place: BenchServer) -> None:
    """Create the tables of a queue; draftsman's are checked."""
    template = place.template(side.name)
    await place.create(template)
    async with side.child("prepare", place.url(template)) as child:
        await child.hear("prepared")
    if side.ours:
        await checks.guarded(place.url(template))


def _now() -> float:
    return time.monotonic()


def _say(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr)
