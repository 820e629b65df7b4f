"""`draftsman soak` for a moment: real processes, killed in earnest, on a place of their own."""

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
    """A soak starts a server, and fills the machine by itself."""
    monkeypatch.setattr(waits, "DEADLINE", PATIENCE)


async def test_a_moment_of_it_passes_and_leaves_nothing(place: Installation, folder: Path) -> None:
    started = soak(place, folder, *SHORT_RUN, "--workers", "2", "--json")
    assert await code_of(started) == 0, started.output_text
    # what it says on stderr comes before and after the document
    found, _ = json.JSONDecoder().raw_decode(started.output_text[started.output_text.index("{") :])
    assert found["passed"]
    assert found["findings"] == []
    assert found["kills"] > 0
    assert found["restarts"] > 0
    assert found["jobs"] == sum(found["ended"].values()) > 0
    assert 0 < found["answers_accepted"] <= found["answers_given"]
    assert found["effects"] > 0
    assert left(folder) == []
    assert list(folder.iterdir()) == []


async def test_a_signal_ends_all_that_it_started(place: Installation, folder: Path) -> None:
    background = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")  # as a script starts it
    started = soak(place, folder, "--workers", "1", through=background)

    async def working() -> bool:
        return any("slots" in log.read_text() for log in folder.glob("*/*/worker-1.log"))

    await until(working, "a worker")
    started.signal(signal.SIGTERM)
    assert await code_of(started) == 130
    assert started.output_text.endswith("draftsman: interrupted\n")
    assert "Traceback" not in started.output_text
    assert left(folder) == []
    assert list(folder.iterdir()) == []
