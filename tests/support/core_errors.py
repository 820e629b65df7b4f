"""Names of the core's error classes, and of its functions that return an error."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

CORE: Final = Path(__file__).parents[2] / "core" / "draftsman"


@cache
def errors_of_core() -> frozenset[str]:
    """Return the names of the classes whose first argument is a message."""
    classes = [
        node
        for node in ast.parse((CORE / "errors.py").read_text()).body
        if isinstance(node, ast.ClassDef)
    ]
    return frozenset(node.name for node in classes) - {"CommandHint", "OptionHint"} | {"ValueError"}


@cache
def error_functions() -> frozenset[str]:
    """Return the names of the functions that return an error, such as `git_failure`."""
    errors = errors_of_core()
    returns_error = re.compile(rf"->\s*(?:{'|'.join(errors)})\s*:")
    functions = [
        node
        for path in CORE.rglob("*.py")
        if returns_error.search(source := path.read_text())
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name)
    ]
    return frozenset(node.name for node in functions if getattr(node.returns, "id", "") in errors)
