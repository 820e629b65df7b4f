"""A test is left to `make soak` only if a test of `make test` detects the same defect."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
EXAMPLE: Final = """
@pytest.mark.slow(fast="test_one_file")
def test_many_files(): ...
@pytest.mark.parametrize("count", [1, pytest.param(9, marks=pytest.mark.slow(fast="{fast}"))])
def test_one_file(count): ...
"""


def slow_marks(node: ast.AST) -> list[ast.Call]:
    """Return the marks of a test or a file."""
    return [
        call
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "slow"
    ]


def functions(tree: ast.AST) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    return {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def unfounded(path: Path, root: Path) -> Iterator[str]:
    """Yield each mark of a file that names no test that `make test` runs."""
    tree = ast.parse(path.read_text("utf-8"))
    for mark in slow_marks(tree):
        fast = {word.arg: ast.unparse(word.value) for word in mark.keywords}.get("fast", "''")
        fast = str(ast.literal_eval(fast))
        file, _, name = fast.rpartition("::")
        other = root / file if file else path
        test = functions(ast.parse(other.read_text("utf-8"))).get(name) if other.exists() else None
        if test is None or any(mark in test.decorator_list for mark in slow_marks(test)):
            yield f"{path.name}:{mark.lineno}: no fast test {fast}"


def test_a_slow_test_names_a_faster_test() -> None:
    files = [path for path in ROOT.rglob("tests/**/test_*.py") if path != Path(__file__)]
    slow = [path for path in files if "mark.slow" in path.read_text("utf-8")]
    assert slow
    assert [line for path in slow for line in unfounded(path, ROOT)] == []


@pytest.mark.parametrize(
    ("fast", "line"),
    [("test_one_file", None), ("test_many_files", 4), ("test_no_file", 4), ("tests/a.py::b", 4)],
)
def test_a_mark_without_a_fast_test_is_detected(
    fast: str, line: int | None, tmp_path: Path
) -> None:
    (path := tmp_path / "test_files.py").write_text(EXAMPLE.format(fast=fast))
    expected = [] if line is None else [f"test_files.py:{line}: no fast test {fast}"]
    assert list(unfounded(path, tmp_path)) == expected
