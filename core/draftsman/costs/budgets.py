"""Budgets: amounts, the question at a budget that is used up, and its answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal

from draftsman.errors import Failure
from draftsman.formats.amounts import format_money
from draftsman.jobs.runs.quota import LIMIT_PREFIX
from draftsman.text import capitalized

if TYPE_CHECKING:
    from draftsman.jobs.runs.run import Run
    from draftsman.questions.question_spec import QuestionSpec

STOP: Final = "stop"
MEASURES: Final = ("cost_usd", "input_tokens", "output_tokens")
_UNITS: Final = {"input_tokens": "input tokens", "output_tokens": "output tokens"}
_MULTIPLES: Final = (1, 4)
"""Amounts that the question offers, as multiples of the budget."""

Outcome = Literal["reserved", "recorded", "price", "call", "used", "wait"]


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget as a call found it, and whether the call could start.

    `name` is scope and value, such as `job:142` or `repo:shop`; a job has no `day`. `added` is the
    part of `budget` that people added.
    """

    outcome: Outcome
    name: str = ""
    day: date | None = None
    measure: str = "cost_usd"
    used: float = 0.0
    reserved: float = 0.0
    budget: float = 0.0
    added: float = 0.0
    seconds_left: float | None = None
    """Seconds to the end of its day."""

    @property
    def scope(self) -> str:
        """Scope of the budget."""
        return self.name.partition(":")[0]


UNPRICED: Final = BudgetState("price")
"""Why a call of a model without a price is refused: it would count for nothing."""


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """A budget with its use; `day` is None for a job, and for a budget without a use today."""

    name: str
    day: date | None
    measure: str
    used: float
    reserved: float
    budget: float
    added: float


class CostGroup(StrEnum):
    """Groups of costs."""

    REPO = "repo"
    PERSON = "person"
    AGENT = "agent"
    MODEL = "model"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of a repository, person, agent, model or day; `value` is empty without one."""

    value: str
    calls: int
    cost_usd: float
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class CallEstimate:
    """Maximum use of a call; `cost_usd` is None without a price of the model."""

    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


def amount_text(measure: str, amount: float) -> str:
    """Return an amount with its unit: `$5.00`, `1,000 input tokens`."""
    if measure != "cost_usd":
        return f"{amount:,.0f} {_UNITS[measure]}"
    return format_money(amount)


def title(state: BudgetState, job: str) -> str:
    """Return the subject of a budget: `D-142`, `the repository shop`."""
    value = state.name.partition(":")[2]
    names = {"repo": f"the repository {value}", "person": f"the jobs of {value}"}
    return names.get(state.scope, job if state.scope == "job" else "all jobs together")


def use_text(state: BudgetState, job: str) -> str:
    """Return the use of a budget: `D-142 has used $5.00 of $5.00`."""
    subject = title(state, job)
    verb = "has" if state.scope in ("job", "repo") else "have"
    amount, budget = (amount_text(state.measure, n) for n in (state.used, state.budget))
    if state.measure != "cost_usd":
        amount = amount.partition(" ")[0]
    day = f" on {state.day:%Y-%m-%d}" if state.day else ""
    text = f"{subject} {verb} used {amount} of {budget}{day}"
    if state.reserved > 0 and state.outcome == "wait":
        text += f", and running calls have reserved {amount_text(state.measure, state.reserved)}"
    return capitalized(text)


def question_of(state: BudgetState, job: str, run: int) -> QuestionSpec:
    """Return the question at a budget that is used up.

    `action` names the budget, to which the answer is added.
    """
    from draftsman.questions.question import BUDGET_KEY, OnExpire
    from draftsman.questions.question_spec import Choice, QuestionSpec

    base = state.budget - state.added
    amounts = [base * multiple for multiple in _MULTIPLES]
    choices = [
        Choice(value=_plain(amount), label=f"Add {_short(state.measure, amount)}")
        for amount in amounts
    ]
    first, second = (_short(state.measure, amount) for amount in amounts)
    return QuestionSpec(
        key=BUDGET_KEY,
        text=f"{use_text(state, job)}. Add {first}, add {second}, or stop?",
        choices=(*choices, Choice(value=STOP, label="Stop")),
        freeform=True,
        # a budget of a day is new on the next day: the run continues without an answer
        on_expire=OnExpire.EXPIRE if state.seconds_left is None else OnExpire.CONTINUE,
        expires_in=None if state.seconds_left is None else max(state.seconds_left, 1.0),
        action={
            "budget": state.name,
            "day": state.day.isoformat() if state.day else "-infinity",
            "measure": state.measure,
            "used": state.used,
            "of": state.budget,
            "run": run,
        },
    )


def state_of(action: Mapping[str, Any]) -> BudgetState:
    """Return the used-up budget that the action of a question names."""
    day = action["day"]
    return BudgetState(
        "used",
        action["budget"],
        None if day == "-infinity" else date.fromisoformat(day),
        action["measure"],
        used=action["used"],
        budget=action["of"],
    )


def refusal_of(state: BudgetState, estimate: CallEstimate, job: str) -> str:
    """Return why a call was refused."""
    if state.outcome == "price":
        return f'the model {estimate.model} has no price: set [prices."{estimate.model}"]'
    if state.outcome == "call":
        amount = amount_text(state.measure, state.used)
        return f"the call may use {amount}, more than {amount_text(state.measure, state.budget)}"
    return use_text(state, job)


def failure_of(state: BudgetState, estimate: CallEstimate) -> Failure | None:
    """Return the failure of a job whose call no answer can allow; None for a question."""
    text = refusal_of(state, estimate, "")
    if state.outcome == "call":
        text += f"; the limit is {state.measure} of [budgets.call]"
    elif state.outcome != "price":
        return None
    return budget_failure(text)


def budget_failure(text: str) -> Failure:
    """Return the permanent failure of a job because of a budget."""
    return Failure(text, origin="agent", code=f"{LIMIT_PREFIX}budget", declared="PERMANENT")


def usage_of(runs: Iterable[Run]) -> dict[str, float]:
    """Return the usage of runs by measure, without measures that are 0."""
    by_run = [run.usage or {} for run in runs]
    totals = {name: sum(usage.get(name, 0) for usage in by_run) for name in MEASURES}
    return {name: total for name, total in totals.items() if total}


def own_budget(profile: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the budget of a job by the profile of its repository; empty without amounts."""
    return {name: profile[name] for name in MEASURES if name in profile} if profile else {}


def _short(measure: str, amount: float) -> str:
    if measure == "cost_usd" and amount >= 1 and amount == int(amount):
        return f"${amount:,.0f}"
    return amount_text(measure, amount)


def _plain(amount: float) -> str:
    return f"{amount:.4f}".rstrip("0").rstrip(".")
