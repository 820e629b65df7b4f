"""Which tests reach which units of the claim path.

Queries are noticed when their text is read, functions by a call that is added to each of them. The
database's own views and functions are taken to be reached with the exchange and the end of a run.
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from draftsman.database import named_queries as queries
from tests.mutations.mutant import ROOT, Mutant
from tests.mutations.targets import FUNCTIONS, OBJECTS, QUERIES

WITH_OBJECTS: Final = frozenset({"exchange", "settle", "start", "release_lost_claims"})
_NOTE: Final = "_note_reached_unit"


class RecordingQueries(dict[str, Any]):
    """The queries of a file, which notes each that is used."""

    def __init__(self, texts: dict[str, Any], note: Callable[[str], None]) -> None:
        super().__init__(texts)
        self._note = note

    def __getitem__(self, name: str) -> Any:
        self._note(name)
        return super().__getitem__(name)


def install(note: Callable[[str], None]) -> None:
    """Call `note` with each unit that is reached in this process."""

    def note_query(name: str) -> None:
        note(name)
        if name in WITH_OBJECTS:
            for unit in OBJECTS:
                note(unit)

    for path in QUERIES:
        texts = queries.load(module_name(path))
        recording = RecordingQueries(texts, note_query)
        for module in [*sys.modules.values()]:
            names = getattr(module, "__dict__", {})
            for name, value in [*names.items()]:
                if value is texts:
                    setattr(module, name, recording)
    for path in FUNCTIONS:
        module = module_of(path)
        setattr(module, _NOTE, note)
        source = (ROOT / path).read_text("utf-8")
        replace_code(module, _noting(source), [*_names(source)])


def module_name(path: str) -> str:
    """Return the name of the module of a file in `core`, or of that beside a file of queries."""
    return path.removeprefix("core/").rpartition(".")[0].replace("/", ".")


def module_of(path: str) -> ModuleType:
    """Return the module of a file in `core`."""
    return importlib.import_module(module_name(path))


def outer_unit(mutant: Mutant, module: ModuleType) -> str:
    """Return the function of a module or class that contains the unit."""
    parts = mutant.unit.split(".")
    return ".".join(parts[:2]) if isinstance(getattr(module, parts[0]), type) else parts[0]


def replace_code(module: ModuleType, source: ast.Module | str, names: list[str]) -> None:
    """Let these functions of a module run the code that they have in another source."""
    codes: dict[str, CodeType] = {}

    def collect(code: CodeType) -> None:
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                codes.setdefault(constant.co_qualname, constant)
                collect(constant)

    collect(compile(source, module.__file__ or "", "exec", dont_inherit=True))
    for name in names:
        _function(module, name).__code__ = codes[name]


def _function(module: ModuleType, name: str) -> FunctionType:
    holder: Any = module
    *classes, last = name.split(".")
    for part in classes:
        holder = getattr(holder, part)
    value = vars(holder)[last]
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, functools.cached_property):
        value = value.func
    elif isinstance(value, staticmethod | classmethod):
        value = value.__func__
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    assert isinstance(value, FunctionType), name
    return value


def _noting(source: str) -> ast.Module:
    tree = ast.parse(source)
    for name, node in _functions(tree):
        call = ast.parse(f"{_NOTE}({name!r})").body
        node.body[:0] = call
    return ast.fix_missing_locations(tree)


def _names(source: str) -> Iterator[str]:
    for name, _ in _functions(ast.parse(source)):
        yield name


def _functions(
    tree: ast.Module,
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name, statement
        elif isinstance(statement, ast.ClassDef):
            for inner in statement.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{statement.name}.{inner.name}", inner
