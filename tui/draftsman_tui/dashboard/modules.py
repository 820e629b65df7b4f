"""Modules of the dashboard that declare its tables, tabs and commands."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from functools import cache
from importlib import import_module

from draftsman_tui import dashboard


def import_all(name: str) -> None:
    """Import the modules of a name, such as `actions` and `view_actions` for `actions`."""
    for module in _names():
        last = module.rpartition(".")[2]
        if last == name or last.endswith(f"_{name}"):
            import_module(module)


@cache
def _names() -> Sequence[str]:
    modules = pkgutil.walk_packages(dashboard.__path__, f"{dashboard.__name__}.")
    return [module.name for module in modules]
