"""Names in the pages, looked up in the source without importing it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


@functools.cache
def defined_names(path: Path) -> frozenset[str]:
    """Return the top-level names of a module, and `Class.member` for those of its classes."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names |= _bound(node)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{member}" for item in node.body for member in _bound(item)}
    return frozenset(names)


def _bound(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign():
            return {target.id for target in node.targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case _:
            return set()
