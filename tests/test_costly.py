"""The list of costly tests names tests that exist, and none that promises rest on."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from tests.costly import ALWAYS, BUDGET, costly, costly_functions, mark_costly

ROOT: Final = Path(__file__).parents[1]
DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def names(file: str) -> set[str]:
    """Return the functions and classes of a file, by their names in pytest."""
    body = ast.parse((ROOT / file).read_text("utf-8")).body
    return {f"{file}::{node.name}" for node in body if isinstance(node, DEFINITIONS)}


def test_each_costly_test_exists() -> None:
    listed = {"::".join(name.split("::")[:2]) for name in costly_functions()}
    files = {name.partition("::")[0] for name in listed}
    there = set[str]().union(*(names(file) for file in files if (ROOT / file).exists()))
    assert listed - there == set(), "rename their lines, or remove them"


def test_those_that_cost_most_are_costly_until_the_others_fit() -> None:
    kept = "tests/test_a.py::test_snapshot"
    shares = {
        kept: 0.4,
        f"{ALWAYS[0]}test_a.py::test_promise": 0.38,
        "tests/test_a.py::test_dear": 0.35,
        "tests/test_a.py::test_cheaper": 0.2,
    }
    costs = {name: share * BUDGET for name, share in shares.items()}
    assert costly(costs, {kept}) == ["tests/test_a.py::test_dear"]


def test_a_listed_test_with_a_snapshot_is_not_costly() -> None:
    marks: dict[str, list[str]] = {"snapshot": [], "database": []}
    items: list[Any] = [
        SimpleNamespace(
            nodeid=f"{min(costly_functions())}[case]", fixturenames=[name], add_marker=added.append
        )
        for name, added in marks.items()
    ]
    mark_costly(items)
    assert marks == {"snapshot": [], "database": ["costly"]}
