"""Whose limits count: the type's, the agent's or the tool's, and then the job's own."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.domain.limits import Limits
from draftsman.domain.retry import BUILT_IN, RetryPolicy
from draftsman.errors import UsageError
from draftsman.services.intake import invocation

LIMITS = Limits(
    {**BUILT_IN, "short": RetryPolicy(timeout=50)},
    agents={"slow": {"call_timeout": 500.0, "max_retries": 9}},
    tools={"hammer": {"call_timeout": 30.0, "max_attempts": 1}},
)


def test_each_layer_wins_over_the_one_below() -> None:
    assert LIMITS.of("unheard of") == RetryPolicy()
    assert LIMITS.of("run_agent").call_timeout == 300
    slow = LIMITS.of("run_agent", "slow")
    assert (slow.call_timeout, slow.max_retries, slow.max_attempts) == (500, 9, 3)
    own = LIMITS.of("run_agent", "slow", {}, {"call_timeout": 7, "max_retries": 0})
    assert (own.call_timeout, own.max_retries) == (7, 0)
    tool = LIMITS.of("execute_tool", None, {"tool": "hammer"}, {"multiplier": 3})
    assert (tool.call_timeout, tool.max_attempts, tool.multiplier) == (30, 1, 3)
    assert LIMITS.of("http_request", None, {"tool": "hammer"}).call_timeout == 120


def test_what_is_inside_never_outlasts_what_is_around_it() -> None:
    assert LIMITS.of("short") == RetryPolicy(timeout=50).nested()
    assert LIMITS.of("short").call_timeout == 50
    own = LIMITS.of("http_request", None, {}, {"step_timeout": 5, "call_timeout": 99})
    assert (own.step_timeout, own.call_timeout, own.connect_timeout) == (5, 5, 5)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"call_timeout": 0}, "call_timeout 0: Input should be greater than 0"),
        ({"call_timeout": "5"}, "call_timeout '5': Input should be a valid number"),
        ({"timeout": 1e9}, "timeout 1000000000.0: Input should be less than or equal to 604800"),
        ({"max_retries": 101}, "max_retries 101: Input should be less than or equal to 100"),
        ({"max_retries": 1.5}, "max_retries 1.5: Input should be a valid integer"),
    ],
)
def test_an_override_that_cannot_be_meant_is_told(overrides: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        invocation(overrides=overrides)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_other_overrides_are_no_affair_of_the_limits() -> None:
    invocation(overrides={"answers": {"pick": "red"}, "base_branch": "main"})


def test_an_older_row_with_what_is_not_allowed_counts_for_nothing() -> None:
    assert LIMITS.of("short", None, {}, {"timeout": "never"}) == LIMITS.of("short")
