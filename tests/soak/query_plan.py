"""The plan of an executed statement: rows read, sorted and touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SORTS = {"Sort", "Incremental Sort", "Hash", "Aggregate", "WindowAgg", "Materialize"}
"""Nodes that store or sort their input."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) output of a named query."""

    name: str
    root: dict[str, Any]
    ms: float
    """Milliseconds of planning and execution, with triggers."""

    @property
    def buffers(self) -> int:
        """Return the pages of 8 kB that were read, in memory or not, without triggers."""
        return int(self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"])

    def whole(self) -> set[str]:
        """Return the tables that were read completely."""
        return {node["Relation Name"] for node in self._nodes() if node["Node Type"] == "Seq Scan"}

    def read(self) -> Counter[str]:
        """Return the number of rows read of each table, filtered rows included."""
        counts: Counter[str] = Counter()
        for node in self._nodes():
            if "Relation Name" in node and "Scan" in node["Node Type"]:
                counts[node["Relation Name"]] += _rows(node) + _refused(node)
        return counts

    def sorts(self) -> set[str]:
        """Return the kinds of its nodes that sort."""
        return {kind for node in self._nodes() if "Sort" in (kind := node["Node Type"])}

    def held(self) -> int:
        """Return the number of rows of the largest sort, hash or grouping."""
        sizes = [
            sum(_rows(child) for child in node.get("Plans", ()))
            for node in self._nodes()
            if node["Node Type"] in SORTS and node.get("Strategy") != "Plain"
        ]
        return max(sizes, default=0)

    def __str__(self) -> str:
        return f"{self.name}: {self.ms:.1f} ms, {self.buffers} buffers\n{_drawn(self.root, 1)}"

    def _nodes(self) -> Iterator[dict[str, Any]]:
        rest = [self.root]
        while rest:
            node = rest.pop()
            rest += node.get("Plans", ())
            yield node


def _rows(node: dict[str, Any]) -> int:
    rows: float = node["Actual Rows"] * node["Actual Loops"]
    return round(rows)


def _refused(node: dict[str, Any]) -> int:
    names = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    rows: float = sum(node.get(name, 0) for name in names) * node["Actual Loops"]
    return round(rows)


def _drawn(node: dict[str, Any], depth: int) -> str:
    where = " ".join(str(node[key]) for key in ("Relation Name", "Index Name") if key in node)
    text = f"{'  ' * depth}{node['Node Type']} {where}: {_rows(node)} rows"
    text += f", {_refused(node)} refused" if _refused(node) else ""
    return "\n".join([text, *(_drawn(child, depth + 1) for child in node.get("Plans", ()))])
