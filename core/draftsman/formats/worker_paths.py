"""Paths of the folders of runs on a worker, made relative in what people read. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

PathRemover = Callable[[Any], Any]
"""Returns a JSON value with relative paths."""


def path_remover(folders: Sequence[tuple[Iterable[str], str]]) -> PathRemover:
    """Return a remover of these folders: the patterns of each, and what replaces it."""
    patterns = [
        (re.compile(rf"(?<![\w.~/-])(?:{'|'.join(roots)})(/|(?![\w.-]))"), prefix)
        for roots, prefix in folders
    ]

    def remove(value: Any) -> Any:
        for pattern, prefix in patterns:
            value = _replace_root(value, pattern, prefix)
        return value

    return remove


@lru_cache(maxsize=8)
def of_runs(data_dir: Path) -> PathRemover:
    """Return a remover of the folders of all runs in a data directory."""
    data = re.escape(str(data_dir))
    run = rf"{data}/runs/[^/\s]+"
    homes = [f"{run}/home", rf"{data}/tools/[^/\s]+"]
    return path_remover([([f"{run}/repo"], ""), (homes, "~/"), ([run], "")])


def _replace_root(value: Any, root: re.Pattern[str], prefix: str) -> Any:
    if isinstance(value, str):
        return root.sub(lambda match: prefix if match[1] else prefix.rstrip("/") or ".", value)
    if isinstance(value, dict):
        return {key: _replace_root(item, root, prefix) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_root(item, root, prefix) for item in value]
    return value
