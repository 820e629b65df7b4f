"""Cases of a parametrized test that `make soak` runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow_except(kept: Iterable[Any], cases: Iterable[Any]) -> list[Any]:
    """Mark the other cases as slow; those that are kept detect the same defects."""
    kept = list(kept)
    mark = pytest.mark.slow(fast="the kept cases")
    return [case if case in kept else _param(case, mark) for case in cases]


def _param(case: Any, mark: pytest.MarkDecorator) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark)
