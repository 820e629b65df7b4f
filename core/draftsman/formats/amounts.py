"""Counts, sizes and money as text."""

from __future__ import annotations

from typing import Final

COUNT_LIMIT: Final = 10_000
"""The most that is counted of anything that people see a number of."""


def count_text(count: int) -> str:
    """Return a count that ends at `COUNT_LIMIT`: `1,234`, `10,000+`."""
    return f"{count:,}" if count < COUNT_LIMIT else f"{COUNT_LIMIT:,}+"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: `1 job`, `1,000 jobs`; `plural` is one without an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def format_size(size: int) -> str:
    """Return a number of bytes: `812 B`, `1.5 kB`, `25.0 MB`."""
    if size < 1000:
        return f"{size} B"
    if size < 999_950:
        return f"{size / 1000:.1f} kB"
    return f"{size / 1_000_000:,.1f} MB"


def format_money(dollars: float, *, cents: bool = False) -> str:
    """Return an amount: `$1,234.50`, `$0.0042`; with `cents` never more exact: `<$0.01`."""
    if cents and 0 < dollars < 0.005:
        return "<$0.01"
    if not cents and 0 < dollars < 0.1:
        return f"${dollars:.4f}"
    return f"${dollars:,.2f}"
