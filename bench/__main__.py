"""`python -m bench`: benchmarks of draftsman and its peers in alternation, and the goals."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from pathlib import Path

import psycopg

from bench import checks, install
from bench.goals import GOALS, goals
from bench.history import Backlog
from bench.hosts import hosts
from bench.queue_process import Contestant, load_contestant
from bench.report import OURS, Results, footer, tables
from bench.resource_usage import server_cpu
from bench.schedule import BenchRun, scenarios
from bench.server import SERVER_URL, BenchError, BenchServer, server, session
from draftsman.errors import DraftsmanError
from tests.servers.installations import MAJORS

README = Path(__file__).with_name("README.md")
MEASURES = [scenario.name for scenario in scenarios(0, 0)]
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


async def run(url: str, given: argparse.Namespace) -> tuple[Results, dict[str, str]]:
    """Run the benchmarks; return the results and a description of the environment."""
    results, past = Results(), Backlog(given.history, given.waiting)
    sides = await load_contestants(given.peers, results)
    async with session(url) as admin:
        place = BenchServer(url, admin)
        server = server_cpu(admin.conn)
        try:
            durable = await checks.durable(admin)
            version = await admin.value("SHOW server_version")
            selected = [
                scenario
                for scenario in scenarios(given.jobs, given.minutes)
                if scenario.name in given.only
            ]
            majors = given.servers if any(scenario.hosts for scenario in selected) else []
            match = BenchRun(place, sides, None if given.no_history else past, server, results)
            async with hosts(majors, results.missing) as match.hosts:
                await match.prepare()
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
        "size": f"{given.rounds} rounds, {given.jobs:,} jobs in the largest drain"
        + ("" if given.no_history else f"; the past is {past}"),
    }
    return results, about


async def load_contestants(names: list[str], results: Results) -> list[Contestant]:
    """Return the queues that can run here, draftsman first; record why the others cannot."""
    programs, missing = install.programs(names)
    sides = []
    for name, program in {OURS: install.ours(), **programs}.items():
        try:
            sides.append(await load_contestant(name, program.command, program.environment))
        except (BenchError, OSError) as error:
            if name == OURS:
                raise
            missing[name] = str(error)
    results.missing |= missing
    return sides


def arguments() -> argparse.Namespace:
    """Parse the command line; exits with a message if it is invalid."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add, known = parser.add_argument, ", ".join(install.PEERS)
    add("--peers", default=",".join(install.PEERS), help=f"of {known}; none for none (all)")
    add("--rounds", type=int, default=3, metavar="N", help="of all figures (3)")
    add("--jobs", type=int, default=10_000, metavar="N", help="in the largest drain (10000)")
    add("--no-history", action="store_true", help="nothing over a past")
    add("--history", type=int, default=1_000_000, metavar="N", help="finished jobs (1000000)")
    add("--waiting", type=int, default=100_000, metavar="N", help="waiting jobs (100000)")
    add("--only", default=",".join(MEASURES), help=f"of {', '.join(MEASURES)} (all)")
    add(
        "--servers",
        default=",".join(map(str, MAJORS)),
        help="draftsman's drains also on these"
        " majors of PostgreSQL with default settings; none for none (%(default)s)",
    )
    add("--minutes", type=float, default=10, metavar="N", help="of a dashboard's memory (10)")
    add("--json", action="store_true", help="JSON with every round instead of the tables")
    add("--write", action="store_true", help=f"write the tables into {README.name} too")
    given = parser.parse_args()
    given.peers = [name for name in given.peers.split(",") if name not in ("", "none")]
    if strange := [name for name in given.peers if name not in install.PEERS]:
        parser.error(f"--peers: {', '.join(strange)} is not known; there are {known}")
    majors = [text for text in given.servers.split(",") if text not in ("", "none")]
    if strange := [text for text in majors if text not in map(str, MAJORS)]:
        known = ", ".join(map(str, MAJORS))
        parser.error(f"--servers: {', '.join(strange)} is not supported; there are {known}")
    given.servers = [int(text) for text in majors]
    given.only = given.only.split(",")
    if strange := [name for name in given.only if name not in MEASURES]:
        parser.error(f"--only: {', '.join(strange)} is not known; there are {', '.join(MEASURES)}")
    if given.rounds < 1 or given.jobs < 1000 or given.history < 1 or given.waiting < 1:
        parser.error("--rounds, --history and --waiting are 1 or more, --jobs 1000 or more")
    return given


def text(results: Results, about: dict[str, str]) -> str:
    """Render all results as Markdown."""
    description = "\n".join(f"- {name}: {value}" for name, value in about.items())
    return "\n\n".join((description, tables(results), footer(results.missing), goals(results)))


def written(page: str, measured: str) -> str:
    """Return a page with the text between its two markers; raises BenchError without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise BenchError(f"the page has no {BEGIN} with {END} after it")
    return f"{before}{begin}\n\n{measured}\n\n{end}{after}"


def main() -> int:
    """Print the tables, or JSON, on stdout; return 1 if draftsman broke a promise."""
    given = arguments()
    for name in [
        name for name in os.environ if name.startswith("DRAFTSMAN_") and name != SERVER_URL
    ]:
        del os.environ[name]  # the configuration of this shell must not affect the results
    try:
        with server() as url:
            results, about = asyncio.run(run(url, given))
        measured = text(results, about)
        if given.write:
            README.write_text(written(README.read_text(), measured))
    except KeyboardInterrupt:
        return 130
    except (BenchError, DraftsmanError, psycopg.Error, OSError) as error:
        print(f"bench: {str(error).strip().splitlines()[0]}", file=sys.stderr)
        return 1
    document = {"about": about, "missing": results.missing, "measures": results.document()}
    document |= {"goals": [goal.verdict(results) for goal in GOALS]}
    print(json.dumps(document, indent=2) if given.json else measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
