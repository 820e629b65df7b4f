"""Budgets and costs as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.text import first_line

if TYPE_CHECKING:
    from draftsman.costs.budgets import BudgetUse


def budget_title(use: BudgetUse) -> str:
    """Return the subject of a budget: `repo shop`, `D-142`, `each person`."""
    scope, _, value = use.name.partition(":")
    if scope == "all":
        return "all jobs"
    if scope == "job" and value != "*":
        return f"D-{value}"
    return first_line(f"each {scope}" if value == "*" else f"{scope} {value}", 200)


def is_rule(use: BudgetUse) -> bool:
    """Return whether a budget is that of each repository, person, job or call, without a use."""
    return use.day is None and not use.name.partition(":")[2].isdecimal()
