"""The guard against a loss of performance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import guard
from bench.queue_process import Contestant
from bench.report import Key, Results
from bench.server import BenchError

PEER = Contestant("pgqueuer", (), {}, {"distribution": "pgqueuer", "version": "1.6.0"})


def measured(cpu: Sequence[float], wal: float = 2000, peer: Sequence[float] = ()) -> Results:
    """Return rounds in which draftsman's client and server use half of the CPU each."""
    results = Results()
    for measure in guard.MEASURES:
        for number, used in enumerate(cpu):
            own = {"cpu_us": used / 2, "server_us": used / 2, "wal_bytes": wal, "rate": 1.0}
            other = peer[number] if peer else 100.0
            theirs = {"cpu_us": other * 0.7, "server_us": other * 0.3, "wal_bytes": 1700.0}
            results.add(Key(measure, "draftsman"), own)
            results.add(Key(measure, guard.PEER), theirs)
    return results


@pytest.fixture
def recorded(tmp_path: Path) -> guard.Recorded:
    """Provide the written and loaded record of a run with twice the peer's CPU."""
    path = tmp_path / "recorded.toml"
    results = measured((200, 200, 200))
    path.write_text(guard.document(results, guard.setup(10_000, "18.4", [PEER], results)))
    return guard.load(path)


def test_recorded_costs_are_the_medians(recorded: guard.Recorded) -> None:
    assert recorded["drain100"] == {"cpu": 2.0, "wal_bytes": 2000}
    assert recorded["setup"]["jobs"] == 10_000
    assert recorded["setup"]["peer"] == "pgqueuer 1.6.0"


@pytest.mark.parametrize(
    ("results", "lost"),
    [
        (measured((200, 200, 200)), set[str]()),
        (measured((219, 219, 219)), set[str]()),
        (measured((221, 221, 221)), {"cpu"}),
        (measured((100, 100, 100)), set[str]()),
        (measured((200, 200, 200), wal=2199), set[str]()),
        (measured((200, 200, 200), wal=2201), {"wal_bytes"}),
        # a slower machine slows both
        (measured((400, 600, 300), peer=(200, 300, 150)), set[str]()),
        # half of the rounds were as recorded: the median alone would be a loss
        (measured((195, 195, 250, 250, 250)), set[str]()),
        (measured((205, 230, 250, 250, 250)), {"cpu"}),
    ],
)
def test_loss_is_a_growth_over_the_limit_in_most_rounds(
    recorded: guard.Recorded, results: Results, lost: set[str]
) -> None:
    losses = guard.losses(results, recorded, 0.1)
    assert {change.cost for change in losses} == lost
    assert {change.measure for change in losses} == (set(guard.MEASURES) if lost else set())


def test_growth_of_cpu_is_uncertain_on_a_busy_machine(recorded: guard.Recorded) -> None:
    results = measured((260, 260), wal=2500)
    assert {change.cost for change in guard.losses(results, recorded, 0.8)} == {"wal_bytes"}
    text = guard.report(guard.changes(results, recorded), 0.8)
    assert text.count("uncertain") == text.count("lost") == len(guard.MEASURES)
    assert text.endswith("other programs used 80% of the CPU: repeat without them to compare CPU")


@pytest.mark.parametrize(
    ("jobs", "postgresql", "version", "differs"),
    [
        (5_000, "18.4", "1.6.0", "jobs 10000, now 5000"),
        (10_000, "15.2", "1.6.0", "postgresql 18.4, now 15.2"),
        (10_000, "18.4", "1.7.0", "peer pgqueuer 1.6.0, now pgqueuer 1.7.0"),
    ],
)
def test_other_setup_is_refused(
    recorded: guard.Recorded, jobs: int, postgresql: str, version: str, differs: str
) -> None:
    peer = Contestant("pgqueuer", (), {}, {**PEER.about, "version": version})
    now = guard.setup(jobs, postgresql, [peer], Results())
    with pytest.raises(BenchError, match=f"not comparable.*with {differs};.*--record"):
        guard.check_setup(recorded, now)
    guard.check_setup(recorded, guard.setup(10_000, "18.4", [PEER], Results()))


def test_committed_record_has_every_cost() -> None:
    record = guard.load(guard.RECORDED)
    assert set(record) == {"setup", *guard.MEASURES}
    assert set(record["setup"]) == set(guard.setup(1, "", [PEER], Results()))
    assert all(set(record[measure]) == set(guard.TITLES) for measure in guard.MEASURES)
