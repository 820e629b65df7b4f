"""Retries: classes of errors, limits and delays, and the decision after a failure. Pure."""

from __future__ import annotations

import errno
import math
import random
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from draftsman.errors import Failure, UsageError
from draftsman.jobs.job import OnLost, Status


class ErrorClass(StrEnum):
    """Class of an error, which decides on retries."""

    VALID = "VALID"
    TRANSIENT_INFRA = "TRANSIENT_INFRA"
    TRANSIENT_APP = "TRANSIENT_APP"
    PERMANENT = "PERMANENT"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    DENIED = "DENIED"
    """A person denied an approval: the class of a job, never of an error."""


_TEXTS: Final = {
    ErrorClass.VALID: "no error",
    ErrorClass.TRANSIENT_INFRA: "unexpected error",
    ErrorClass.TRANSIENT_APP: "temporary error",
    ErrorClass.PERMANENT: "permanent error",
    ErrorClass.INVALID_OUTPUT: "invalid output",
    ErrorClass.DENIED: "denied",
}


def error_class_text(name: str) -> str:
    """Return the words for a class of errors, on every surface."""
    return _TEXTS[ErrorClass(name)]


ENUMS: Final = {"error_class": ErrorClass}
"""Enums that are types of the database."""

E = ErrorClass
_DECLARED: Final = frozenset(E) - {E.VALID, E.DENIED}
"""Classes that an origin may declare."""
_HTTP: Final = {
    408: E.TRANSIENT_APP,
    429: E.TRANSIENT_APP,
    503: E.TRANSIENT_APP,
    529: E.TRANSIENT_APP,
}
_ERRNO_PERMANENT: Final = frozenset(
    {
        "EACCES",
        "EPERM",
        "ENOENT",
        "ENOTDIR",
        "EISDIR",
        "ENAMETOOLONG",
        "ENOEXEC",
        "EAI_NONAME",
        "EAI_NODATA",
        "EAI_FAIL",
    }
)
_CODES: Final = {
    ("handler", "timeout"): E.PERMANENT,
    ("handler", "unknown_type"): E.PERMANENT,
    ("handler", "programming_error"): E.PERMANENT,
    ("handler", "no_secret"): E.TRANSIENT_APP,  # another worker, or this one after its restart
    ("handler", "call_timeout"): E.TRANSIENT_APP,
    ("handler", "step_timeout"): E.TRANSIENT_APP,
    ("handler", "connect_timeout"): E.TRANSIENT_INFRA,
    ("handler", "idle_timeout"): E.TRANSIENT_APP,
    ("agent", "command_not_found"): E.PERMANENT,
    ("agent", "no_such_agent"): E.TRANSIENT_APP,  # another worker, or this one after its restart
    ("agent", "protocol"): E.INVALID_OUTPUT,
    ("agent", "artifact"): E.PERMANENT,
    ("agent", "home_files"): E.PERMANENT,
    ("git", "not_a_repository"): E.PERMANENT,
    ("git", "no_such_ref"): E.PERMANENT,
    ("git", "no_commits"): E.PERMANENT,
    ("git", "no_common_commit"): E.PERMANENT,
    ("git", "branch_checked_out"): E.PERMANENT,
    ("git", "branch_moved"): E.PERMANENT,
    ("git", "git_missing"): E.PERMANENT,
    ("git", "too_large"): E.PERMANENT,
    ("git", "permission"): E.PERMANENT,
    ("git", "authentication"): E.PERMANENT,
    ("git", "not_found"): E.PERMANENT,
    ("git", "push_refused"): E.PERMANENT,
    ("git", "workspace_gone"): E.PERMANENT,
    ("git", "tree"): E.PERMANENT,
    ("git", "object_format"): E.PERMANENT,
    ("git", "signing"): E.PERMANENT,
    ("git", "branch_name"): E.PERMANENT,
    ("git", "address_refused"): E.PERMANENT,
    ("git", "redirected"): E.PERMANENT,
    ("git", "url"): E.PERMANENT,
    # Errors of the connection; timeouts and errno names are shared with handlers.
    ("http", "address_refused"): E.PERMANENT,
    ("http", "url"): E.PERMANENT,
    ("http", "too_many_redirects"): E.PERMANENT,
    ("http", "tls"): E.PERMANENT,
    ("http", "tls_certificate"): E.PERMANENT,
    ("http", "header_too_large"): E.PERMANENT,
    ("http", "body_too_large"): E.PERMANENT,
    ("http", "decompression_bomb"): E.PERMANENT,
    ("http", "request"): E.PERMANENT,
    ("http", "content_encoding"): E.INVALID_OUTPUT,
    ("http", "protocol"): E.TRANSIENT_INFRA,
    ("http", "disconnected"): E.TRANSIENT_INFRA,
    # Error codes in responses of OpenAI-compatible and Anthropic servers.
    **{
        ("llm", code): E.PERMANENT
        for code in (
            "invalid_request_error",
            "authentication_error",
            "permission_error",
            "not_found_error",
            "request_too_large",
            "billing_error",
            "insufficient_quota",
            "context_length_exceeded",
            "invalid_api_key",
            "model_not_found",
            "content_filter",
            "content_policy_violation",
            "string_above_max_length",
            "unsupported_parameter",
            "unsupported_value",
            "billing_hard_limit_reached",
            "account_deactivated",
        )
    },
    **{
        ("llm", code): E.TRANSIENT_APP
        for code in (
            "rate_limit_error",
            "rate_limit_exceeded",
            "overloaded_error",
            "timeout_error",
            "slow_down",
            "server_overloaded",
            "engine_overloaded",
        )
    },
    **{
        ("llm", code): E.TRANSIENT_INFRA
        for code in ("api_error", "server_error", "internal_server_error", "stream_ended")
    },
    ("tool", "command_not_found"): E.PERMANENT,
    ("tool", "no_such_tool"): E.TRANSIENT_APP,  # as with an agent
    ("llm", "no_such_llm"): E.TRANSIENT_APP,
    ("webhook", "no_such_webhook"): E.TRANSIENT_APP,
    ("http", "no_such_credential"): E.TRANSIENT_APP,
    ("tool", "output_too_large"): E.INVALID_OUTPUT,
}
_CODE_ORIGINS: Final = {"http": "handler", "llm": "handler", "tool": "handler"}
"""Origins that share the timeout codes of another origin."""
_GAI: Final = {getattr(socket, name): name for name in dir(socket) if name.startswith("EAI_")}


def classify(failure: Failure) -> ErrorClass:
    """Return the class by the declared class, the code, the HTTP status, or the default.

    An unknown error is TRANSIENT_INFRA, so it is retried while the budget lasts.
    """
    if failure.declared in _DECLARED:
        return E(failure.declared)
    if failure.code is not None:
        if (error_class := known(failure.origin, failure.code)) is not None:
            return error_class
        if failure.origin == "os":
            return E.TRANSIENT_INFRA
    if failure.http_status is not None:
        return _http(failure.http_status)
    return E.TRANSIENT_INFRA


def is_unexpected(failure: Failure) -> bool:
    """Return whether nothing tells the class of a handler's failure: any exception that it raised.

    The cause may be the infrastructure or the handler itself, so it counts as both.
    """
    if failure.origin != "handler" or failure.declared in _DECLARED:
        return False
    if failure.code is not None and known(failure.origin, failure.code) is not None:
        return False
    return failure.http_status is None


def known(origin: str, code: str) -> ErrorClass | None:
    """Return the class of a code in the table, else None."""
    for table_origin in (origin, _CODE_ORIGINS.get(origin, origin)):
        if (error_class := _CODES.get((table_origin, code))) is not None:
            return error_class
    network = origin in {"os", "http"}
    return E.PERMANENT if network and code in _ERRNO_PERMANENT else None


def as_failure(error: BaseException) -> Failure:
    """Translate an exception of a handler to a Failure."""
    from pydantic import ValidationError

    from draftsman import field_errors

    if isinstance(error, Failure):
        return error
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, ValidationError):
        return Failure(f"ValidationError: {field_errors.error_line(error)}")
    if isinstance(error, TimeoutError):
        return Failure(text, origin="handler", code="call_timeout")
    if isinstance(error, OSError) and error.errno is not None:
        return Failure(text, origin="os", code=errno_name(error))
    if isinstance(error, UsageError):
        return Failure(str(error), declared=E.PERMANENT)
    return Failure(text)


def errno_name(error: OSError) -> str | None:
    """Return the name of the error number: `ECONNRESET`, or `EAI_AGAIN` of name resolution."""
    if error.errno is None:
        return None
    return (_GAI if isinstance(error, socket.gaierror) else errno.errorcode).get(error.errno)


def _http(status: int) -> ErrorClass:
    if 200 <= status < 300:
        return E.VALID
    if status in _HTTP:
        return _HTTP[status]
    return E.TRANSIENT_INFRA if status >= 500 else E.PERMANENT


# Limits, delays and timeouts per job type, and the decision after a failure.


STOPS_GROWING: Final = 700
"""Maximum number of failures, and exponent, of a delay: math.exp overflows at 710."""
MAX_EXPONENT: Final = 10
"""Maximum exponent of the infrastructure delay: exp(10) s is about 6 h."""
LONGEST_WAIT: Final = 86_400.0
"""Maximum `Retry-After`, in seconds."""
ABSENCE_DELAY: Final = 5.0
"""Seconds until the first retry of a run whose worker lacked something that its job names."""
ABSENCE_MAX_DELAY: Final = 300.0
"""Maximum seconds between two such retries."""
CHAIN_LIMIT: Final = 100
"""Maximum number of successive retry jobs of a request."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of a job type. Delays and timeouts are in seconds."""

    max_attempts: int = 3
    """Runs that may be lost, or fail by the infrastructure or an unexpected exception."""
    max_retries: int = 3
    """Retries after errors of the work itself, unexpected exceptions included."""
    base_delay: float = 2.0
    max_delay: float = 120.0
    multiplier: float = 2.0
    timeout: float = 3600.0
    """Running time of a job, for all of its runs."""
    on_lost: OnLost = OnLost.RETRY
    step_timeout: float = 600.0
    """Of a `ctx.step`."""
    call_timeout: float = 120.0
    """Of an outbound call, from its start to the last byte."""
    connect_timeout: float = 30.0
    """Of name resolution, connection and TLS together; of the start of a tool."""
    idle_timeout: float | None = None
    """Between two chunks of a stream; None: the call's timeout."""

    def nested(self) -> RetryPolicy:
        """Return the policy with each timeout capped by the enclosing timeout.

        job > step > call > connect, and idle within the call.
        """
        step = min(self.step_timeout, self.timeout)
        call = min(self.call_timeout, step)
        idle = None if self.idle_timeout is None else min(self.idle_timeout, call)
        connect = min(self.connect_timeout, call)
        return replace(
            self, step_timeout=step, call_timeout=call, connect_timeout=connect, idle_timeout=idle
        )


BUILT_IN: Final[dict[str, RetryPolicy]] = {
    "run_agent": RetryPolicy(
        max_attempts=3,
        max_retries=5,
        base_delay=5,
        max_delay=300,
        multiplier=3,
        timeout=3600,
        on_lost=OnLost.RESUME,
        call_timeout=300,
        connect_timeout=30,
    ),
    "http_request": RetryPolicy(
        max_attempts=5,
        max_retries=3,
        base_delay=1,
        max_delay=60,
        multiplier=2,
        timeout=600,
        call_timeout=120,
        connect_timeout=30,
    ),
    "webhook_dispatch": RetryPolicy(
        max_attempts=5,
        max_retries=3,
        base_delay=1,
        max_delay=60,
        multiplier=2,
        timeout=600,
        call_timeout=120,
        connect_timeout=30,
    ),
    "llm_generate": RetryPolicy(
        max_attempts=3,
        max_retries=5,
        base_delay=5,
        max_delay=300,
        multiplier=3,
        timeout=3600,
        call_timeout=300,
        connect_timeout=30,
        idle_timeout=60,
    ),
    "execute_tool": RetryPolicy(
        max_attempts=3,
        max_retries=3,
        base_delay=2,
        max_delay=120,
        multiplier=2,
        timeout=1200,
        call_timeout=120,
        connect_timeout=10,
    ),
    "send_notification": RetryPolicy(
        max_attempts=10,
        max_retries=5,
        base_delay=2,
        max_delay=60,
        multiplier=2,
        timeout=300,
        call_timeout=15,
        connect_timeout=10,
    ),
    "ask_people": RetryPolicy(
        max_attempts=10,
        max_retries=5,
        base_delay=2,
        max_delay=60,
        multiplier=2,
        timeout=300,
        call_timeout=15,
        connect_timeout=10,
    ),
    "merge_pull_request": RetryPolicy(
        max_attempts=5,
        max_retries=5,
        base_delay=5,
        max_delay=300,
        multiplier=3,
        timeout=600,
        call_timeout=120,
        connect_timeout=30,
    ),
}
"""Policies of the built-in types; other types have the defaults of RetryPolicy."""


class RetryBudget(Protocol):
    """The attempts and retries that a job has spent, and may spend."""

    @property
    def attempts(self) -> int:
        """Runs that were lost, or failed by the infrastructure."""

    @property
    def max_attempts(self) -> int:
        """The most of them."""

    @property
    def retry_count(self) -> int:
        """Retries after errors of the work itself."""

    @property
    def max_retries(self) -> int:
        """The most of them."""


@dataclass(frozen=True, slots=True)
class RetryCounts:
    """The budget alone, where there is no job."""

    attempts: int
    max_attempts: int
    retry_count: int
    max_retries: int


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """The next status of a job after a failed run; `delay` is in seconds."""

    status: Status
    delay: float | None = None
    spend_attempt: bool = False
    spend_retry: bool = False


def next_try(after: RetryDecision, counts: RetryCounts) -> dict[str, int]:
    """Return the number of the retry or attempt that follows, and the most; empty without one.

    The `counts` exclude the failure.
    """
    if after.status is not Status.RETRYING:
        return {}
    spent = replace(
        counts,
        attempts=counts.attempts + after.spend_attempt,
        retry_count=counts.retry_count + after.spend_retry,
    )
    return _next_numbers(spent, attempt=after.spend_attempt, retry=after.spend_retry)


def _next_numbers(spent: RetryBudget, *, attempt: bool, retry: bool) -> dict[str, int]:
    numbers: dict[str, int] = {}
    if retry:
        numbers |= {"retry": spent.retry_count, "max_retries": spent.max_retries}
    if attempt:
        numbers |= {"attempt": spent.attempts + 1, "max_attempts": spent.max_attempts}
    return numbers


def next_try_text(numbers: Mapping[str, object]) -> str:
    """Return `retry 1 of 5`, `attempt 2 of 3`, or both, of the numbers of `next_try`."""
    tries = [
        f"{what} {numbers[what]} of {numbers[most]}"
        for what, most in (("attempt", "max_attempts"), ("retry", "max_retries"))
        if what in numbers and most in numbers
    ]
    return ", ".join(tries) or "it is repeated"


def next_try_of(error: str | None, job: RetryBudget) -> str:
    """Return the retry or attempt that a job waits for after the `error` class of its last run."""
    retry = error == ErrorClass.TRANSIENT_APP
    return next_try_text(_next_numbers(job, attempt=not retry, retry=retry))


def infra_delay(failures: int) -> float:
    """Return the delay in seconds after this number of infrastructure failures."""
    return math.exp(min(MAX_EXPONENT, max(1, failures)))


def app_delay(
    policy: RetryPolicy, failures: int, jitter: Callable[[], float] = random.random
) -> float:
    """Return the delay in seconds: full jitter below a growing, capped limit.

    The exponent is capped first, so that no count overflows.
    """
    growth = math.log(policy.multiplier) if policy.multiplier > 1 else 0.0
    exponent = min(max(0, min(failures, STOPS_GROWING) - 1) * growth, STOPS_GROWING)
    return min(policy.max_delay, policy.base_delay * math.exp(exponent)) * jitter()


def absence_delay(run: int) -> float:
    """Return the seconds until another worker may try a run whose worker lacked something."""
    return min(ABSENCE_MAX_DELAY, ABSENCE_DELAY * 2.0 ** min(run - 1, MAX_EXPONENT))


def after_failure(
    error: ErrorClass,
    policy: RetryPolicy,
    counts: RetryCounts,
    *,
    unexpected: bool = False,
    retry_after: float | None = None,
    absent_in: int | None = None,
    jitter: Callable[[], float] = random.random,
) -> RetryDecision:
    """Return the decision after a failure; the `counts` exclude it.

    Of infrastructure failures, the one that uses the last attempt is final. After an application
    failure the job is retried while it has retries. An `unexpected` exception counts as both.
    `retry_after` is a minimum delay, of at most a day. `absent_in` is the number of a run whose
    worker lacked something that another worker may have, so that no retry is spent.
    """
    if absent_in is not None:
        return RetryDecision(Status.RETRYING, absence_delay(absent_in))
    min_delay = min(retry_after, LONGEST_WAIT) if retry_after and retry_after > 0 else 0.0
    no_retry_left = counts.retry_count >= counts.max_retries
    if error is ErrorClass.TRANSIENT_APP:
        if no_retry_left:
            return RetryDecision(Status.DEAD_LETTER)
        delay = max(app_delay(policy, counts.retry_count + 1, jitter), min_delay)
        return RetryDecision(Status.RETRYING, delay, spend_retry=True)
    if error is ErrorClass.TRANSIENT_INFRA:
        if counts.attempts + 1 >= counts.max_attempts or (unexpected and no_retry_left):
            spends = counts.attempts < counts.max_attempts
            return RetryDecision(Status.DEAD_LETTER, spend_attempt=spends)
        delay = max(infra_delay(counts.attempts + 1), min_delay)
        return RetryDecision(Status.RETRYING, delay, spend_attempt=True, spend_retry=unexpected)
    return RetryDecision(Status.FAILED)
