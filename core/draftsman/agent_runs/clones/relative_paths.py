"""Paths in JSON values, made relative."""

from __future__ import annotations

import re
from typing import Any


def replace_root(value: Any, root: re.Pattern[str], prefix: str) -> Any:
    """Return the JSON value with the root of paths replaced by `prefix`."""
    if isinstance(value, str):
        return root.sub(lambda match: prefix if match[1] else prefix.rstrip("/") or ".", value)
    if isinstance(value, dict):
        return {key: replace_root(item, root, prefix) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_root(item, root, prefix) for item in value]
    return value
