"""Short runs of `draftsman soak`: real processes and kills on their own installation."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.acceptance.processes import Installation
from tests.acceptance.soak_runs import PATIENCE, SHORT_RUN, code_of, left, soak
from tests.support import waits
from tests.support.waits import until


@pytest.fixture(autouse=True)
def _more_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extend the timeouts: a soak starts a server and loads all of the machine."""
    monkeypatch.setattr(waits, "DEADLINE", PATIENCE)


async def test_short_soak_passes_and_cleans_up(installation: Installation, folder: Path) -> None:
    started = soak(installation, folder, *SHORT_RUN, "--workers", "2", "--json")
    assert await code_of(started) == 0, started.output_text
    # stderr comes before and after the document
    figures, _ = json.JSONDecoder().raw_decode(
        started.output_text[started.output_text.index("{") :]
    )
    assert figures["passed"]
    assert figures["findings"] == []
    assert figures["kills"] > 0
    assert figures["restarts"] > 0
    assert figures["jobs"] == sum(figures["finished"].values()) > 0
    assert 0 < figures["answers_accepted"] <= figures["answers_given"]
    assert figures["effects"] > 0
    assert left(folder) == []
    assert list(folder.iterdir()) == []


async def test_signal_ends_all_processes_of_a_soak(
    installation: Installation, folder: Path
) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a script
    try:
        started = soak(installation, folder, "--workers", "1")
    finally:
        signal.signal(signal.SIGINT, before)

    async def working() -> bool:
        return any("slots" in log.read_text() for log in folder.glob("*/*/worker-1.log"))

    await until(working, "a worker")
    started.signal(signal.SIGTERM)
    assert await code_of(started) == 130
    assert started.output_text.endswith("draftsman: interrupted\n")
    assert "Traceback" not in started.output_text
    assert left(folder) == []
    assert list(folder.iterdir()) == []
