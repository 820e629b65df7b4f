"""Limits, delays and timeouts per job type, and the decision after a failure. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from draftsman.jobs.error_classes import ErrorClass
from draftsman.jobs.job import OnLost, Status

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


def _policy(
    attempts: int,
    retries: int,
    delays: tuple[float, float, float],
    timeouts: tuple[float, float, float],
    idle: float | None = None,
    on_lost: OnLost = OnLost.RETRY,
) -> RetryPolicy:
    base, maximum, multiplier = delays
    job, call, connect = timeouts
    return RetryPolicy(
        attempts, retries, base, maximum, multiplier, job, on_lost, 600.0, call, connect, idle
    )


BUILT_IN: Final[dict[str, RetryPolicy]] = {
    "run_agent": _policy(3, 5, (5, 300, 3), (3600, 300, 30), on_lost=OnLost.RESUME),
    "http_request": _policy(5, 3, (1, 60, 2), (600, 120, 30)),
    "webhook_dispatch": _policy(5, 3, (1, 60, 2), (600, 120, 30)),
    "llm_generate": _policy(3, 5, (5, 300, 3), (3600, 300, 30), 60),
    "execute_tool": _policy(3, 3, (2, 120, 2), (1200, 120, 10)),
    "send_notification": _policy(10, 5, (2, 60, 2), (300, 15, 10)),
    "ask_people": _policy(10, 5, (2, 60, 2), (300, 15, 10)),
    "merge_pull_request": _policy(5, 5, (5, 300, 3), (600, 120, 30)),
}
"""Policies of the built-in types; other types have the defaults of RetryPolicy."""


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """The next status of a job after a failed run; `delay` is in seconds."""

    status: Status
    delay: float | None = None
    spend_attempt: bool = False
    spend_retry: bool = False


def layer(
    error: str | None,
    *,
    attempts: int,
    max_attempts: int,
    retry_count: int,
    max_retries: int,
    unexpected: bool = False,
) -> str:
    """Return the used budget of the last failure: `retry 1 of 5`, `attempt 2 of 3`, or both."""
    retry = f"retry {retry_count} of {max_retries}"
    if error == ErrorClass.TRANSIENT_APP:
        return retry
    attempt = f"attempt {attempts} of {max_attempts}"
    return f"{attempt}, {retry}" if unexpected else attempt


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
    *,
    attempts: int,
    max_attempts: int,
    retry_count: int,
    max_retries: int,
    unexpected: bool = False,
    retry_after: float | None = None,
    absent_in: int | None = None,
    jitter: Callable[[], float] = random.random,
) -> RetryDecision:
    """Return the decision after a failure; the counts exclude it.

    Of infrastructure failures, the one that uses the last attempt is final. After an application
    failure the job is retried while it has retries. An `unexpected` exception counts as both.
    `retry_after` is a minimum delay, of at most a day. `absent_in` is the number of a run whose
    worker lacked something that another worker may have, so that no retry is spent.
    """
    if absent_in is not None:
        return RetryDecision(Status.RETRYING, absence_delay(absent_in))
    min_delay = min(retry_after, LONGEST_WAIT) if retry_after and retry_after > 0 else 0.0
    if error is ErrorClass.TRANSIENT_APP:
        if retry_count >= max_retries:
            return RetryDecision(Status.DEAD_LETTER)
        delay = max(app_delay(policy, retry_count + 1, jitter), min_delay)
        return RetryDecision(Status.RETRYING, delay, spend_retry=True)
    if error is ErrorClass.TRANSIENT_INFRA:
        if attempts + 1 >= max_attempts or (unexpected and retry_count >= max_retries):
            return RetryDecision(Status.DEAD_LETTER, spend_attempt=attempts < max_attempts)
        delay = max(infra_delay(attempts + 1), min_delay)
        return RetryDecision(Status.RETRYING, delay, spend_attempt=True, spend_retry=unexpected)
    return RetryDecision(Status.FAILED)
