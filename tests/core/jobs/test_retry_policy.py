"""Limits and delays of retries: the budget that a failure uses, and the backoff."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.jobs.job import OnLost, Status
from draftsman.jobs.retries import (
    BUILT_IN,
    MAX_EXPONENT,
    ErrorClass,
    RetryCounts,
    RetryDecision,
    RetryPolicy,
    after_failure,
    app_delay,
    infra_delay,
)
from tests.support.cases import cases

E = ErrorClass
SECONDS = st.floats(1e-6, 1e9)
POLICIES = st.builds(
    RetryPolicy, base_delay=SECONDS, max_delay=SECONDS, multiplier=st.floats(1.0, 10.0)
)
COUNTS = st.integers(-5, 10**9)
UNIT = st.floats(0.0, 1.0)


@given(POLICIES, COUNTS, UNIT)
def test_an_application_delay_stays_within_its_limit(
    policy: RetryPolicy, failures: int, jitter: float
) -> None:
    delay = app_delay(policy, failures, lambda: jitter)
    assert 0 <= delay <= policy.max_delay * jitter * (1 + 1e-9)


@given(POLICIES, st.integers(1, 1000))
def test_delay_grows_with_each_failure_up_to_the_limit(policy: RetryPolicy, failures: int) -> None:
    now, then = (app_delay(policy, n, lambda: 1.0) for n in (failures, failures + 1))
    assert then >= now * (1 - 1e-9)


def test_delay_doubles_by_default_from_two_seconds_to_two_minutes() -> None:
    delays = [app_delay(RetryPolicy(), n, lambda: 1.0) for n in range(1, 9)]
    assert delays == pytest.approx([2, 4, 8, 16, 32, 64, 120, 120])


def test_application_delay_has_full_jitter() -> None:
    delays = [app_delay(RetryPolicy(), 5) for _ in range(200)]
    assert min(delays) < 8 < 24 < max(delays) <= 32


@given(COUNTS)
def test_an_infrastructure_delay_is_an_exponential_that_stops_growing(failures: int) -> None:
    assert math.e <= infra_delay(failures) <= math.exp(MAX_EXPONENT)


def test_infrastructure_delay_is_e_to_the_number_of_failures() -> None:
    assert [infra_delay(n) for n in (1, 2, 10, 11)] == pytest.approx(
        [2.718, 7.389, 22026.466, 22026.466], abs=0.001
    )


BEFORE = RetryCounts(attempts=0, max_attempts=2, retry_count=0, max_retries=2)


def _after(
    error: ErrorClass,
    counts: RetryCounts,
    *,
    unexpected: bool = False,
    retry_after: float | None = None,
    absent_in: int | None = None,
) -> RetryDecision:
    return after_failure(
        error,
        RetryPolicy(max_delay=120),
        counts,
        unexpected=unexpected,
        retry_after=retry_after,
        absent_in=absent_in,
        jitter=lambda: 1.0,
    )


@cases(
    ("error", "fields", "expected"),
    [
        (E.TRANSIENT_APP, {}, RetryDecision(Status.RETRYING, 2.0, spend_retry=True)),
        (
            E.TRANSIENT_APP,
            {"retry_count": 1},
            RetryDecision(Status.RETRYING, 4.0, spend_retry=True),
        ),
        (E.TRANSIENT_APP, {"retry_count": 2}, RetryDecision(Status.DEAD_LETTER)),
        (E.TRANSIENT_APP, {"attempts": 2}, RetryDecision(Status.RETRYING, 2.0, spend_retry=True)),
        (E.TRANSIENT_INFRA, {}, RetryDecision(Status.RETRYING, math.e, spend_attempt=True)),
        (
            E.TRANSIENT_INFRA,
            {"attempts": 1},
            RetryDecision(Status.DEAD_LETTER, spend_attempt=True),
        ),
        (
            E.TRANSIENT_INFRA,
            {"unexpected": True},
            RetryDecision(Status.RETRYING, math.e, spend_attempt=True, spend_retry=True),
        ),
        (
            E.TRANSIENT_INFRA,
            {"unexpected": True, "max_retries": 0},
            RetryDecision(Status.DEAD_LETTER, spend_attempt=True),
        ),
        (
            E.TRANSIENT_INFRA,
            {"retry_count": 2},
            RetryDecision(Status.RETRYING, math.e, spend_attempt=True),
        ),
        (E.PERMANENT, {}, RetryDecision(Status.FAILED)),
        (E.INVALID_OUTPUT, {}, RetryDecision(Status.FAILED)),
        (E.VALID, {}, RetryDecision(Status.FAILED)),
        (E.TRANSIENT_APP, {"max_retries": 0}, RetryDecision(Status.DEAD_LETTER)),
        (
            E.TRANSIENT_APP,
            {"retry_after": 50},
            RetryDecision(Status.RETRYING, 50, spend_retry=True),
        ),
        (
            E.TRANSIENT_APP,
            {"retry_after": 1},
            RetryDecision(Status.RETRYING, 2.0, spend_retry=True),
        ),
        (
            E.TRANSIENT_APP,
            {"retry_after": -9},
            RetryDecision(Status.RETRYING, 2.0, spend_retry=True),
        ),
        (E.PERMANENT, {"retry_after": 50}, RetryDecision(Status.FAILED)),
        (E.TRANSIENT_APP, {"absent_in": 1, "max_retries": 0}, RetryDecision(Status.RETRYING, 5.0)),
        (E.PERMANENT, {"absent_in": 3}, RetryDecision(Status.RETRYING, 20.0)),
        (E.TRANSIENT_APP, {"absent_in": 10_000}, RetryDecision(Status.RETRYING, 300.0)),
    ],
    ids=str,
)
def test_failures_lead_to_the_expected_status_and_counts(
    error: ErrorClass, fields: dict[str, Any], expected: RetryDecision
) -> None:
    counts = {name: fields[name] for name in fields if name in BEFORE.__slots__}
    options = {name: fields[name] for name in fields if name not in counts}
    assert _after(error, replace(BEFORE, **counts), **options) == expected


@given(st.sampled_from(E), st.floats(), st.integers(0, 100), st.integers(0, 100))
def test_a_delay_is_finite_and_at_most_a_day(
    error: ErrorClass, retry_after: float, attempts: int, retry_count: int
) -> None:
    counts = replace(BEFORE, attempts=attempts, retry_count=retry_count)
    after = _after(error, counts, retry_after=retry_after)
    if after.status is Status.RETRYING:
        assert after.delay is not None
        assert 0 <= after.delay <= 86_400
        assert after.spend_attempt != after.spend_retry
    else:
        last = error is E.TRANSIENT_INFRA and attempts == 1
        assert after == RetryDecision(after.status, spend_attempt=last)


def test_built_in_types_have_the_documented_limits() -> None:
    assert RetryPolicy() == RetryPolicy(3, 3, 2.0, 120.0, 2.0, 3600.0, OnLost.RETRY)
    table = {
        "run_agent": (3, 5, 5, 300, 3, 3600, OnLost.RESUME, 600, 300, 30, None),
        "http_request": (5, 3, 1, 60, 2, 600, OnLost.RETRY, 600, 120, 30, None),
        "webhook_dispatch": (5, 3, 1, 60, 2, 600, OnLost.RETRY, 600, 120, 30, None),
        "llm_generate": (3, 5, 5, 300, 3, 3600, OnLost.RETRY, 600, 300, 30, 60),
        "execute_tool": (3, 3, 2, 120, 2, 1200, OnLost.RETRY, 600, 120, 10, None),
        "send_notification": (10, 5, 2, 60, 2, 300, OnLost.RETRY, 600, 15, 10, None),
        "ask_people": (10, 5, 2, 60, 2, 300, OnLost.RETRY, 600, 15, 10, None),
        "merge_pull_request": (5, 5, 5, 300, 3, 600, OnLost.RETRY, 600, 120, 30, None),
    }
    assert {name: astuple(limits) for name, limits in BUILT_IN.items()} == table


@given(SECONDS, SECONDS, SECONDS, SECONDS, SECONDS)
def test_every_timeout_fits_its_outer_timeout(
    job: float, step: float, call: float, connect: float, idle: float
) -> None:
    policy = RetryPolicy(
        timeout=job,
        step_timeout=step,
        call_timeout=call,
        connect_timeout=connect,
        idle_timeout=idle,
    )
    cut = policy.nested()
    assert cut.idle_timeout is not None
    assert cut.timeout == job
    assert cut.step_timeout == min(job, step)
    assert cut.call_timeout == min(job, step, call)
    assert cut.connect_timeout == min(job, step, call, connect)
    assert cut.idle_timeout == min(job, step, call, idle)
    assert cut.nested() == cut


HUGE = st.integers(10**9, 10**400)


@given(POLICIES, HUGE, UNIT)
def test_no_count_overflows(policy: RetryPolicy, failures: int, jitter: float) -> None:
    assert 0 <= app_delay(policy, failures, lambda: jitter) <= policy.max_delay
    assert infra_delay(failures) == math.exp(MAX_EXPONENT)


@given(POLICIES, st.integers(1, 10**6), UNIT, UNIT)
def test_jitter_draws_evenly_from_the_whole_of_a_delay(
    policy: RetryPolicy, failures: int, draw: float, other: float
) -> None:
    """Full jitter: the delay is the drawn fraction of the limit, down to zero."""
    ceiling = app_delay(policy, failures, lambda: 1.0)
    assert app_delay(policy, failures, lambda: draw) == pytest.approx(ceiling * draw)
    if draw <= other:
        assert app_delay(policy, failures, lambda: draw) <= app_delay(
            policy, failures, lambda: other
        )


@given(
    st.sampled_from([E.TRANSIENT_APP, E.TRANSIENT_INFRA]),
    st.floats(0.001, 1e12),
    st.integers(0, 99),
    UNIT,
)
def test_retry_after_is_a_minimum_of_at_most_a_day(
    error: ErrorClass, retry_after: float, spent: int, jitter: float
) -> None:
    after = after_failure(
        error,
        RetryPolicy(),
        RetryCounts(attempts=spent, max_attempts=100, retry_count=spent, max_retries=100),
        retry_after=retry_after,
        jitter=lambda: jitter,
    )
    assert after.delay is not None
    assert after.delay >= min(retry_after, 86_400)
    own = infra_delay(spent + 1) if error is E.TRANSIENT_INFRA else 120 * jitter
    assert after.delay <= max(min(retry_after, 86_400), own)


@given(st.integers(0, 100), st.integers(1, 100))
def test_a_job_is_a_dead_letter_after_its_retries(most: int, others: int) -> None:
    """The attempts do not matter."""
    before = replace(BEFORE, max_retries=most, max_attempts=others)
    for spent in range(most):
        after = _after(E.TRANSIENT_APP, replace(before, retry_count=spent))
        assert (after.spend_retry, after.spend_attempt) == (True, False)
    last = _after(E.TRANSIENT_APP, replace(before, retry_count=most))
    assert last == RetryDecision(Status.DEAD_LETTER)


@given(st.integers(1, 100), st.integers(0, 100))
def test_the_last_attempt_of_a_job_is_final(most: int, others: int) -> None:
    """The retries do not matter."""
    before = replace(BEFORE, max_attempts=most, max_retries=others)
    for spent in range(most - 1):
        after = _after(E.TRANSIENT_INFRA, replace(before, attempts=spent))
        assert (after.spend_retry, after.spend_attempt) == (False, True)
    last = _after(E.TRANSIENT_INFRA, replace(before, attempts=most - 1))
    assert last == RetryDecision(Status.DEAD_LETTER, spend_attempt=True)
