"""`python -m bench`: every figure in every round, in turn; then their medians."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial

import psycopg

from bench import intake, work
from bench.place import GIVEN, Broken, Place, server, session
from bench.report import Figures, Result, table
from draftsman.errors import DraftsmanError

Measure = Callable[[Place], Awaitable[Figures]]


def plan(jobs: int) -> list[tuple[Result, Measure, Measure | None]]:
    """Return what is measured, and against what; by default a round takes half a minute."""
    single, samples = max(200, jobs // 8), max(20, jobs // 160)
    idle = partial(work.idle, samples=samples)
    ten = partial(work.drain, slots=10, jobs=jobs // 2)
    hundred = partial(work.drain, slots=100, jobs=jobs)
    return [
        (
            Result("submit", "pgbench with the same statement"),
            partial(intake.singles, jobs=single),
            partial(intake.singles_pgbench, jobs=single),
        ),
        (
            Result("batch1000", "the statement alone"),
            partial(intake.thousands, jobs=jobs),
            partial(intake.thousands_alone, jobs=jobs),
        ),
        (
            Result("drain10", "the exchange alone"),
            partial(ten, kind="crew"),
            partial(ten, kind="alone"),
        ),
        (
            Result("drain100", "the exchange alone"),
            partial(hundred, kind="crew"),
            partial(hundred, kind="alone"),
        ),
        (
            Result("idle", "LISTEN and the exchange alone"),
            partial(idle, kind="crew"),
            partial(idle, kind="alone"),
        ),
        (Result("answer", ""), partial(work.answer, samples=samples), None),
    ]


async def run(url: str, rounds: int, jobs: int) -> tuple[list[Result], dict[str, object]]:
    """Measure; return the results and what they were measured on."""
    wanted = plan(jobs)
    async with session(url) as admin:
        place = Place(url, admin)
        about: dict[str, object] = {"jobs": jobs, "rounds": rounds, "cores": os.cpu_count()}
        about |= {"python": platform.python_version()}
        try:
            about |= await place.prepare()
            for number in range(1, rounds + 1):
                for result, ours, other in wanted:
                    label = f"[{number}/{rounds}] {result.name:9}"
                    result.ours.append(await told(f"{label} draftsman", ours, place))
                    if other is not None:
                        result.other.append(await told(f"{label} other    ", other, place))
        finally:
            await place.leave()
    return [result for result, _, _ in wanted], about


async def told(label: str, measure: Measure, place: Place) -> Figures:
    """Measure once, and say on stderr what it was."""
    began = time.monotonic()
    figures = await measure(place)
    shown = " ".join(f"{key} {value:.4g}" for key, value in figures.items())
    print(f"{label} {time.monotonic() - began:4.1f} s  {shown}", file=sys.stderr)
    return figures


def arguments() -> argparse.Namespace:
    """Return the command line, or end with what is wrong with it."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="JSON instead of the table")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of all figures (3)")
    parser.add_argument("--jobs", type=int, default=10_000, metavar="N", help="a drain (10000)")
    given = parser.parse_args()
    if given.rounds < 1 or given.jobs < 1000:
        parser.error("--rounds is 1 or more, --jobs 1000 or more")
    return given


def main() -> int:
    """Print the table, or JSON, on stdout; return 1 when a promise did not hold."""
    given = arguments()
    for name in [name for name in os.environ if name.startswith("DRAFTSMAN_") and name != GIVEN]:
        del os.environ[name]  # what is configured here is not what is measured
    try:
        with server() as url:
            results, about = asyncio.run(run(url, given.rounds, given.jobs))
    except KeyboardInterrupt:
        return 130
    except TimeoutError:
        print("bench: the worker said nothing for too long", file=sys.stderr)
        return 1
    except (Broken, DraftsmanError, psycopg.Error) as error:
        print(f"bench: {str(error).strip().splitlines()[0]}", file=sys.stderr)
        return 1
    if given.json:
        measured = {result.name: result.summary() for result in results}
        print(json.dumps({"about": about, "measures": measured}, indent=2))
    else:
        print(table(results, about))
    return 0


if __name__ == "__main__":
    sys.exit(main())
