"""The times of commands, with a single start of each."""

from __future__ import annotations

import pytest

from bench import commands
from bench.install import ours
from bench.measure import Run
from bench.queue_process import load_contestant
from bench.report import COMMANDS
from bench.server import BenchError, BenchServer, session


async def test_each_command_is_compared_with_a_bare_interpreter(
    database: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "WARM_SAMPLES", 0)
    program = ours()
    side = await load_contestant("draftsman", program.command, program.environment)
    async with session(database_url) as admin:
        run = Run(BenchServer(database_url, admin), side, database, "default", 1, None)
        figures = await commands.commands(run)
        assert set(figures) == set(COMMANDS)
        for name in ("help", "jobs"):
            ratio = figures[f"{name}_ms"] / figures["python_ms"]
            assert figures[f"{name}_ratio"] == pytest.approx(ratio)
        monkeypatch.setitem(commands.COMMANDS, "jobs", (*commands.DRAFTSMAN, "jobs", "--no-such"))
        with pytest.raises(BenchError, match="no such option"):
            await commands.commands(run)
