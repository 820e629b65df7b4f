"""Mutants of the claim path fail a test (`python -m tests.mutations`).

Each run takes a share of them, by a seed that it prints, and all those of tokens, locks and types.
`MUTANT_SEED=…` repeats a run, `MUTANT_SHARE=1` runs them all.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SHARE: Final = float(os.environ.get("MUTANT_SHARE", "0.1"))
SEED: Final = int(os.environ.get("MUTANT_SEED", random.randrange(10**6)))
TIMEOUT: Final = 3600.0 * max(1.0, 10 * SHARE)
"""Seconds."""


@pytest.mark.timeout(TIMEOUT + 60)
def test_no_mutant_of_the_claim_path_survives() -> None:
    options = ["--share", str(SHARE), "--seed", str(SEED)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutations", *options],
        cwd=ROOT,
        timeout=TIMEOUT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"MUTANT_SEED={SEED}\n{done.stdout[-10000:]}{done.stderr[-2000:]}"
