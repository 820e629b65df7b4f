"""`python -m tests.servers`: the core tests on every supported major version of PostgreSQL.

Each server has the default configuration of its package. A missing server is reported with the
reason, and is no failure; a failing test is.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.servers.clusters import cluster
from tests.servers.installations import MAJORS, installation
from tests.servers.packages import Unavailable

ROOT: Final = Path(__file__).parents[2]
CORE: Final = ("tests/core",)
"""Tests that depend on the server: schema, plans, races, transitions and workers."""
DEADLINE: Final = 900.0
"""Seconds for the tests on a server."""


def suite(url: str, tests: tuple[str, ...], jobs: int) -> tuple[bool, str]:
    """Run tests on a server; return whether they passed, and the last lines of their output."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(jobs), "--dist", "worksteal"]
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [*command, *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "DRAFTSMAN_TEST_URL": url},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    return done.returncode == 0, done.stdout[-6000:].strip()


def main() -> int:
    """Run the tests on each server; return 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    add = parser.add_argument
    add("--majors", default=",".join(map(str, MAJORS)), help="of PostgreSQL (%(default)s)")
    add("--jobs", type=int, default=os.cpu_count() or 2, metavar="N", help="tests at once")
    add("tests", nargs="*", default=CORE, help=f"what to run ({' '.join(CORE)})")
    options = parser.parse_args()
    failed = 0
    missing = 0
    ran = 0
    for major in map(int, options.majors.split(",")):
        began = time.monotonic()
        try:
            server = installation(major)
            with cluster(server) as url:
                passed, output = suite(url, tuple(options.tests), options.jobs)
        except Unavailable as error:
            missing += 1
            _print(f"PostgreSQL {major} could not be had: {error}")
            continue
        ran = ran + 1
        failed = failed + (not passed)
        summary = output.splitlines()[-1] if output else "nothing ran"
        took = time.monotonic() - began
        _print(f"{server}: {summary}, {took:.0f} s" if passed else f"{server} failed:\n{output}")
    _print(f"ran on {ran}, failed on {failed}, could not run on {missing}")
    return 1 if failed else 0


def _print(line: str) -> None:
    sys.stdout.write(f"servers: {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
