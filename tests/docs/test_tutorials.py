"""What is quick of the tutorials and the README.

tests/soak/soak_tutorials.py follows them as a reader does.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from draftsman.job_types import declaration
from draftsman.testing import MemoryApp
from tests.docs.tutorials import NAMES, Shell, is_seen, steps


@pytest.mark.parametrize("name", NAMES)
def test_the_code_compiles(name: str) -> None:
    for step in steps(name):
        if step.file is not None:
            compile(step.code, step.file, "exec")


def test_the_test_of_the_tutorial_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draftsman_app: MemoryApp
) -> None:
    monkeypatch.setattr(declaration, "declared_types", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    for step in steps("tutorial-jobs.md"):
        if step.file is not None:
            (tmp_path / step.file).write_text(step.code, encoding="utf-8")
    tests = importlib.import_module("test_shop")
    tests.test_a_person_decides(draftsman_app, "yes", "paid 20 for order 7")
    for name in ("test_shop", "shop"):
        del sys.modules[name]


def test_a_shell_keeps_its_folder_and_sees_failures(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"PATH": "/usr/bin:/bin"})
    assert shell.run("mkdir a\ncd a\nexport B=1\n") == ("", 0)
    assert shell.run("pwd; echo $B") == (f"{tmp_path}/a\n1\n", 0)
    assert shell.run("false\necho after") == ("after\n", 1)
    assert shell.run("false || true\nsleep 60 &\nkill %1\nwait")[1] == 0
    shell.close()


def test_expected_lines_are_in_order() -> None:
    output = "one 1 two\n  three\nfour\n"
    assert is_seen(("one … two", "three"), output)
    assert is_seen(("three", "…", "four"), output)
    assert not is_seen(("three", "one … two"), output)
    assert not is_seen(("five",), output)
