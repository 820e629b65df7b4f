"""Halts a process of a test at a stage: at the call of the function that `STAGE` names.

Python imports this module at startup if its folder is on `PYTHONPATH`. The process connects to the
socket `STAGE_SOCKET`, and continues when that connection closes. `<module>` as the function means
the import of a module.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import socket
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULE, _, FUNCTION = os.environ["STAGE"].partition(":")


class Finder(MetaPathFinder):
    """Import hook for the module of the stage."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module
            setattr(spec.loader, "exec_module", functools.partial(_load, load))  # noqa: B010
        return spec


def _load(load: Callable[[ModuleType], None], module: ModuleType) -> None:
    if FUNCTION == "<module>":
        _halt()
    load(module)
    if FUNCTION != "<module>":
        _wrap(module)


def _wrap(module: ModuleType) -> None:
    """Replace the function, in modules that have imported it too."""
    *owners, name = FUNCTION.split(".")
    owner = functools.reduce(getattr, owners, module)
    function = getattr(owner, name)
    wrapper = _halting(function)
    setattr(owner, name, wrapper)
    for importer in list(sys.modules.values()):
        if getattr(importer, "__dict__", {}).get(name) is function:
            setattr(importer, name, wrapper)


def _halting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _halt()
        return function(*args, **kwargs)

    return call


def _halt() -> None:
    """Wait for the test, unless this or another process already halted."""
    with socket.socket(socket.AF_UNIX) as test:
        if test.connect_ex(os.environ["STAGE_SOCKET"]) == 0:
            test.recv(1)


if MODULE in sys.modules:  # of a process that was forked after its imports
    _wrap(sys.modules[MODULE])
else:
    sys.meta_path.insert(0, Finder())
