"""Every property test with other and more examples than in `make test`."""

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
def test_properties_hold_for_other_examples() -> None:
    options = ["-m", "hypothesis", "--hypothesis-profile", "soak", "--timeout", str(TIMEOUT), "-q"]
    command = [sys.executable, "-m", "pytest", "tests", *options]
    done = subprocess.run(command, cwd=ROOT, timeout=TIMEOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-10000:]
