"""What probes learn of the database and the disk, also where these hang."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from draftsman.database import readiness
from draftsman.database.database import Database
from draftsman.database.readiness import MAX_AGE, MIN_FREE, NO_REPLY, Readiness, disk_problem
from draftsman.sandbox import bwrap
from draftsman_testing.waits import until
from tests.core.worker.cuttable_proxy import open_proxied


async def test_a_database_that_hangs_is_a_problem_in_time(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one statement waits for it, however often it is asked for."""
    monkeypatch.setattr(readiness, "LOOK_TIMEOUT", 0.2)
    clock = asyncio.get_running_loop().time
    async with open_proxied(database_url) as (proxy, db):
        look = Readiness(db, [tmp_path])
        assert await look.problems() == {}
        await asyncio.sleep(MAX_AGE + 0.1)
        proxy.drop_packets()
        began = clock()
        answers = await asyncio.gather(*(look.problems() for _ in range(50)))
        assert answers == [{"database": NO_REPLY}] * 50
        assert clock() - began < 5
        proxy.cut()
        proxy.mend()

        async def mended() -> bool:
            return await look.problems() == {}

        await until(mended, "the database")


async def test_an_answer_is_kept_for_a_moment(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def count(folders: Sequence[Path]) -> None:
        nonlocal looks
        looks += 1

    monkeypatch.setattr(readiness, "disk_problem", count)
    look = Readiness(db, [tmp_path])
    for _ in range(10):
        assert await look.problems() == {}
    assert looks == 1


def problems_within(*options: str, code: str, folder: Path) -> list[str]:
    """Return what Python prints in a sandbox with its own file system at the folder."""
    done = subprocess.run(
        [bwrap.programs()[0], "--dev-bind", "/", "/", *options, sys.executable, "-c", code],
        env={**os.environ, "FOLDER": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


PRELUDE = """
import os
from pathlib import Path
from draftsman.database.readiness import disk_problem
folder = Path(os.environ["FOLDER"])
def look(): print(disk_problem([folder, folder / "runs"]))
"""


def test_a_full_disk_is_a_problem_until_there_is_room(tmp_path: Path) -> None:
    small = ("--size", str(MIN_FREE + 1_000_000), "--tmpfs", str(tmp_path))
    filling = "file = folder / 'a'; look(); file.write_bytes(bytes(2_000_000)); look()"
    code = f"{PRELUDE}{filling}; file.unlink(); look()"
    full = "the data folder has less than 100.0 MB free"
    assert problems_within(*small, code=code, folder=tmp_path) == ["None", full, "None"]


def test_the_work_folder_may_be_on_another_disk(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    small = ("--size", str(MIN_FREE // 2), "--tmpfs", str(tmp_path / "runs"))
    full = "the data folder has less than 100.0 MB free"
    assert problems_within(*small, code=f"{PRELUDE}look()", folder=tmp_path) == [full]


def test_a_read_only_disk_is_a_problem(tmp_path: Path) -> None:
    read_only = ("--ro-bind", str(tmp_path), str(tmp_path))
    text = "the data folder is on a read-only file system"
    assert problems_within(*read_only, code=f"{PRELUDE}look()", folder=tmp_path) == [text]


def test_a_folder_that_is_not_there_yet_is_no_problem(tmp_path: Path) -> None:
    assert disk_problem([tmp_path / "a" / "b"]) is None
