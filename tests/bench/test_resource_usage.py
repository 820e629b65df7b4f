"""CPU of other programs during a measurement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from bench import resource_usage
from bench.resource_usage import OtherWork, busy

WORK = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ninput()"
"""Half a second of CPU, a line, and then a process that still exists."""


@pytest.mark.parametrize("ended", [False, True])
def test_children_of_the_bench_are_not_other_programs(ended: bool) -> None:
    others = OtherWork([None])
    before = others.own_seconds()
    with subprocess.Popen((sys.executable, "-c", WORK), stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        if ended:
            process.communicate(b"\n")
        own = others.own_seconds() - before
        process.kill()
    assert own > 0.4


def test_warning_names_a_kernel_that_ignores_nice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = tmp_path / "sched_autogroup_enabled"
    monkeypatch.setattr(resource_usage, "AUTOGROUP", switch)
    plain = "other programs used 40% of the CPU: repeat without them to compare CPU"
    assert busy(0.4) == plain
    switch.write_text("0\n")
    assert busy(0.4) == plain
    switch.write_text("1\n")
    assert busy(0.4).startswith(f"{plain}; nice does not help")
