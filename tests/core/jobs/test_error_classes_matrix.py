"""Every row of the classification table, and every status of an error."""

from __future__ import annotations

import errno
import socket
from datetime import UTC, datetime

from draftsman.errors import Failure
from draftsman.jobs import retries as table
from draftsman.jobs.job import Status
from draftsman.jobs.retries import (
    ErrorClass,
    RetryCounts,
    RetryPolicy,
    after_failure,
    as_failure,
    classify,
)
from draftsman.outbound.http_client import retry_after
from tests.support.cases import cases

E = ErrorClass
APP = {408, 429, 503, 529}
"""Seed 002: these wait longer; of the others 4xx is final and 5xx is the machine's."""


@cases("status", range(400, 600))
def test_every_status(status: int) -> None:
    expected = E.TRANSIENT_APP if status in APP else E.PERMANENT
    if status >= 500 and status not in APP:
        expected = E.TRANSIENT_INFRA
    for origin in ("http", "llm", "webhook"):
        assert classify(Failure("x", origin=origin, http_status=status)) is expected


ROWS = {
    E.PERMANENT: {
        "http": "address_refused url too_many_redirects tls tls_certificate header_too_large"
        " body_too_large decompression_bomb request EAI_NONAME EAI_NODATA EAI_FAIL EACCES",
        "llm": "invalid_request_error authentication_error permission_error not_found_error"
        " request_too_large billing_error insufficient_quota context_length_exceeded"
        " invalid_api_key model_not_found content_filter content_policy_violation"
        " string_above_max_length unsupported_parameter unsupported_value"
        " billing_hard_limit_reached account_deactivated",
        "handler": "timeout unknown_type programming_error",
        "agent": "command_not_found artifact home_files",
        "tool": "command_not_found",
        "git": "address_refused redirected url not_a_repository no_such_ref no_commits"
        " no_common_commit not_found push_refused"
        " branch_checked_out branch_moved git_missing too_large permission authentication"
        " workspace_gone tree object_format signing branch_name",
    },
    E.TRANSIENT_APP: {
        "http": "call_timeout idle_timeout no_such_credential",
        "llm": "rate_limit_error rate_limit_exceeded overloaded_error timeout_error slow_down"
        " server_overloaded engine_overloaded no_such_llm",
        "tool": "no_such_tool call_timeout",
        "webhook": "no_such_webhook",
        "handler": "call_timeout step_timeout idle_timeout no_secret",
        "agent": "no_such_agent",
    },
    E.TRANSIENT_INFRA: {
        "http": "protocol disconnected connect_timeout proxy EAI_AGAIN ECONNREFUSED ECONNRESET"
        " ECONNABORTED EPIPE ETIMEDOUT ENETUNREACH EHOSTUNREACH never_heard_of",
        "llm": "api_error server_error internal_server_error stream_ended",
        "handler": "connect_timeout",
        "tool": "connect_timeout exit",
    },
    E.INVALID_OUTPUT: {
        "http": "content_encoding",
        "agent": "protocol",
        "tool": "output_too_large",
    },
}
FLAT = [
    (origin, code, expected)
    for expected, origins in ROWS.items()
    for origin, codes in origins.items()
    for code in codes.split()
]


@cases(("origin", "code", "expected"), FLAT)
def test_every_code_has_an_error_class(origin: str, code: str, expected: ErrorClass) -> None:
    assert classify(Failure("x", origin=origin, code=code)) is expected


def test_every_row_of_the_table_is_tested() -> None:
    tested = {(origin, code) for origin, code, _ in FLAT}
    assert table._CODES.keys() - tested == set()


def test_an_unknown_code_is_classified_by_its_status() -> None:
    assert classify(Failure("x", origin="llm", code="odd", http_status=418)) is E.PERMANENT
    assert classify(Failure("x", origin="http", code="odd", http_status=429)) is E.TRANSIENT_APP


@cases(
    ("number", "name", "expected"),
    [
        (socket.EAI_NONAME, "EAI_NONAME", E.PERMANENT),
        (socket.EAI_AGAIN, "EAI_AGAIN", E.TRANSIENT_INFRA),
    ],
)
def test_name_resolution_errors_have_their_code(
    number: int, name: str, expected: ErrorClass
) -> None:
    failure = as_failure(socket.gaierror(number, "x"))
    assert (failure.code, classify(failure)) == (name, expected)
    assert as_failure(OSError(errno.EPIPE, "x")).code == "EPIPE"


@cases(
    ("kind", "status"),
    [
        (E.INVALID_OUTPUT, Status.FAILED),
        (E.PERMANENT, Status.FAILED),
        (E.TRANSIENT_APP, Status.RETRYING),
        (E.TRANSIENT_INFRA, Status.RETRYING),
    ],
)
def test_an_error_class_determines_the_next_status(kind: ErrorClass, status: Status) -> None:
    counts = RetryCounts(attempts=0, max_attempts=2, retry_count=0, max_retries=1)
    after = after_failure(kind, RetryPolicy(), counts)
    assert after.status is status


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@cases(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 120 "}, 120),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "1.5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 40}, None),
        ({"retry-after": "\u0667"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Fri, 02 Jan 2026 03:05:05 GMT"}, 60),
        ({"retry-after": "Fri, 02 Jan 2026 03:00:00 GMT"}, 0),
        (
            {
                "retry-after": "Fri, 02 Jan 2026 03:05:05 GMT",
                "date": "Fri, 02 Jan 2026 03:05:00 GMT",
            },
            5,
        ),
        ({"retry-after": "Friday, 02-Jan-26 03:05:05 GMT"}, 60),
        ({"retry-after": "Fri, 99 Jan 2026 03:05:05 GMT"}, None),
    ],
    ids=str,
)
def test_retry_after_is_parsed(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds
