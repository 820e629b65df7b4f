"""Workers of pytest-xdist: forked with all imports, and errors of imports reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORKED = """
import subprocess, sys

def test_imports():
    assert {"draftsman.worker.execution", "textual.app"} <= set(sys.modules)

def test_collected_tests_were_rewritten():
    try:
        assert 1 == 2
    except AssertionError as error:
        assert "assert 1 == 2" in str(error)

def test_command():
    command = [sys.executable, "-m", "tests.support.process_report"]
    report = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert '"interpreter"' in report.stdout, report.stderr
    assert "process_report" not in report.stdout
"""


BROKEN = {
    "missing": ("import not_a_module", "ModuleNotFoundError"),
    "syntax": ("def", "SyntaxError"),
    "warning": ("import warnings; warnings.warn('old', DeprecationWarning)", "Warning: old"),
}


def test_workers_and_commands_are_forked_and_import_errors_reported(tmp_path: Path) -> None:
    (tmp_path / "test_forked.py").write_text(FORKED)
    for name, (text, _) in BROKEN.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-n1", "-q", "-p", "tests.conftest"]
    command += ["-c", "pyproject.toml", "-p", "no:cacheprovider"]
    command += ["--continue-on-collection-errors", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert "3 passed, 3 errors" in output, output
    for _, error in BROKEN.values():
        assert error in output
