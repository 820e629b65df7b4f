"""Errors carry data, so that no code parses their messages."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from draftsman.errors import (
    CommandHint,
    DraftsmanError,
    Failure,
    FieldError,
    IdempotencyConflict,
    NotFound,
    OptionHint,
    Refused,
    UnknownRepo,
)
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.spans import spans_text
from draftsman_bots.slack.deliveries.mrkdwn import error_spans
from tests.support.cases import cases


@cases(
    ("error", "message", "chat"),
    [
        (
            NotFound("there is no job D-5", hint=CommandHint("jobs")),
            "there is no job D-5; see: draftsman jobs",
            "there is no job D-5; see: list",
        ),
        (
            Refused(
                "is an approval", subject="D-5/1", hint=CommandHint("approve|deny", lead="use")
            ),
            "D-5/1 is an approval; use: draftsman approve|deny",
            "D-5/1 is an approval; approve or deny it",
        ),
        (
            NotFound("has no log", subject="D-5", hint=CommandHint("artifacts", "D-5")),
            "D-5 has no log; see: draftsman artifacts D-5",
            "D-5 has no log; see: draftsman artifacts D-5",
        ),
        (
            NotFound("unknown job D-5; did you mean D-6?", hint=CommandHint("jobs")),
            "unknown job D-5; did you mean D-6? see: draftsman jobs",
            "unknown job D-5; did you mean D-6? see: list",
        ),
        (
            Refused("completed", subject="D-5", hint=OptionHint("again")),
            "D-5 completed; use --again",
            "D-5 completed; use --again",
        ),
        (
            NotFound("no job id starts with 'see: draftsman jobs'"),
            "no job id starts with 'see: draftsman jobs'",
            "no job id starts with 'see: draftsman jobs'",
        ),
    ],
)
def test_a_hint_is_worded_for_a_terminal_and_for_a_chat(
    error: DraftsmanError, message: str, chat: str
) -> None:
    assert str(error) == message
    assert spans_text(error_spans(error)) == chat


def test_data_of_an_error_crosses_processes() -> None:
    for error in (
        FieldError("priority: no", field="priority", problem="no", rule="less_than"),
        IdempotencyConflict("used", job=5),
        UnknownRepo("none", known=("a/b",), hint=CommandHint("repos add", lead="or")),
        Refused("completed", subject="D-5", hint=OptionHint("again")),
    ):
        copied = pickle.loads(pickle.dumps(error))
        assert (str(copied), vars(copied)) == (str(error), vars(error))


def test_an_invalid_field_and_its_problem_are_separate_data() -> None:
    with pytest.raises(FieldError) as wrong:
        invocation(queue="a: b")
    assert wrong.value.field == "queue"
    assert wrong.value.problem not in ("", str(wrong.value))
    assert ": b" not in wrong.value.problem


@cases(
    ("argument", "wrong", "expected"),
    [
        ("retry_after", "7", "a number of seconds"),
        ("retry_after", timedelta(seconds=7), "a number of seconds"),
        ("retry_after", True, "a number of seconds"),
        ("code", 123, "a text"),
        ("origin", None, "a text"),
        ("declared", 5, "a text"),
        ("http_status", "503", "an integer"),
        ("http_status", 503.0, "an integer"),
        ("program_exit", "1", "an integer"),
    ],
)
def test_a_failure_with_an_argument_of_another_type_is_refused_where_it_is_raised(
    argument: str, wrong: object, expected: str
) -> None:
    arguments: dict[str, Any] = {argument: wrong}
    with pytest.raises(TypeError) as caught:
        Failure("the bank is busy", **arguments)
    assert str(caught.value) == f"Failure: {argument} must be {expected}, not {wrong!r}"


def test_an_exit_code_that_no_column_holds_is_refused() -> None:
    assert Failure("it broke", program_exit=-(2**31)).program_exit == -(2**31)
    for code in (2**31, -(2**31) - 1):
        with pytest.raises(TypeError, match="at most 32 bits"):
            Failure("it broke", program_exit=code)
