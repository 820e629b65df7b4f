"""Writes the tables of docs/metrics.md from the declarations of the metrics.

python -m tests.docs.metrics
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from draftsman import resources
from draftsman.metrics import DatabaseGauge, Metric, Values
from draftsman_bots.forges.receiver import ForgeHealth
from draftsman_bots.pagers.service import PagerHealth
from draftsman_bots.slack.health import BotHealth as SlackHealth
from draftsman_bots.trello.context import BotHealth as TrelloHealth
from tests.docs.pages import DOCS, filled

PAGE: Final = DOCS / "metrics.md"
CORE: Final = Path(resources.__file__).parent
BOTS: Final[Mapping[str, CollectorRegistry]] = {
    "Slack": SlackHealth().registry,
    "Trello": TrelloHealth().registry,
    "Forges": ForgeHealth().registry,
    "Pagers": PagerHealth().registry,
}
SUFFIXES: Final = {"counter": "_total"}
"""What the text format adds to the name of a metric, by type."""
Row = tuple[str, str, str]


def page(text: str) -> str:
    """Return the page with current tables."""
    return filled(text, _lines())


def _lines() -> Iterator[str]:
    declared = list(_of_core())
    shared = {metric for metric in declared if isinstance(metric, DatabaseGauge)}
    yield from _table("Database", sorted(map(_row, shared)))
    yield ""
    yield from _table("Workers", sorted(map(_row, {*declared} - shared)))
    for bot, registry in BOTS.items():
        yield ""
        yield from _table(bot, sorted(_of_registry(registry)))


def _table(title: str, rows: Iterable[Row]) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| metric | type | |"
    yield "|---|---|---|"
    for name, kind, text in rows:
        yield f"| `{name}` | {kind} | {text} |"


def _row(metric: Metric) -> Row:
    return _with_labels(metric.full_name, metric.labels), metric.type, metric.help


def _of_core() -> Iterator[Metric]:
    """Yield the metrics that are constants of modules of the core."""
    for path in CORE.rglob("*.py"):
        if "from draftsman.metrics import" in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(CORE.parent).with_suffix("").parts)
            for value in vars(importlib.import_module(name)).values():
                metric = value.metric if isinstance(value, Values) else value
                if isinstance(metric, Metric):
                    yield metric


def _of_registry(registry: CollectorRegistry) -> Iterator[Row]:
    for collector in registry._collector_to_names:
        labels = getattr(collector, "_labelnames", ())
        for metric in collector.collect():
            name = metric.name + SUFFIXES.get(metric.type, "")
            yield _with_labels(name, labels), metric.type, metric.documentation


def _with_labels(name: str, labels: Iterable[str]) -> str:
    names = ",".join(labels)
    return f"{name}{{{names}}}" if names else name


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
