"""A message of the core names no command: each front end words a hint in its own way."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

from draftsman_tui.cli.main import COMMANDS

CORE: Final = Path(__file__).resolve().parents[1] / "core" / "draftsman"
_COMMAND: Final = re.compile(rf"\bdraftsman (?:{'|'.join(COMMANDS)})\b|(?<![\w-])--[a-z]{{2,}}")
_JOINT: Final = re.compile(r"""["']\s*f?["']""")
"""Place between two parts of a literal."""


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


def test_errors_of_the_core_name_commands_and_options_in_hints_only() -> None:
    """A front end words a hint in its own way, but never a command inside of a message."""
    errors = errors_of_core() | error_functions()
    found = []
    for path in sorted(CORE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not _COMMAND.search(_JOINT.sub("", source)):
            continue
        for call in ast.walk(ast.parse(source)):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in errors:
                texts = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant)]
                found += [(path.name, text) for text in texts if _COMMAND.search(str(text))]
    assert found == []
