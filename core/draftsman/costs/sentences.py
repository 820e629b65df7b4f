"""Sentences of the database about budgets."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "change_budgets": "{actor} may not change budgets",
    "decide_on_budget": "{voter} may not decide on a budget",
    "raise_kept": "a budget was raised by this answer",
}
