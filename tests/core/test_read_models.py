"""Services return read models and domain values; rows of the store stay below them."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import draftsman
import draftsman_bots
import draftsman_soak
import draftsman_tui

STORE = re.compile(r"draftsman(\.\w+)+\.store\b")


def _service_modules() -> list[ModuleType]:
    packages = pkgutil.walk_packages(draftsman.__path__, "draftsman.")
    names = [info.name for info in packages if ".service" in info.name]
    return [importlib.import_module(name) for name in names]


def _public_functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the functions, methods and annotated classes that a module defines publicly."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value):
            yield name, value
        if not inspect.isclass(value):
            continue
        yield name, value
        for member, attribute in vars(value).items():
            function = attribute.fget if isinstance(attribute, property) else attribute
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function) and (member[0] != "_" or is_dataclass(value)):
                yield f"{name}.{member}", function


def _classes(hint: Any) -> Iterator[type]:
    """Yield the classes that a type hint names, those of its arguments too."""
    if isinstance(hint, list | tuple):
        for part in hint:
            yield from _classes(part)
        return
    if isinstance(hint, type):
        yield hint
    yield from _classes(typing.get_args(hint))


def _names_for_type_checking(module: ModuleType) -> dict[str, Any]:
    """Return the names that a module imports under TYPE_CHECKING."""
    names: dict[str, Any] = {}
    for block in ast.parse(inspect.getsource(module)).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for node in block.body:
                assert isinstance(node, ast.ImportFrom)
                assert node.module
                source = importlib.import_module(node.module)
                names |= {alias.name: getattr(source, alias.name) for alias in node.names}
    return names


def test_no_public_signature_of_a_service_names_a_row_of_the_store() -> None:
    checked = 0
    leaks = []
    for module in _service_modules():
        names = _names_for_type_checking(module)
        for name, value in _public_functions(module):
            checked += 1
            leaks += [
                f"{module.__name__}.{name}: {cls.__qualname__} in {parameter}"
                for parameter, hint in typing.get_type_hints(value, localns=names).items()
                for cls in _classes(hint)
                if STORE.match(cls.__module__)
            ]
    assert leaks == []
    assert checked > 150


def test_no_front_end_imports_from_the_store() -> None:
    """A class of the store is not reached through the module of a service either."""
    leaks = []
    checked = 0
    for package in (draftsman_tui, draftsman_bots, draftsman_soak):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not (isinstance(node, ast.ImportFrom) and node.module):
                    continue
                if node.module.split(".")[0] != "draftsman":
                    continue
                checked += 1
                module = importlib.import_module(node.module)
                values = [(alias.name, getattr(module, alias.name, None)) for alias in node.names]
                leaks += [
                    f"{path.name}: {name}"
                    for name, value in values
                    if STORE.match(str(getattr(value, "__module__", "")))
                    or (inspect.ismodule(value) and STORE.match(value.__name__))
                ]
    assert leaks == []
    assert checked > 500
