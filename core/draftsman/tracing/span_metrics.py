"""Counts of the spans of this process."""

from __future__ import annotations

from typing import Final

from draftsman.metrics import Counter, Totals

EXPORTED: Final = Totals(
    Counter("spans_exported_total", "Spans of traces that this process has sent.")
)
DROPPED: Final = Totals(
    Counter(
        "spans_dropped_total",
        "Spans of traces that were not sent: queue_full, as the receiver is slow; refused by it, or"
        " it did not respond.",
        ("reason",),
    )
)
