"""`draftsman soak` for a moment: real processes, killed in earnest, on a place of their own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.acceptance.processes import Place, Process
from tests.support import waits
from tests.support.waits import until

MOMENT = ("--minutes", "0.05")
PATIENCE = 100.0
"""Seconds after which a soak of a moment counts as stuck."""
NOT_THERE = "postgresql://nobody@127.0.0.1:1/theirs"
"""A database of the user's: a soak that went near it would say that it is not there."""


@pytest.fixture(autouse=True)
def _more_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A soak starts a server, and fills the machine by itself."""
    monkeypatch.setattr(waits, "DEADLINE", PATIENCE)


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Give a temporary folder with a short path, which the server's user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="draftsman-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def soak(place: Place, temporary: Path, *args: str) -> Process:
    """Start a soak whose folder will be in `temporary`."""
    env = {"TMPDIR": str(temporary), "DRAFTSMAN_DATABASE_URL": NOT_THERE}
    return place.start("soak", *args, env=env)


async def code_of(started: Process) -> int:
    """Return its exit code: it settles, stops its workers and looks, which takes a while."""
    return await asyncio.to_thread(started.popen.wait, PATIENCE)


def left(temporary: Path) -> list[str]:
    """Return the processes that have to do with the folder, by their command lines."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if str(temporary) in words and process.pid != os.getpid():
            found.append(words)
    return found


async def test_a_moment_of_it_passes_and_leaves_nothing(place: Place, temporary: Path) -> None:
    started = soak(place, temporary, *MOMENT, "--workers", "2", "--json")
    assert await code_of(started) == 0, started.said
    # what it says on stderr comes before and after the document
    found, _ = json.JSONDecoder().raw_decode(started.said[started.said.index("{") :])
    assert found["passed"]
    assert found["findings"] == []
    assert found["kills"] > 0
    assert found["restarts"] > 0
    assert found["jobs"] == sum(found["ended"].values()) > 0
    assert 0 < found["answers_accepted"] <= found["answers_given"]
    assert found["effects"] > 0
    assert left(temporary) == []
    assert list(temporary.iterdir()) == []


async def test_a_doubled_effect_fails_it_and_keeps_its_folder(
    place: Place, temporary: Path
) -> None:
    started = soak(place, temporary, *MOMENT, "--seed", "5", "--workers", "1")

    async def made() -> list[Path]:
        return [path for path in temporary.glob("*/seed-5/outside/*/*-*-*") if path.suffix == ""]

    async def look() -> bool:
        return bool(await made())

    await until(look, "an effect")
    effect = (await made())[0]
    key, _ = effect.read_text().split()
    effect.with_name("somebody-elses-id").write_text(f"{key} another\n")
    assert await code_of(started) == 1, started.said
    number = effect.parent.name
    assert f"seed 5: D-{number}: effect {key} was made 2 times" in started.said
    assert "effects doubled                    1\n" in started.said
    (folder,) = temporary.glob("*/seed-5")
    assert f"seed 5 broke a promise; its database and logs: {folder}" in started.said
    assert (folder / "worker-1.log").stat().st_size > 0
    assert left(temporary) == []


async def test_a_signal_ends_all_that_it_started(place: Place, temporary: Path) -> None:
    started = soak(place, temporary, "--workers", "1")

    async def working() -> bool:
        return any("slots" in log.read_text() for log in temporary.glob("*/*/worker-1.log"))

    await until(working, "a worker")
    started.signal(signal.SIGTERM)
    assert await code_of(started) == 130
    assert started.said.endswith("draftsman: interrupted\n")
    assert "Traceback" not in started.said
    assert left(temporary) == []
    assert list(temporary.iterdir()) == []
