"""Metrics in the text format of Prometheus; the module that measures one declares it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

NO_LABELS: Final[Mapping[str, str]] = {}
OTHER: Final = "other"
"""Value of the labels of what a metric with a limited number of values does not show by name."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its help; a constant of its module is in docs/metrics.md."""

    type: ClassVar[str]
    note: ClassVar[str] = ""
    """The end of the help of all metrics of this class."""
    name: str
    """Its name without the prefix `draftsman_`."""
    help: str
    labels: tuple[str, ...] = ()
    """Names of the labels that its samples may have."""

    @property
    def full_name(self) -> str:
        """Its name in Prometheus."""
        return f"draftsman_{self.name}"

    def render(self, samples: Iterable[tuple[Mapping[str, str], float]]) -> str:
        """Return its lines, none without a sample; a sample has labels and a value."""
        name = self.full_name
        lines = [f"{name}{_labels(labels)} {value:.10g}\n" for labels, value in samples]
        head = f"# HELP {name} {self.help}{self.note}\n# TYPE {name} {self.type}\n"
        return "".join([head, *lines]) if lines else ""

    def render_value(self, value: float | None) -> str:
        """Return its lines for a value without labels, none without a value."""
        return self.render([] if value is None else [(NO_LABELS, value)])


class Gauge(Metric):
    """A metric that is measured when it is read."""

    __slots__ = ()
    type = "gauge"


class DatabaseGauge(Gauge):
    """A gauge that is read from the database: the same in each process, so never to be added up."""

    __slots__ = ()
    note = " Read from the database."


class Counter(Metric):
    """A metric that only rises while its process runs; its name ends in `_total`."""

    __slots__ = ()
    type = "counter"


def _labels(labels: Mapping[str, str]) -> str:
    pairs = [f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""
