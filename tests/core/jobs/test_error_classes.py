"""Error classes: by the declared class, the code, the status, else the safe default."""

from __future__ import annotations

import errno
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from draftsman.errors import Failure, UsageError
from draftsman.jobs.retries import ErrorClass, as_failure, classify
from tests.support.cases import cases

E = ErrorClass


@cases(
    ("given_as", "expected"),
    [
        ({}, E.TRANSIENT_INFRA),
        ({"origin": "agent", "code": "no_such_agent"}, E.TRANSIENT_APP),
        ({"http_status": 400}, E.PERMANENT),
        ({"http_status": 401}, E.PERMANENT),
        ({"http_status": 404}, E.PERMANENT),
        ({"http_status": 408}, E.TRANSIENT_APP),
        ({"http_status": 422}, E.PERMANENT),
        ({"http_status": 429}, E.TRANSIENT_APP),
        ({"http_status": 500}, E.TRANSIENT_INFRA),
        ({"http_status": 502}, E.TRANSIENT_INFRA),
        ({"http_status": 503}, E.TRANSIENT_APP),
        ({"http_status": 504}, E.TRANSIENT_INFRA),
        ({"http_status": 529}, E.TRANSIENT_APP),
        ({"http_status": 200}, E.VALID),
        ({"origin": "os", "code": "ENOENT"}, E.PERMANENT),
        ({"origin": "os", "code": "EACCES"}, E.PERMANENT),
        ({"origin": "os", "code": "ENOSPC"}, E.TRANSIENT_INFRA),
        ({"origin": "os", "code": "ECONNRESET"}, E.TRANSIENT_INFRA),
        ({"origin": "git", "code": "no_such_ref"}, E.PERMANENT),
        ({"origin": "git", "code": "never heard of"}, E.TRANSIENT_INFRA),
        ({"origin": "agent", "code": "protocol"}, E.INVALID_OUTPUT),
        ({"origin": "agent", "code": "command_not_found"}, E.PERMANENT),
        ({"origin": "handler", "code": "timeout"}, E.PERMANENT),
        ({"origin": "handler", "code": "call_timeout"}, E.TRANSIENT_APP),
        ({"origin": "handler", "code": "unknown_type"}, E.PERMANENT),
        # A code precedes a status, and a declared class precedes both.
        ({"origin": "git", "code": "no_such_ref", "http_status": 503}, E.PERMANENT),
        ({"origin": "slack", "code": "ratelimited", "http_status": 429}, E.TRANSIENT_APP),
        ({"declared": "TRANSIENT_APP", "http_status": 400}, E.TRANSIENT_APP),
        ({"declared": "PERMANENT", "origin": "handler", "code": "call_timeout"}, E.PERMANENT),
        ({"declared": "INVALID_OUTPUT"}, E.INVALID_OUTPUT),
        # An unknown class, or a class of success, is ignored.
        ({"declared": "FATAL", "http_status": 503}, E.TRANSIENT_APP),
        ({"declared": "VALID"}, E.TRANSIENT_INFRA),
        ({"declared": "DENIED"}, E.TRANSIENT_INFRA),
        ({"declared": "permanent"}, E.TRANSIENT_INFRA),
    ],
    ids=str,
)
def test_failures_have_the_error_class_of_the_table(
    given_as: dict[str, Any], expected: ErrorClass
) -> None:
    assert classify(Failure("auth error: 503 not found", **given_as)) is expected


@given(st.text(), st.text())
def test_the_text_of_a_message_does_not_affect_the_class(before: str, after: str) -> None:
    for word in ("503", "permanent", "timeout", "not found", "ENOENT"):
        assert classify(Failure(before + word + after)) is E.TRANSIENT_INFRA


@given(st.integers())
def test_every_status_has_a_class(status: int) -> None:
    assert classify(Failure("x", http_status=status)) in E


@cases(
    ("error", "expected", "code"),
    [
        (TimeoutError(), E.TRANSIENT_APP, "call_timeout"),
        (OSError(errno.ENOSPC, "disk full"), E.TRANSIENT_INFRA, "ENOSPC"),
        (FileNotFoundError(errno.ENOENT, "gone"), E.PERMANENT, "ENOENT"),
        (PermissionError(errno.EACCES, "no"), E.PERMANENT, "EACCES"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "no"), E.TRANSIENT_INFRA, "ECONNREFUSED"),
        (OSError("without a number"), E.TRANSIENT_INFRA, None),
        (OSError(99_999, "unknown number"), E.TRANSIENT_INFRA, None),
        (UsageError("a question needs choices"), E.PERMANENT, None),
        (ValueError("broken"), E.TRANSIENT_INFRA, None),
        (KeyError(), E.TRANSIENT_INFRA, None),
    ],
    ids=repr,
)
def test_an_exception_of_a_handler_has_an_error_class(
    error: BaseException, expected: ErrorClass, code: str | None
) -> None:
    failure = as_failure(error)
    assert (classify(failure), failure.code) == (expected, code)
    assert str(failure)


def test_a_failure_is_classified_unchanged() -> None:
    failure = Failure("x", origin="git", code="no_such_ref", retry_after=3)
    assert as_failure(failure) is failure
