"""A short run of `draftsman soak`: real processes and kills on its own installation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from draftsman_testing import waits
from draftsman_testing.waits import until
from tests.acceptance.conftest import installation, installations
from tests.acceptance.processes import Installation
from tests.acceptance.soak_runs import PATIENCE, SHORT_RUN, code_of, left, soak

__all__ = ["installation", "installations"]


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


async def test_killed_soak_leaves_no_worker(installation: Installation, folder: Path) -> None:
    started = soak(installation, folder, "--minutes", "1", "--workers", "2")

    def workers() -> list[str]:
        return [command for command in left(folder) if {"up", "worker"} & set(command.split())]

    async def run() -> bool:
        return len(workers()) == 3  # the worker of `up`, too

    async def ended() -> bool:
        return workers() == []

    await until(run, "two workers and `up`")
    started.popen.kill()
    await until(ended, "the end of the workers")
