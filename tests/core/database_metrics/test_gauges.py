"""Gauges in the text format, with a limited number of labels."""

from __future__ import annotations

from draftsman.database_metrics.gauges import (
    MAX_PAIRS,
    DatabaseState,
    ModelUse,
    StatusCount,
    metrics_text,
)


def _samples(state: DatabaseState, metric: str) -> list[str]:
    lines = metrics_text(state).splitlines()
    return [line for line in lines if line.startswith((f"{metric}{{", f"{metric} "))]


def _queued(queue: str, count: int, seconds: float) -> StatusCount:
    return StatusCount("queued", (queue, "noop"), count, seconds)


def test_the_queues_with_the_most_jobs_are_shown_and_the_rest_is_added_up() -> None:
    many = [_queued(f"q{number:03}", 2, number) for number in range(MAX_PAIRS)]
    few = [_queued("few", 1, 5.0), _queued("less", 1, 7.5)]
    state = DatabaseState(most=10_000, jobs=[*few, *many])
    shown = _samples(state, "draftsman_jobs")
    assert len(shown) == MAX_PAIRS + 1
    assert shown[0] == 'draftsman_jobs{queue="other",type="other",status="queued"} 2'
    assert shown[1] == 'draftsman_jobs{queue="q000",type="noop",status="queued"} 2'
    oldest = _samples(state, "draftsman_jobs_oldest_seconds")
    assert (
        oldest[0] == 'draftsman_jobs_oldest_seconds{queue="other",type="other",status="queued"} 7.5'
    )


def test_the_models_with_the_most_calls_are_shown_and_the_rest_is_added_up() -> None:
    many = [ModelUse("coder", f"m{number:03}", 2, 0.5, 10, 1, 1) for number in range(MAX_PAIRS)]
    few = [ModelUse("coder", name, 1, 0.25, 3, 2, 1) for name in ("x", "y")]
    state = DatabaseState(most=10_000, models=[*few, *many])
    assert len(_samples(state, "draftsman_model_cost_usd_today")) == MAX_PAIRS + 1
    labels = 'agent="other",model="other"'
    cost = _samples(state, "draftsman_model_cost_usd_today")
    assert cost[-1] == f"draftsman_model_cost_usd_today{{{labels}}} 0.5"
    tokens = _samples(state, "draftsman_model_tokens_today")
    assert f'draftsman_model_tokens_today{{{labels},direction="input"}} 6' in tokens
    assert f'draftsman_model_tokens_today{{{labels},direction="output"}} 4' in tokens


def test_a_metric_says_that_it_does_not_count_all() -> None:
    truncated = _samples(
        DatabaseState(most=2, jobs=[_queued("q", 2, 1)]), "draftsman_metrics_truncated"
    )
    assert 'draftsman_metrics_truncated{metric="draftsman_jobs"} 1' in truncated
    assert 'draftsman_metrics_truncated{metric="draftsman_deliveries"} 0' in truncated
    both = [_queued("q", 1, 1), StatusCount("running", ("q", "noop"), 1, 1)]
    counted = _samples(DatabaseState(most=2, jobs=both), "draftsman_metrics_truncated")
    assert 'draftsman_metrics_truncated{metric="draftsman_jobs"} 0' in counted, "of a status"


def test_what_is_due_later_is_not_late() -> None:
    for due_in, late in ((None, "0"), (5.0, "0"), (-2.5, "2.5")):
        state = DatabaseState(most=1, due_in=due_in)
        assert _samples(state, "draftsman_sweeps_late_seconds") == [
            f"draftsman_sweeps_late_seconds {late}"
        ]
