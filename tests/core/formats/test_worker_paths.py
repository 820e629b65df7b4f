"""Paths of the folders of runs are relative, and no other path changes."""

from __future__ import annotations

from pathlib import Path

from draftsman.formats.worker_paths import of_runs
from tests.support.cases import cases

RUN = "/data/runs/D-1.2-ab"


@cases(
    ("text", "shown"),
    [
        (f"{RUN}/repo/src/a.py:1: error", "src/a.py:1: error"),
        (f"in {RUN}/repo, of {RUN}", "in ., of ."),
        (f"{RUN}/home/x, {RUN}/index", "~/x, index"),
        ("/data/tools/D-1.1-ab/report.csv", "~/report.csv"),
        ("/data/runs", "/data/runs"),
        ("/data/keys/key.pem", "/data/keys/key.pem"),
        (f"/mnt{RUN}/repo/a", f"/mnt{RUN}/repo/a"),
    ],
)
def test_paths_of_runs_are_relative(text: str, shown: str) -> None:
    remove = of_runs(Path("/data"))
    assert remove({"deep": [text, 1]}) == {"deep": [shown, 1]}
