"""With `--clock`, Python and the databases of the tests begin at the same time."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.support import shifted_clock
from tests.support.database_pool import Databases
from tests.support.server import Server

ROOT: Final = Path(__file__).parents[1]
MOMENT: Final = datetime.fromisoformat("2026-10-25T00:59:40+00:00")
PROGRAM: Final = f"""
import time
from datetime import UTC, datetime
from tests.support import shifted_clock
shifted_clock.install()
shifted_clock.begin(datetime.fromisoformat("{MOMENT.isoformat()}"))
print(datetime.now(UTC).isoformat())
print(datetime.now().astimezone().isoformat())
print(datetime.fromtimestamp(time.time(), UTC).isoformat())
"""


def test_python_reads_the_shifted_clock() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        assert timedelta() <= datetime.fromisoformat(line) - MOMENT < timedelta(seconds=30)


def test_new_and_renewed_databases_have_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    databases = Databases(server)
    names: list[str] = []
    for _ in range(4):
        ahead = (MOMENT - datetime.now(UTC)).total_seconds() + len(names) * 3600
        monkeypatch.setenv(shifted_clock.VARIABLE, str(ahead))
        names.append(databases.acquire())
        with psycopg.connect(server.url(names[-1])) as conn:
            ((now,),) = conn.execute("SELECT draftsman.now()").fetchall()
            ((machine,),) = conn.execute("SELECT now()").fetchall()
        assert (now - machine).total_seconds() == pytest.approx(ahead, abs=0.001)
        databases.release(names[-1])
    databases.close()
    assert len(set(names)) < len(names), "a database was renewed"
    for name in set(names):
        server.leave(name)
