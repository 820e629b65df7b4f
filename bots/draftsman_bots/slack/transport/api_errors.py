"""Classification of Slack's error codes for deliveries.

A write without a valid response may have arrived: it is Unconfirmed, and is searched for before
it is retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

from draftsman.deliveries.delivery import COPY_GONE, TARGET_GONE, Unconfirmed
from draftsman.errors import Failure

ACCOUNT_PAUSE: Final = 300.0
"""Seconds between attempts while the account is unusable."""
NO_RETRY_AFTER: Final = 30.0
"""Seconds to wait after a 429 without a valid Retry-After."""

ACCOUNT: Final = frozenset(
    {
        *("token_revoked", "token_expired", "account_inactive", "invalid_auth", "not_authed"),
        *("missing_scope", "no_permission", "org_login_required", "team_access_not_granted"),
        *("access_denied", "two_factor_setup_required", "not_allowed_token_type"),
    }
)
"""The account cannot post until an administrator fixes it: deliveries wait."""
TARGET: Final = frozenset(
    {
        *("channel_not_found", "is_archived", "not_in_channel", "thread_locked"),
        *("ekm_access_denied", "user_not_found", "user_disabled", "cannot_dm_bot"),
        *("user_not_visible", "messages_tab_disabled", "is_inactive", "mpim_not_allowed"),
        *("cannot_message_channel_member", "posting_to_general_channel_denied"),
        "team_not_found",
    }
)
"""The target accepts no messages any more; so do codes that begin with `restricted_action`."""
COPY: Final = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
THREAD: Final = frozenset(
    {"thread_not_found", "message_not_found", "invalid_thread_ts", "cannot_reply_to_message"}
)
"""The thread or its first message is gone."""
CONTENT: Final = frozenset(
    {
        *("invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"),
        *("no_text", "metadata_too_large", "metadata_must_be_sent_from_app"),
        *("invalid_metadata_format", "invalid_metadata_schema", "markdown_text_conflict"),
    }
)
"""The content was rejected: it is sent again as plain text, with the full text as a file."""
UNCONFIRMED: Final = frozenset(
    {
        *("internal_error", "fatal_error", "service_unavailable", "request_timeout"),
        *("team_added_to_org", "accesslimited", "rollup_error"),
    }
)
"""The result is unknown to Slack as well."""
RATE_LIMITS: Final = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})


class SlackRefusal(Failure):
    """An error response of Slack.

    `error` is Slack's code; `code` may be ours, which decides how the delivery continues.
    """

    def __init__(self, message: str, *, error: str = "", **facts: Any) -> None:
        super().__init__(message, origin="slack", **facts)
        self.error = error


def translate(error: BaseException, method: str, *, writes: bool = True) -> Failure | Unconfirmed:
    """Classify an exception of slack_sdk or aiohttp; a read is never unconfirmed."""
    if isinstance(error, SlackApiError):
        result = _refusal(error.response, method)
    elif isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        reason = getattr(error, "strerror", None) or type(error).__name__
        return Failure(f"connect: {method}: {reason}", origin="slack", code="connect")
    elif isinstance(error, TimeoutError | asyncio.TimeoutError):
        result = Unconfirmed(f"{method}: timed out")
    elif isinstance(error, aiohttp.ClientError | OSError | SlackClientError):
        result = Unconfirmed(f"{method}: {type(error).__name__}")
    else:
        result = Unconfirmed(f"{method}: invalid reply ({type(error).__name__})")
    if isinstance(result, Unconfirmed) and not writes:
        return Failure(result.reason, origin="slack", code="no_reply")
    return result


def _refusal(response: Any, method: str) -> Failure | Unconfirmed:
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    headers = getattr(response, "headers", None) or {}
    data = getattr(response, "data", None)
    code = data.get("error") if isinstance(data, Mapping) else None
    code = code if isinstance(code, str) and code else None
    if status == 429 or code in RATE_LIMITS:
        return _failure(code or "ratelimited", method, 429, retry_after=_wait(headers))
    if code in UNCONFIRMED or (status or 0) >= 500:
        return Unconfirmed(f"{method}: {code or f'HTTP {status}'}")
    if code is None and status == 200:
        return Unconfirmed(f"{method}: HTTP 200, but no JSON")
    if code is None:
        return Failure(f"HTTP {status}: {method}", origin="slack", http_status=status)
    return _known_error(code, method, status, data)


def _known_error(code: str, method: str, status: int | None, data: Any) -> Failure:
    if code in ACCOUNT:
        needed = data.get("needed") if code == "missing_scope" else None
        details = f", needs {needed}" if isinstance(needed, str) else ""
        return _failure(
            f"{code}{details}",
            method,
            status,
            retry_after=ACCOUNT_PAUSE,
            declared="TRANSIENT_INFRA",
        )
    if method == "chat.update" and code in COPY:
        return _failure(code, method, status, kind=COPY_GONE, declared="PERMANENT")
    if code in TARGET or code.startswith("restricted_action"):
        return _failure(code, method, status, kind=TARGET_GONE, declared="PERMANENT")
    classified_by_status = status is not None and status != 200
    return _failure(code, method, status, declared=None if classified_by_status else "PERMANENT")


def _failure(
    code: str,
    method: str,
    status: int | None,
    *,
    kind: str | None = None,
    retry_after: float | None = None,
    declared: str | None = None,
) -> Failure:
    error = code.partition(",")[0]
    return SlackRefusal(
        f"{code} ({method})",
        error=error,
        code=kind or error,
        http_status=status,
        retry_after=retry_after,
        declared=declared,
    )


def _wait(headers: Mapping[str, str]) -> float:
    """Return the seconds of Retry-After."""
    for name, value in headers.items():
        if name.lower() == "retry-after":
            try:
                return max(0.0, float(value))
            except ValueError:
                break
    return NO_RETRY_AFTER
