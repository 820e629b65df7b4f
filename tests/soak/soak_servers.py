"""Every supported major version of PostgreSQL with the default settings of its package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.hosts import name
from tests.servers.__main__ import DEADLINE, suite
from tests.servers.clusters import cluster, runnable
from tests.servers.installations import MAJORS, Installation, installation
from tests.servers.packages import Unavailable

ROOT = Path(__file__).parents[2]
SUITE = ("tests/core", "tests/tui")
DRAINS = ("--only", "drain10,drain100", "--peers", "none", "--no-history", "--jobs", "4000")

SHORT = ("soak", "--minutes", "0.5", "--keep")


@contextmanager
def unless_unavailable() -> Iterator[None]:
    """Count an unavailable server as not run, with the reason."""
    try:
        yield
    except Unavailable as error:
        pytest.skip(str(error))


def installed(major: int) -> Installation:
    """Return a server's programs, or skip the test."""
    with unless_unavailable():
        return installation(major)
    raise AssertionError


@pytest.mark.timeout(DEADLINE + 60)
@pytest.mark.parametrize("major", MAJORS)
def test_the_suite_passes_with_default_settings(major: int) -> None:
    server = installed(major)
    with unless_unavailable(), cluster(server) as url:
        passed, output = suite(url, SUITE, os.cpu_count() or 2)
        assert passed, output


@pytest.mark.timeout(600)
@pytest.mark.parametrize("major", MAJORS)
def test_a_worker_is_as_fast_with_default_settings(major: int) -> None:
    installed(major)
    command = [sys.executable, "-m", "bench", *DRAINS, "--servers", str(major), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    goals = {goal: verdict for goal, *_, verdict in json.loads(done.stdout)["goals"]}
    own_goals = {goal: verdict for goal, verdict in goals.items() if name(major) in goal}
    assert set(own_goals.values()) == {"met"}, own_goals


@pytest.mark.timeout(600)
@pytest.mark.parametrize("major", MAJORS)
def test_soak_passes_with_default_settings(major: int, folder: Path) -> None:
    with unless_unavailable():
        server = runnable(installed(major), folder)
    paths = (str(ROOT / "tests" / "servers" / "disguise"), *sys.path)
    own_goals = {
        "SERVERS_PROGRAMS": str(server.programs),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TMPDIR": str(folder),
    }
    done = subprocess.run(
        [sys.executable, "-m", "draftsman_tui", *SHORT],
        env={**os.environ, **own_goals},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    versions = {path.read_text().strip() for path in folder.glob("*/seed-*/data/*/data/PG_VERSION")}
    assert versions == {str(major)}
