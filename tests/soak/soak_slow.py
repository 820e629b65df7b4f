"""Every test with the mark `slow`, each of which has a faster test in `make test`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TIMEOUT: Final = 1800.0
"""Seconds."""


@pytest.mark.timeout(TIMEOUT + 60)
def test_slow_tests_pass() -> None:
    options = ["-m", "slow", "-n", "2", "--dist", "worksteal", "-q"]
    command = [sys.executable, "-m", "pytest", "tests", *options]
    done = subprocess.run(command, cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-10000:]
