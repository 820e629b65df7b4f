"""What a measured process counts and reports."""

from __future__ import annotations

import json
import sys

import pytest

from bench.peers.peer import Probe
from bench.queue_process import start_process
from bench.server import BenchError

WORKER = """
import json
for event in {events}:
    print(json.dumps(dict(event=event)), flush=True)
"""


def test_end_has_the_time_of_each_tenth_and_the_counters(capfd: pytest.CaptureFixture[str]) -> None:
    probe = Probe(20)
    probe.counters = lambda: {"skipped": 3}
    for number in range(20):
        probe.hit(number)
    probe.end()
    first, counted, end = map(json.loads, capfd.readouterr().out.splitlines())
    assert (first["event"], counted["event"], end["event"]) == ("first", "counted", "end")
    assert len(end["tenths"]) == 10
    assert [first["at"], *end["tenths"]] == sorted([end["first"], *end["tenths"]])
    assert end["skipped"] == 3


@pytest.mark.parametrize("events", [["first", "end"], ["end"]])
async def test_worker_without_a_job_ends_like_the_others(events: list[str]) -> None:
    program = (sys.executable, "-c", WORKER.format(events=events))
    async with start_process(program, {}) as child:
        assert (await child.hear("end", passing="first"))["event"] == "end"


async def test_other_event_is_refused() -> None:
    program = (sys.executable, "-c", WORKER.format(events=["first", "counted"]))
    with pytest.raises(BenchError, match="end had to come, counted came"):
        async with start_process(program, {}) as child:
            await child.hear("end", passing="first")
