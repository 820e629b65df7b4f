"""The page for those who come from another library: its examples run with these libraries.

Needs a network for the first run: 170 MB.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.docs.test_coming_from import LIBRARIES, TASKS, examples, table
from tests.libraries import ROOT, python_with_libraries

PACKAGES: Final = {
    "Celery": "celery",
    "procrastinate": "procrastinate",
    "RQ": "rq",
    "APScheduler": "apscheduler",
}
"""Those whose tables name what code uses; the other has words."""
NAME: Final = re.compile(r"[A-Za-z_]{3,}")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_an_example_runs_with_its_library(library: str, task: str) -> None:
    command = [str(python_with_libraries()), "-W", "error", "-m", "tests.libraries.their_examples"]
    done = subprocess.run(
        [*command, library],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=examples(library)[task],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("library", PACKAGES)
def test_the_table_has_names_of_the_library(library: str) -> None:
    code = f"import {PACKAGES[library]} as package; print(package.__path__[0])"
    done = subprocess.run(
        [str(python_with_libraries()), "-c", code], capture_output=True, text=True, check=True
    )
    files = Path(done.stdout.strip()).rglob("*.py")
    known = {name for file in files for name in NAME.findall(file.read_text("utf-8"))}
    codes = [code for theirs, _ in table(library) for code in re.findall(r"`([^`]+)`", theirs)]
    assert codes
    assert [name for code in codes for name in NAME.findall(code) if name not in known] == []
