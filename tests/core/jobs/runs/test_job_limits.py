"""Precedence of limits: of the job, the agent or tool, and the type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.errors import UsageError
from draftsman.jobs.job import OnLost
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.retries import BUILT_IN, RetryPolicy
from draftsman.jobs.runs.job_limits import (
    KNOWN_OVERRIDES,
    JobLimits,
    check_override_names,
    configured_limits,
)
from draftsman.settings import settings_model
from draftsman.settings.agents import AgentSettings
from tests.support.cases import cases

LIMITS = JobLimits(
    {**BUILT_IN, "short": RetryPolicy(timeout=50)},
    agents={"slow": {"call_timeout": 500.0, "max_retries": 9}},
    tools={"hammer": {"call_timeout": 30.0, "max_attempts": 1}},
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "max_attempts": st.integers(0, 100),
        "max_retries": st.integers(0, 100),
        "base_delay": st.floats(0.001, 604_800),
        "max_delay": st.floats(0.001, 604_800),
        "multiplier": st.floats(1, 10),
        "timeout": st.floats(0.001, 604_800),
        "on_lost": st.sampled_from([str(one) for one in OnLost]),
    },
)


def test_each_layer_overrides_the_layer_below() -> None:
    assert LIMITS.of("unheard of") == RetryPolicy()
    assert LIMITS.of("run_agent").call_timeout == 300
    slow = LIMITS.of("run_agent", "slow")
    assert (slow.call_timeout, slow.max_retries, slow.max_attempts) == (500, 9, 3)
    own = LIMITS.of("run_agent", "slow", {}, {"call_timeout": 7, "max_retries": 0})
    assert (own.call_timeout, own.max_retries) == (7, 0)
    tool = LIMITS.of("execute_tool", None, {"tool": "hammer"}, {"multiplier": 3})
    assert (tool.call_timeout, tool.max_attempts, tool.multiplier) == (30, 1, 3)
    assert LIMITS.of("http_request", None, {"tool": "hammer"}).call_timeout == 120


def test_nested_timeouts_are_no_longer_than_their_outer_timeout() -> None:
    assert LIMITS.of("short") == RetryPolicy(timeout=50).nested()
    assert LIMITS.of("short").call_timeout == 50
    own = LIMITS.of("http_request", None, {}, {"step_timeout": 5, "call_timeout": 99})
    assert (own.step_timeout, own.call_timeout, own.connect_timeout) == (5, 5, 5)


@given(CHANGES, CHANGES, CHANGES)
def test_each_layer_changes_only_its_own_limits(
    of_type: dict[str, Any], of_agent: dict[str, Any], own: dict[str, Any]
) -> None:
    limits = JobLimits({"t": RetryPolicy(**of_type)}, {"a": of_agent})
    policy = limits.of("t", "a", {}, own | {"colour": "red"})
    expected = {name: getattr(RetryPolicy(), name) for name in RetryPolicy.__slots__}
    merged = RetryPolicy(**(expected | of_type | of_agent | own)).nested()
    assert policy == merged
    assert limits.of("t", "other") == RetryPolicy(**of_type).nested()
    assert limits.of("other") == RetryPolicy()
    assert isinstance(limits.of("t", None, {}, own).on_lost, str)


def test_the_configuration_is_merged_over_the_built_in_limits() -> None:
    limits = configured_limits(
        settings_model().model_validate(
            {
                "types": {
                    "run_agent": {"max_retries": 9, "on_lost": "fail"},
                    "own": {"timeout": 7},
                },
                "agents": {"slow": {"command": ["x"], "timeout": 9000, "max_attempts": 1}},
            }
        )
    )
    agent = BUILT_IN["run_agent"]
    assert limits.of("run_agent") == replace(agent, max_retries=9, on_lost=OnLost.FAIL)
    slow = limits.of("run_agent", "slow")
    assert (slow.max_attempts, slow.max_retries, slow.timeout) == (1, 9, 9000)
    assert limits.of("own").timeout == 7
    assert limits.of("run_agent", "tidy") == limits.of("run_agent")


@cases(
    ("name", "value"),
    [
        ("max_retries", "3"),
        ("max_retries", 101),
        ("max_attempts", -1),
        ("max_attempts", 1.5),
        ("base_delay", 0),
        ("max_delay", 604_801),
        ("multiplier", 0.5),
        ("timeout", "10m"),
        ("timeout", True),
        ("call_timeout", 0),
        ("step_timeout", "5"),
        ("connect_timeout", 1e9),
        ("idle_timeout", -1),
        ("on_lost", "explode"),
    ],
)
def test_an_invalid_limit_is_refused_in_one_line_and_ignored_in_an_older_row(
    name: str, value: object
) -> None:
    with pytest.raises(UsageError) as refused:
        invocation(overrides={name: value, "colour": "red"})
    text = str(refused.value)
    assert f"overrides: {name} {value!r}: must be" in text
    assert "\n" not in text
    assert JobLimits({}).of("t", None, {}, {name: value}) == RetryPolicy()


def test_other_overrides_are_left_to_a_handler_of_its_own() -> None:
    overrides = {"colour": "red", "answers": {"timeout": "no"}, "max_iterations": 3, "delay": 1}
    assert invocation(type="t", overrides=overrides).overrides == overrides
    check_override_names("t", overrides)
    check_override_names("run_agent", overrides, {"run_agent"})
    assert JobLimits({}).of("t", None, {}, overrides) == RetryPolicy()


@cases("type", ["run_agent", "t"])
def test_a_misspelled_limit_is_refused_for_every_type(type: str) -> None:
    with pytest.raises(UsageError) as refused:
        invocation(type=type, overrides={"timeout": 5, "cal_timeout": 1})
    text = "overrides: unknown override cal_timeout; did you mean call_timeout?"
    assert str(refused.value) == text


def test_a_built_in_type_refuses_what_it_does_not_read() -> None:
    check_override_names("http_request", dict.fromkeys(KNOWN_OVERRIDES))
    for name, hint in (
        ("tries", "did you mean max_retries"),
        ("colour", "known: answers, base_delay, call_timeout, "),
        ("notify", "known: "),
    ):
        with pytest.raises(UsageError, match=f"^overrides: unknown override {name}; {hint}"):
            check_override_names("http_request", {"timeout": 5, name: 1})


def test_delays_that_do_not_fit_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="base_delay must not be more than max_delay, 5"):
        AgentSettings.of({"command": ["x"], "base_delay": 10, "max_delay": 5})
