"""The end of `draftsman soak` by a signal; tests/soak/soak_command.py runs it to its end."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from draftsman_testing import waits
from draftsman_testing.waits import until
from tests.acceptance.processes import Installation
from tests.acceptance.soak_runs import PATIENCE, code_of, left, soak


@pytest.fixture(autouse=True)
def _more_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Extend the timeouts: a soak starts a server and loads all of the machine."""
    monkeypatch.setattr(waits, "DEADLINE", PATIENCE)


@pytest.mark.slow(fast="tests/acceptance/test_stop_while_starting.py::test_a_soak_is_interrupted")
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
