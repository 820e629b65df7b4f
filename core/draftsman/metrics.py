"""Figures in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

NO_LABELS: Final[Mapping[str, str]] = {}
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def gauge(name: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> str:
    """Return the lines of a gauge, none without a sample; a sample has labels and a value."""
    full = f"draftsman_{name}"
    lines = [f"{full}{_labels(labels)} {value:.10g}\n" for labels, value in samples]
    return "".join([f"# HELP {full} {about}\n# TYPE {full} gauge\n", *lines]) if lines else ""


def _labels(labels: Mapping[str, str]) -> str:
    pairs = [f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""
