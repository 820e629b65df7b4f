"""Classification of errors by code and status, never by message text. Pure."""

from __future__ import annotations

import errno
import socket
from enum import StrEnum
from typing import Final

from draftsman.errors import Failure, UsageError


class ErrorClass(StrEnum):
    """Class of an error, which decides on retries."""

    VALID = "VALID"
    TRANSIENT_INFRA = "TRANSIENT_INFRA"
    TRANSIENT_APP = "TRANSIENT_APP"
    PERMANENT = "PERMANENT"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    DENIED = "DENIED"
    """A person denied an approval: the class of a job, never of an error."""


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
        *("EACCES", "EPERM", "ENOENT", "ENOTDIR", "EISDIR", "ENAMETOOLONG", "ENOEXEC"),
        *("EAI_NONAME", "EAI_NODATA", "EAI_FAIL"),
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
    ("git", "branch_checked_out"): E.PERMANENT,
    ("git", "branch_moved"): E.PERMANENT,
    ("git", "git_missing"): E.PERMANENT,
    ("git", "too_large"): E.PERMANENT,
    ("git", "permission"): E.PERMANENT,
    ("git", "authentication"): E.PERMANENT,
    ("git", "not_found"): E.PERMANENT,
    ("git", "push_refused"): E.PERMANENT,
    ("git", "workspace_gone"): E.PERMANENT,
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
            *("invalid_request_error", "authentication_error", "permission_error"),
            *("not_found_error", "request_too_large", "billing_error", "insufficient_quota"),
            *("context_length_exceeded", "invalid_api_key", "model_not_found", "content_filter"),
            *("content_policy_violation", "string_above_max_length", "unsupported_parameter"),
            *("unsupported_value", "billing_hard_limit_reached", "account_deactivated"),
        )
    },
    **{
        ("llm", code): E.TRANSIENT_APP
        for code in (
            *("rate_limit_error", "rate_limit_exceeded", "overloaded_error", "timeout_error"),
            *("slow_down", "server_overloaded", "engine_overloaded"),
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
