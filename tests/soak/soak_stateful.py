"""Model and database in parallel for five minutes, in long random examples.

Each round prints its seed: `MACHINE_SEED=…` starts with it.
"""

from __future__ import annotations

import os
import random
import sys
import time

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from draftsman.jobs.job import FUSED, TRANSITIONS
from tests.core.stateful.machine import on
from tests.support.server import Server

SECONDS = 300.0
"""Seconds in which new rounds start."""
LONG = settings(
    max_examples=25,
    stateful_step_count=80,
    derandomize=False,
    print_blob=True,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
)


@pytest.mark.timeout(SECONDS + 900)
def test_the_model_agrees_for_minutes(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    machine = on(server)
    chance = random.Random(os.environ.get("MACHINE_SEED"))
    rounds = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        number = int(os.environ.get("MACHINE_SEED", "0")) if rounds == 0 else 0
        number = number or chance.randrange(10**9)
        with capsys.disabled():
            sys.stdout.write(f"machine: seed {number}\n")
            sys.stdout.flush()
        run_state_machine_as_test(seed(number)(machine), settings=LONG)
        rounds += 1
    unseen = {pair for pair in TRANSITIONS if pair not in machine.passed} - set(FUSED)
    assert not unseen, f"in {rounds} rounds nothing passed {unseen}"
