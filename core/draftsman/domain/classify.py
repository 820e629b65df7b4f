"""Which class an error is of: one pure table, codes first, never substrings (seed 002)."""

from __future__ import annotations

import errno
from enum import StrEnum
from typing import Final

from draftsman.errors import Failure, UsageError


class ErrorClass(StrEnum):
    """What an error says about trying again."""

    VALID = "VALID"
    TRANSIENT_INFRA = "TRANSIENT_INFRA"
    TRANSIENT_APP = "TRANSIENT_APP"
    PERMANENT = "PERMANENT"
    INVALID_OUTPUT = "INVALID_OUTPUT"


E = ErrorClass
_HTTP: Final = {
    408: E.TRANSIENT_APP,
    429: E.TRANSIENT_APP,
    503: E.TRANSIENT_APP,
    529: E.TRANSIENT_APP,
}
_ERRNO_PERMANENT: Final = frozenset(
    {"EACCES", "EPERM", "ENOENT", "ENOTDIR", "EISDIR", "ENAMETOOLONG", "EAI_NONAME", "ENOEXEC"}
)
_CODES: Final = {
    ("handler", "timeout"): E.PERMANENT,
    ("handler", "unknown_type"): E.PERMANENT,
    ("handler", "call_timeout"): E.TRANSIENT_APP,
    ("agent", "command_not_found"): E.PERMANENT,
    ("agent", "no_such_agent"): E.TRANSIENT_APP,  # another worker, or this one after its restart
    ("agent", "protocol"): E.INVALID_OUTPUT,
    ("git", "not_a_repository"): E.PERMANENT,
    ("git", "no_such_ref"): E.PERMANENT,
    ("git", "no_commits"): E.PERMANENT,
    ("git", "branch_checked_out"): E.PERMANENT,
    ("git", "branch_moved"): E.PERMANENT,
    ("git", "git_missing"): E.PERMANENT,
    ("git", "too_large"): E.PERMANENT,
    ("git", "permission"): E.PERMANENT,
    ("git", "authentication"): E.PERMANENT,
    ("git", "workspace_gone"): E.PERMANENT,
}


def classify(failure: Failure) -> ErrorClass:
    """Return the class: the origin's own word, its code, the HTTP status, then the fallback.

    An unknown error is TRANSIENT_INFRA: trying again is the safe guess while the budget lasts.
    """
    if failure.declared and failure.declared in E.__members__ and failure.declared != E.VALID:
        return E(failure.declared)
    if failure.code is not None:
        if (known := _CODES.get((failure.origin, failure.code))) is not None:
            return known
        if failure.origin == "os":
            permanent = failure.code in _ERRNO_PERMANENT
            return E.PERMANENT if permanent else E.TRANSIENT_INFRA
    if failure.http_status is not None:
        return _http(failure.http_status)
    return E.TRANSIENT_INFRA


def as_failure(error: BaseException) -> Failure:
    """Translate what a handler raised into a Failure."""
    if isinstance(error, Failure):
        return error
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, TimeoutError):
        return Failure(text, origin="handler", code="call_timeout")
    if isinstance(error, OSError) and error.errno is not None:
        return Failure(text, origin="os", code=errno.errorcode.get(error.errno))
    if isinstance(error, UsageError):
        return Failure(str(error), declared=E.PERMANENT)
    return Failure(text)


def _http(status: int) -> ErrorClass:
    if 200 <= status < 300:
        return E.VALID
    if status in _HTTP:
        return _HTTP[status]
    return E.TRANSIENT_INFRA if status >= 500 else E.PERMANENT
