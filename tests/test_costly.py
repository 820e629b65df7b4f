"""The list of costly tests names tests that exist, and none that promises rest on."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from tests.costly import ALWAYS, BUDGET, costly, costly_functions

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
    costs = {
        "tests/test_a.py::test_cheaper": BUDGET / 3,
        "tests/test_a.py::test_dear": BUDGET,
        f"{ALWAYS[0]}test_a.py::test_promise": BUDGET / 2,
        "tests/test_a.py::test_cheap": 1.0,
    }
    assert costly(costs) == ["tests/test_a.py::test_dear"]
