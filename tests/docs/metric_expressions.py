"""Expressions over metrics, compared with docs/metrics.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from draftsman.metrics import BUCKETS
from tests.docs.pages import DOCS

_ROW: Final = re.compile(r"^\| `(draftsman_\w+)(?:\{([\w,]+)\})?` \| (\w+) \|", re.MULTILINE)
_USE: Final = re.compile(r"\b(draftsman_\w+)(?:\{([^}]*)\})?(\[[^]]+\])?")
_MATCHER: Final = re.compile(r'^(\w+)(?:=~|!~|!=|=)"([^"]*)"$')
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring) \(([^)]*)\)|\bby\(([^)]*)\)")
_PARTS: Final = ("_bucket", "_sum", "_count")
_OF_SCRAPE: Final = {"instance", "job"}
"""Labels that Prometheus adds to each sample."""


class Declared(NamedTuple):
    """A metric of the page."""

    labels: frozenset[str]
    type: str


@cache
def declared() -> dict[str, Declared]:
    """Return the metrics of the page by name."""
    rows = _ROW.findall((DOCS / "metrics.md").read_text("utf-8"))
    return {
        name: Declared(frozenset(filter(None, labels.split(","))), type)
        for name, labels, type in rows
    }


def problems(expression: str) -> Iterator[str]:
    """Yield what an expression uses that no metric of the page has."""
    labels: set[str] = set(_OF_SCRAPE)
    for name, matchers, span in _USE.findall(expression):
        base = next((name.removesuffix(part) for part in _PARTS if name.endswith(part)), name)
        metric = declared().get(name) or declared().get(base)
        if metric is None:
            yield f"there is no metric {name}"
            continue
        if (metric.type == "histogram") == (name in declared()):
            yield f"{name} is no {metric.type}"
        if (metric.type == "gauge") == bool(span):
            yield f"{name} is a {metric.type}"
        known = metric.labels | _OF_SCRAPE | ({"le"} if name.endswith("_bucket") else set())
        labels |= known
        for matcher in filter(None, re.split(r",(?=\w+[=!])", matchers)):
            found = _MATCHER.match(matcher)
            if found is None or found[1] not in known:
                yield f"{name} has no label for {matcher}"
            elif found[1] == "le" and found[2] not in {f"{bound:g}" for bound in BUCKETS}:
                yield f"{name} has no bucket {found[2]}"
    for first, second in _GROUPING.findall(expression):
        for label in re.findall(r"\w+", first or second):
            if label not in labels:
                yield f"no metric of the expression has the label {label}"
    if not _USE.search(expression):
        yield "there is no metric"
