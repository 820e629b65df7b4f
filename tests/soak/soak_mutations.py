"""Every mutant of the claim path fails a test (`python -m tests.mutations`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TIMEOUT: Final = 3600.0
"""Seconds; on two quiet cores it takes half of it."""


@pytest.mark.timeout(TIMEOUT + 60)
def test_no_mutant_of_the_claim_path_survives() -> None:
    command = [sys.executable, "-m", "tests.mutations"]
    done = subprocess.run(command, cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-10000:] + done.stderr[-2000:]
