"""Signatures as values that tests compare."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    """Return the name, kind and default of each parameter, without the types."""
    signature = inspect.signature(function)
    return [(item.name, item.kind, item.default) for item in signature.parameters.values()]
