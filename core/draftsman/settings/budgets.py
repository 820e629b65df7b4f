"""Budgets in tokens and money."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from draftsman.settings.hours import Zone
from draftsman.settings.repo_keys import ByRepo
from draftsman.settings.section import Section

_Tokens = Annotated[int, Field(ge=1, le=10**15)]


class BudgetSettings(Section):
    """A budget; at least one of its amounts is set."""

    cost_usd: float | None = Field(None, gt=0, le=1e9)
    """US dollars, by `[prices]`; None: unlimited."""
    input_tokens: _Tokens | None = None
    """Input tokens; None: unlimited."""
    output_tokens: _Tokens | None = None
    """Output tokens; None: unlimited."""

    @model_validator(mode="after")
    def _check_amounts(self) -> Self:
        if (self.cost_usd, self.input_tokens, self.output_tokens) == (None, None, None):
            raise ValueError("a budget needs cost_usd, input_tokens or output_tokens")
        return self


class BudgetsSettings(Section):
    """Budgets by scope and value; `*` is each value without a budget of its own."""

    timezone: Zone = "UTC"
    """Time zone of the days."""
    call: BudgetSettings | None = None
    """A call through a gateway."""
    job: BudgetSettings | None = None
    """A job, unless the profile of its repository has an amount of its own."""
    all: BudgetSettings | None = None
    """All jobs together, in a day."""
    repo: Annotated[dict[str, BudgetSettings], ByRepo] = Field(default_factory=dict)
    """The jobs of a repository, by name, owner/name or host/owner/name in lower case, in a day."""
    person: dict[str, BudgetSettings] = Field(default_factory=dict)
    """The jobs that a person requested, in a day."""

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        for scope in ("repo", "person"):
            if "" in getattr(self, scope):
                raise ValueError(f"a budget of {scope} has an empty name; '*' is each {scope}")
        return self

    def rules(self) -> list[dict[str, Any]]:
        """Return a row of the table `budgets` for each budget, in sorted order."""
        budgets = [
            (scope, value, budget)
            for scope in ("all", "call", "job", "person", "repo")
            for value, budget in self._of(scope)
        ]
        return [
            {"scope": scope, "value": value, **budget.model_dump(exclude_none=True)}
            for scope, value, budget in budgets
        ]

    def _of(self, scope: str) -> list[tuple[str, BudgetSettings]]:
        amount = getattr(self, scope)
        if isinstance(amount, dict):
            return sorted(amount.items())
        return [] if amount is None else [("*", amount)]
