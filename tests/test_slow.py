"""A test is left to `make soak` only if a test of `make test` detects the same defect."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


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
