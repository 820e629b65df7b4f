"""Starts in the sandbox and calls through the gateway, with few of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import agents
from bench.goals import GOALS
from bench.install import ours
from bench.measure import Run
from bench.queue_process import load_contestant
from bench.report import AGENTS, Key, Results, tables
from bench.server import BenchError, BenchServer, session


async def test_starts_and_calls_have_all_figures(
    database: str, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "WARM", 1)
    program = ours()
    side = await load_contestant("draftsman", program.command, program.environment)
    async with session(database_url) as admin:
        run = Run(BenchServer(database_url, admin), side, database, "default", 2, None)
        figures = await agents._starts(tmp_path, 1) | await agents._calls(run, tmp_path, 2)
    assert set(AGENTS) <= set(figures)
    assert figures["bwrap_ms"] > figures["bare_ms"] > 0
    assert figures["call_ms"] > figures["direct_ms"] > 0
    monkeypatch.setattr(agents, "PROGRAM", ("/bin/sh", "-c", "echo other"))
    with pytest.raises(BenchError, match="the program printed b'other"):
        await agents._starter(tmp_path / "other", "off", ports=False)()


def test_the_goals_are_of_differences() -> None:
    results = Results()
    results.add(Key("agents", "draftsman"), dict.fromkeys(AGENTS, 7.0))
    verdicts = {goal.name: goal.verdict(results)[1:] for goal in GOALS}
    assert verdicts["agents over_ms"] == ("7.00", "<= 60", "met")
    assert verdicts["agents call_over_ms"] == ("7.00", "<= 5", "missed by 40%")
    assert AGENTS["call_over_ms"] in tables(results)
