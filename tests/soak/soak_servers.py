"""The tests of the core and of the command line, on every other PostgreSQL of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from draftsman.embedded.place import MAJOR
from tests.support.clusters import OLDEST, cluster, found

ROOT = Path(__file__).parents[2]
SUITE = ("tests/core", "tests/tui")
DEADLINE = 900.0
"""Seconds that the suite may take on one server."""


@pytest.mark.timeout(DEADLINE + 60)
@pytest.mark.parametrize("major", [major for major in range(OLDEST, MAJOR + 1) if major != MAJOR])
def test_the_suite_passes_on_another_postgresql(major: int) -> None:
    installations = [one for one in found() if one.major == major]
    if not installations:
        pytest.skip(f"there is no PostgreSQL {major} here")
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(os.cpu_count() or 2), *SUITE]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with cluster(installations[0]) as url:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=env | {"DRAFTSMAN_TEST_URL": url},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
        )
    assert done.returncode == 0, done.stdout[-6000:]
