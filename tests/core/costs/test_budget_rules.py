"""Texts of budgets, and the amounts that answers add."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from draftsman.costs.budgets import (
    BudgetState,
    CallEstimate,
    amount_text,
    failure_of,
    question_of,
    refusal_of,
    state_of,
    use_text,
)
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.documents.plain import render_plain
from draftsman.errors import UsageError
from draftsman.questions.answer import parse_amount
from draftsman.questions.question import BUDGET_KEY, Question, QuestionKind, QuestionStatus
from draftsman_testing.channel.samples import message
from tests.support.cases import cases

JOB = BudgetState("used", "job:142", None, "cost_usd", 5.25, 0, 5.0)
DAY = BudgetState(
    "used", "repo:acme/shop", date(2026, 11, 25), "output_tokens", 120_000, 0, 120_000, 20_000, 60
)


def test_the_question_offers_the_configured_amount_once_and_four_times() -> None:
    question = question_of(JOB, "D-142", 3)
    assert question.text == "D-142 has used $5.25 of $5.00. Add $5, add $20, or stop?"
    assert [choice.value for choice in question.choices] == ["5", "20", "stop"]
    assert (question.on_expire, question.expires_in) == ("expire", None)
    question = question_of(DAY, "D-142", 3)
    assert question.text == (
        "The repository acme/shop has used 120,000 of 120,000 output tokens on 2026-11-25."
        " Add 100,000 output tokens, add 400,000 output tokens, or stop?"
    )
    assert [choice.value for choice in question.choices] == ["100000", "400000", "stop"]
    assert state_of(question.action or {}) == replace(DAY, added=0, seconds_left=None)


def test_another_run_asks_another_question() -> None:
    assert question_of(JOB, "D-142", 3).digest != question_of(JOB, "D-142", 4).digest


@cases("text", ["5", " $5 ", "add 5", "5 USD", "5.00$", "Add $5.0"])
def test_an_amount_is_accepted_with_its_unit(text: str) -> None:
    assert parse_amount(text) == 5


@cases("text", ["", "0", "-5", "five", "1e9", "5;6", "NaN", "9" * 30, "$"])
def test_anything_else_is_no_amount(text: str) -> None:
    with pytest.raises(UsageError, match="is not an amount; answer an amount such as"):
        parse_amount(text)


def test_small_amounts_have_four_digits() -> None:
    texts = [amount_text("cost_usd", amount) for amount in (0, 0.0045, 0.5, 1234.5)]
    assert texts == ["$0.00", "$0.0045", "$0.50", "$1,234.50"]


def test_a_refusal_says_which_budget() -> None:
    estimate = CallEstimate("m", 10, 10, 0.5)
    waiting = replace(JOB, outcome="wait", used=3.0, reserved=1.5)
    assert refusal_of(waiting, estimate, "D-142") == (
        "D-142 has used $3.00 of $5.00, and running calls have reserved $1.50"
    )
    assert failure_of(waiting, estimate) is None
    everyone = replace(JOB, name="all:*", day=date(2026, 11, 25))
    assert use_text(everyone, "D-142") == (
        "All jobs together have used $5.25 of $5.00 on 2026-11-25"
    )


def test_messages_do_not_offer_the_budget_as_an_action_to_approve() -> None:
    spec = question_of(JOB, "D-142", 3)
    now = datetime(2026, 11, 25, tzinfo=UTC)
    question = Question(
        job=142,
        ordinal=1,
        run=3,
        key=BUDGET_KEY,
        kind=QuestionKind.INPUT,
        status=QuestionStatus.OPEN,
        text=spec.text,
        choices=[choice.model_dump() for choice in spec.choices],
        freeform_allowed=True,
        context_snippet=None,
        approvers=["olga"],
        quorum=1,
        on_expire=spec.on_expire,
        default_value=None,
        on_deny=spec.on_deny,
        digest=spec.digest,
        action=spec.action,
        resolution=None,
        asked_at=now,
        expires_at=None,
        answered_at=None,
    )
    text = render_plain(message(DeliveryKind.QUESTION, question=question))
    assert "Add $20" in text
    assert "If approved" not in text
