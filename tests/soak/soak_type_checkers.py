"""Type checkers of the users of job types: wrong calls are errors at the call, right ones are not.

`make check` runs mypy on the same calls. Needs a network for the first run: 170 MB.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.docs.pages import DOCS
from tests.docs.test_own_jobs import MIDDLEWARE, write_company
from tests.libraries import ROOT, python_with_libraries

CALLS: Final = ROOT / "tests" / "core" / "job_types" / "typed_calls.py"
WRONG: Final = """
from company.jobs import ship, weekly

def wrong() -> str:
    weekly.submit(wrong=1)
    weekly.submit()
    weekly.submit(week="31")
    ship(None, 7)
    return ship.submit(7).result()
"""
WRONG_LINES: Final = {5, 6, 7, 8, 9}


@pytest.fixture
def company(tmp_path: Path) -> Path:
    """Write the examples of the page, and a module with wrong calls of them."""
    write_company(tmp_path)
    for number, block in enumerate(MIDDLEWARE):
        if "django" not in block:  # it has no types
            (tmp_path / "company" / f"middleware_{number}.py").write_text(block, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    return tmp_path


def pyright(folder: Path, *files: Path) -> list[tuple[str, int, str]]:
    """Return the file, line and text of each error of pyright's strict mode in these files."""
    python = python_with_libraries()
    settings = {
        "include": [str(file) for file in files],
        "extraPaths": [str(file.parent) for file in files],
        "typeCheckingMode": "strict",
        "reportDuplicateImport": False,  # modules of the page are written as one
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    program = str(python.with_name("basedpyright"))
    command = [program, "--outputjson", "--pythonpath", str(python), "-p", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] >= len(files), report
    return [
        (
            Path(error["file"]).name,
            error["range"]["start"]["line"] + 1,
            f"{error['rule']}: {error['message']}",
        )
        for error in report["generalDiagnostics"]
        if error["severity"] == "error"
    ]


def test_pyright_refuses_the_same_calls_as_mypy(tmp_path: Path) -> None:
    """Comments that ignore an error are errors where pyright finds none."""
    assert pyright(tmp_path, CALLS) == []


def test_pyright_finds_the_wrong_calls_of_the_page_alone(company: Path) -> None:
    errors = pyright(company, company / "company", company / "wrong.py")
    assert {(file, line) for file, line, _ in errors} == {
        ("wrong.py", line) for line in WRONG_LINES
    }, errors


def test_pyright_accepts_the_examples(tmp_path: Path) -> None:
    shop = DOCS / "examples" / "shop"
    typed = ("shop.py", "fastapi_shop.py", "refunds.py")  # Django has no types
    assert pyright(tmp_path, *(shop / name for name in typed)) == []


def test_mypy_finds_the_wrong_calls_of_the_page_alone(company: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--explicit-package-bases"]
    done = subprocess.run(
        [*command, "--python-executable", str(python_with_libraries()), "company", "wrong.py"],
        cwd=company,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    found = {(line.split(":")[0], int(line.split(":")[1])) for line in errors}
    assert found == {("wrong.py", line) for line in WRONG_LINES}, done.stdout
