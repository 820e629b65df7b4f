"""`python -m bench`: benchmarks of draftsman and its peers in alternation, and the goals."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psycopg

from bench import baseline, checks, guard, install
from bench.arguments import arguments
from bench.goals import GOALS, goals
from bench.history import Backlog
from bench.hosts import hosts
from bench.queue_process import ROOT, Contestant, load_contestant
from bench.report import OURS, Results, footer, tables
from bench.resource_usage import server_cpu
from bench.schedule import BenchRun, scenarios
from bench.server import SERVER_URL, BenchError, BenchServer, server, session
from draftsman.errors import DraftsmanError

README = Path(__file__).with_name("README.md")
BEGIN = "<!-- measured: begin -->"
END = "<!-- measured: end -->"


class Measured(NamedTuple):
    """Results of a run, and how they were measured."""

    results: Results
    about: dict[str, str]
    other: float
    """Part of the CPU of the machine that other programs used in a round, the median."""


async def run(
    url: str, given: argparse.Namespace, before: install.Program | None = None
) -> Measured:
    """Run the benchmarks; with another commit, once more if a cost of a job grew since."""
    results = Results()
    past = Backlog(given.history, given.waiting)
    sides = await load_contestants(given.peers, results)
    if before:
        sides.append(await _contestant(baseline.NAME, before, OURS))
    async with session(url) as admin:
        place = BenchServer(url, admin)
        server = server_cpu(admin.conn)
        try:
            durable = await checks.durable(admin)
            version = await admin.value("SHOW server_version")
            selected = [
                scenario
                for scenario in scenarios(given.jobs, given.minutes, given.deep)
                if scenario.name in given.only
            ]
            majors = given.servers if any(scenario.hosts for scenario in selected) else []
            match = BenchRun(place, sides, None if given.no_history else past, server, results)
            async with hosts(majors, results.missing) as match.hosts:
                await match.prepare()
                await match.run(given.rounds, selected)
                if before and guard.losses(results, median(match.others)):
                    print("bench: measuring again before a loss is reported", file=sys.stderr)
                    await match.run(given.rounds, selected)
        finally:
            await place.leave()
    if server is None:
        results.missing["server CPU"] = "the server's processes are not seen from here"
    about = {
        "queues": ", ".join(side.version for side in match.sides),
        "PostgreSQL": f"{version} with " + ", ".join(f"{k} {v}" for k, v in durable.items()),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()},"
        f" Python {platform.python_version()}",
        "other programs": f"{median(match.others):.0%} of the CPU,"
        f" {max(match.others):.0%} in the busiest round",
        "size": f"{given.rounds} rounds, {given.jobs:,} jobs in the largest drain"
        + ("" if given.no_history else f"; the past is {past}"),
    }
    return Measured(results, about, median(match.others))


async def load_contestants(names: list[str], results: Results) -> list[Contestant]:
    """Return the queues that can run here, draftsman first; record why the others cannot."""
    programs, missing = install.programs(names)
    sides = []
    for name, program in {OURS: install.ours(), **programs}.items():
        try:
            sides.append(await _contestant(name, program, name))
        except (BenchError, OSError) as error:
            if name == OURS:
                raise
            missing[name] = str(error)
    results.missing |= missing
    return sides


async def _contestant(name: str, program: install.Program, module: str) -> Contestant:
    command = (*program.command, module)
    return await load_contestant(name, command, program.environment, program.folder)


def text(measured: Measured) -> str:
    """Render all results as Markdown."""
    results = measured.results
    description = "\n".join(f"- {name}: {value}" for name, value in measured.about.items())
    return "\n\n".join((description, tables(results), footer(results.missing), goals(results)))


def document(measured: Measured) -> str:
    """Render all results as JSON, with every round."""
    results = measured.results
    data = {"about": measured.about, "missing": results.missing, "measures": results.document()}
    return json.dumps(data | {"goals": [goal.verdict(results) for goal in GOALS]}, indent=2)


def written(page: str, measured: str) -> str:
    """Return a page with the text between its two markers; raises BenchError without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise BenchError(f"the page has no {BEGIN} with {END} after it")
    return f"{before}{begin}\n\n{measured}\n\n{end}{after}"


def main() -> int:
    """Print the tables, or JSON, on stdout; return 1 if draftsman broke a promise or lost speed."""
    given = arguments(__doc__)
    for name in [
        name for name in os.environ if name.startswith("DRAFTSMAN_") and name != SERVER_URL
    ]:
        del os.environ[name]  # the configuration of this shell must not affect the results
    try:
        with ExitStack() as stack:
            guarded = given.guard is not None
            before = stack.enter_context(baseline.program(given.guard)) if guarded else None
            url = stack.enter_context(server())
            measured = asyncio.run(run(url, given, before))
        if given.write:
            README.write_text(written(README.read_text(), text(measured)))
    except KeyboardInterrupt:
        return 130
    except (BenchError, DraftsmanError, psycopg.Error, OSError) as error:
        print(f"bench: {str(error).strip().splitlines()[0]}", file=sys.stderr)
        return 1
    if given.json or before is None:
        print(document(measured) if given.json else text(measured))
    return 0 if before is None else _verdict(measured, as_json=given.json)


def _verdict(measured: Measured, *, as_json: bool) -> int:
    """Print the comparison with the other commit; return 1 if a cost is over its limit."""
    report = guard.report(guard.changes(measured.results), measured.other)
    print(report, file=sys.stderr if as_json else sys.stdout)
    lost = guard.losses(measured.results, measured.other)
    for change in lost:
        print(f"bench: {change.line}", file=sys.stderr)
    if lost:
        print(
            "bench: if this is intended, commit it, and write the commit into"
            f" {baseline.RECORDED.relative_to(ROOT)}",
            file=sys.stderr,
        )
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
