"""The guard against a loss of performance."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import baseline, guard
from bench.report import Key, Results
from bench.server import BenchError


def measured(
    cpu: Sequence[float], wal: float = 2000, before: Sequence[float] = (200,) * 9
) -> Results:
    """Return rounds in which client and server use half of the CPU each, with 2,000 B before."""
    results = Results()
    for measure in guard.MEASURES:
        for now, other in zip(cpu, before, strict=False):
            for name, used, written in (("draftsman", now, wal), (baseline.NAME, other, 2000.0)):
                costs = {"cpu_us": used / 2, "server_us": used / 2, "wal_bytes": written}
                results.add(Key(measure, name), costs)
    return results


@pytest.mark.parametrize(
    ("results", "lost"),
    [
        (measured((200, 200, 200)), set[str]()),
        (measured((219, 219, 219)), set[str]()),
        (measured((221, 221, 221)), {"CPU us"}),
        (measured((100, 100, 100)), set[str]()),
        (measured((200, 200, 200), wal=2199), set[str]()),
        (measured((200, 200, 200), wal=2201), {"WAL B"}),
        # a machine that is slower in a round slows both
        (measured((400, 600, 300), before=(400, 600, 300)), set[str]()),
        # half of the rounds were as before: the median alone would be a loss
        (measured((195, 195, 250, 250, 250)), set[str]()),
        (measured((205, 230, 250, 250, 250)), {"CPU us"}),
    ],
)
def test_loss_is_a_growth_over_the_limit_in_most_rounds(results: Results, lost: set[str]) -> None:
    losses = guard.losses(results, 0.1)
    assert {change.cost for change in losses} == lost
    assert {change.measure for change in losses} == (set(guard.MEASURES) if lost else set())


def test_growth_of_cpu_is_uncertain_on_a_busy_machine() -> None:
    results = measured((260, 260), wal=2500)
    assert {change.cost for change in guard.losses(results, 0.8)} == {"WAL B"}
    text = guard.report(guard.changes(results), 0.8)
    assert text.count("uncertain") == text.count("lost") == len(guard.MEASURES)


def test_commit_that_cannot_be_measured_is_named_with_its_reason() -> None:
    results = measured((200, 200))
    del results.rounds[Key("drain10", baseline.NAME)]
    results.missing[f"{baseline.NAME} drain10"] = "no such column"
    with pytest.raises(BenchError, match="drain10: no such column"):
        guard.losses(results, 0.1)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Provide a repository with a commit, whose tree was changed since."""
    root = tmp_path / "repository"
    (root / "core").mkdir(parents=True)
    (root / "core" / "code.py").write_text("before = True\n")
    identity = "-c user.name=anna -c user.email=anna@example.com"
    for line in ("init --quiet", "add .", f"{identity} commit --quiet -m Code"):
        subprocess.run(("git", "-C", str(root), *line.split()), check=True)
    (root / "core" / "code.py").write_text("before = False\n")
    return root


def test_other_commit_runs_from_its_own_files_until_the_end(repository: Path) -> None:
    with baseline.program("HEAD", repository) as program:
        assert str(program.folder / "core") in program.environment["PYTHONPATH"].split(os.pathsep)
        assert (program.folder / "core" / "code.py").read_text() == "before = True\n"
    assert not program.folder.exists()
    listed = subprocess.run(
        ("git", "-C", str(repository), "worktree", "list"), capture_output=True, check=True
    )
    assert len(listed.stdout.splitlines()) == 1


def test_unknown_commit_is_refused(repository: Path) -> None:
    with (
        pytest.raises(BenchError, match=r"no commit v9 here: .* another with --guard COMMIT"),
        baseline.program("v9", repository),
    ):
        pass


def test_recorded_commit_is_a_whole_name() -> None:
    assert len(bytes.fromhex(baseline.RECORDED.read_text().strip())) == 20
