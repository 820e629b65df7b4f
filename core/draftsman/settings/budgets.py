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

    cost_usd: float | None = Field(None, gt=0, le=1e9, examples=[50.0])
    """US dollars. Unset: unlimited."""
    input_tokens: _Tokens | None = Field(None, examples=[50000000])
    """Input tokens, also those read from a cache. Unset: unlimited."""
    output_tokens: _Tokens | None = Field(None, examples=[1000000])
    """Output tokens. Unset: unlimited."""

    @model_validator(mode="after")
    def _check_amounts(self) -> Self:
        if (self.cost_usd, self.input_tokens, self.output_tokens) == (None, None, None):
            raise ValueError("a budget needs cost_usd, input_tokens or output_tokens")
        return self


class BudgetsSettings(Section):
    """Budgets in tokens and US dollars, over all workers and hosts (docs/gateway.md).

    A job that has used up a budget asks for more. "*" is each value without a budget of its own.
    The leader writes them to the database at the start of its term, and all workers obey these. The
    prices are those of [prices].
    """

    timezone: Zone = "UTC"
    """Time zone of the days, a name of the IANA database."""
    call: BudgetSettings | None = Field(
        None, examples=[{"cost_usd": 2.0, "input_tokens": 1000000, "output_tokens": 100000}]
    )
    """A call through a gateway, with the keys of the tables below: a larger call is refused, and
    its job fails. Unset: unlimited."""
    job: BudgetSettings | None = Field(
        None, examples=[{"cost_usd": 5.0, "input_tokens": 5000000, "output_tokens": 200000}]
    )
    """A job, with all its runs. An amount in the profile of its repository replaces that of this
    budget. Unset: unlimited."""
    all: BudgetSettings | None = Field(
        None, examples=[{"cost_usd": 200.0, "input_tokens": 200000000, "output_tokens": 5000000}]
    )
    """All jobs together, in a day. Unset: unlimited."""
    repo: Annotated[dict[str, BudgetSettings], ByRepo] = Field(
        default_factory=dict, examples=[{"shop": {}}]
    )
    """The jobs of a repository in a day, by name, owner/name or host/owner/name."""
    person: dict[str, BudgetSettings] = Field(
        default_factory=dict,
        examples=[{"*": {"cost_usd": 20.0, "input_tokens": 20000000, "output_tokens": 500000}}],
    )
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
