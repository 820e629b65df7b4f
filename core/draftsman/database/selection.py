"""The rows of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that a sweep may change: all, or `only` these, and never those of `without`."""

    only: Sequence[int] | None = None
    without: Sequence[int] = ()

    @property
    def params(self) -> dict[str, Any]:
        """The parameters `only` and `without` of a statement."""
        only = None if self.only is None else list(self.only)
        return {"only": only, "without": list(self.without)}


ALL: Final = Selection()
