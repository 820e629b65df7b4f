"""Command line of the benchmarks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench import baseline, deep_queue, guard, install
from bench.schedule import scenarios
from tests.servers.installations import MAJORS

MEASURES = [scenario.name for scenario in scenarios()]
DEFAULT = [scenario.name for scenario in scenarios() if not scenario.extra]
FUNCTIONS = {scenario.name for scenario in scenarios() if scenario.function}
ROUNDS = 3
JOBS = 10_000
FIXED = ("peers", "only", "servers")
"""Options that the guard sets itself."""


def arguments(description: str | None) -> argparse.Namespace:
    """Parse the command line; exits with a message if it is invalid."""
    parser = _parser(description)
    given = parser.parse_args()
    fixed = given.guard is not None
    if fixed and (set_here := [name for name in FIXED if getattr(given, name) is not None]):
        parser.error(f"--guard measures a fixed set: without --{', --'.join(set_here)}")
    if fixed:
        given.peers = "none"
        given.only = ",".join(guard.MEASURES)
        given.servers = "none"
        given.no_history = True
    if given.rounds is None:
        given.rounds = guard.ROUNDS if fixed else ROUNDS
    if given.jobs is None:
        given.jobs = guard.JOBS if fixed else JOBS
    given.peers = _names(parser, "--peers", given.peers, install.PEERS)
    given.servers = [int(text) for text in _names(parser, "--servers", given.servers, MAJORS)]
    given.only = _names(parser, "--only", given.only, MEASURES, DEFAULT)
    if not set(given.only) & FUNCTIONS:
        given.peers = [name for name in given.peers if name not in install.CELERY]
    if min(given.rounds, given.history, given.waiting) < 1 or min(given.jobs, given.deep) < 1000:
        parser.error(
            "--rounds, --history and --waiting are 1 or more, --jobs and --deep 1000 or more"
        )
    return given


def _parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=description)
    add = parser.add_argument
    extra = [name for name in MEASURES if name not in DEFAULT]
    add("--peers", help=f"of {', '.join(install.PEERS)}; none for none (all)")
    add("--rounds", type=int, metavar="N", help=f"of all figures ({ROUNDS}; guard {guard.ROUNDS})")
    add(
        "--jobs",
        type=int,
        metavar="N",
        help=f"in the largest drain ({JOBS}; {guard.JOBS} with --guard)",
    )
    add("--no-history", action="store_true", help="measure nothing over a history")
    add("--history", type=int, default=1_000_000, metavar="N", help="finished jobs (1000000)")
    add("--waiting", type=int, default=100_000, metavar="N", help="waiting jobs (100000)")
    add(
        "--deep",
        type=int,
        default=deep_queue.JOBS,
        metavar="N",
        help=f"queued jobs of deep and deep_snapshot ({deep_queue.JOBS})",
    )
    add("--only", help=f"of {', '.join(MEASURES)} (all except {', '.join(extra)})")
    majors = ",".join(map(str, MAJORS))
    add(
        "--servers",
        help="draftsman's drains also on these"
        f" majors of PostgreSQL with default settings; none for none ({majors})",
    )
    add(
        "--minutes",
        type=float,
        metavar="N",
        help="of the memory of a dashboard (10), of the load of vacuum (3)",
    )
    add("--json", action="store_true", help="JSON with every round instead of the tables")
    add("--write", action="store_true", help="write the tables into README.md too")
    add(
        "--guard",
        nargs="?",
        const="",
        metavar="COMMIT",
        help="compare the CPU and WAL of a job with another commit, by default that of"
        f" {baseline.RECORDED.name}; fail on a loss",
    )
    return parser


def _names(
    parser: argparse.ArgumentParser,
    option: str,
    text: str | None,
    known: Sequence[object],
    default: Sequence[object] | None = None,
) -> list[str]:
    """Return the names of a list, or the default without a list; exits if any is unknown."""
    if text is None:
        return [str(name) for name in (known if default is None else default)]
    names = [name for name in text.split(",") if name not in ("", "none")]
    choices = [str(name) for name in known]
    if strange := [name for name in names if name not in choices]:
        parser.error(f"{option}: {', '.join(strange)} is not known; there are {', '.join(choices)}")
    return names
