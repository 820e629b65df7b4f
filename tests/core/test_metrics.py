"""The text format of Prometheus."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from draftsman import metrics
from draftsman.metrics import (
    NO_LABELS,
    Counter,
    Distribution,
    Gauge,
    Histogram,
    Totals,
    process_metrics,
)

RUNS = Gauge("runs", "Runs.")


def test_a_gauge_has_its_help_its_type_and_its_samples() -> None:
    head = "# HELP draftsman_runs Runs.\n# TYPE draftsman_runs gauge\n"
    assert RUNS.render_value(2) == RUNS.render([(NO_LABELS, 2)]) == f"{head}draftsman_runs 2\n"
    assert RUNS.render([({"a": "x", "b": "y"}, 0.25)]) == (
        f'{head}draftsman_runs{{a="x",b="y"}} 0.25\n'
    )
    assert RUNS.render_value(None) == RUNS.render([]) == ""


def test_only_the_three_characters_that_prometheus_knows_are_escaped() -> None:
    line = RUNS.render([({"queue": 'á\t"\\\n'}, 1)]).splitlines()[-1]
    assert line == r'draftsman_runs{queue="á	\"\\\n"} 1'


COUNTER = Counter("things_total", "Things.", ("queue", "type"))
TIMES = Histogram("thing_seconds", "Durations.", ("queue",), (0.5, 2.0))


@pytest.fixture(autouse=True)
def _no_other_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process have no metrics but those of the test."""
    monkeypatch.setattr(metrics, "_of_process", [])


def test_totals_are_counted_by_their_labels() -> None:
    totals = Totals(COUNTER)
    assert process_metrics() == "", "nothing was counted yet"
    totals.add("b", "noop")
    totals.add("a", "noop", amount=2)
    totals.add("a", "noop")
    assert totals.value("a", "noop") == 3
    assert process_metrics() == (
        "# HELP draftsman_things_total Things.\n# TYPE draftsman_things_total counter\n"
        'draftsman_things_total{queue="a",type="noop"} 3\n'
        'draftsman_things_total{queue="b",type="noop"} 1\n'
    )


def test_a_distribution_counts_each_duration_in_all_buckets_that_it_fits() -> None:
    durations = Distribution(TIMES)
    for seconds in (0.25, 0.5, 1.0, 9.0):
        durations.add("a", seconds=seconds)
    (family,) = text_string_to_metric_families(process_metrics())
    assert family.type == "histogram"
    values = {(sample.name, sample.labels.get("le")): sample.value for sample in family.samples}
    name = "draftsman_thing_seconds"
    assert values == {
        (f"{name}_bucket", "0.5"): 2,
        (f"{name}_bucket", "2"): 3,
        (f"{name}_bucket", "+Inf"): 4,
        (f"{name}_sum", None): 10.75,
        (f"{name}_count", None): 4,
    }


def test_a_process_keeps_a_limited_number_of_labels_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_VALUES", 2)
    totals = Totals(COUNTER)
    durations = Distribution(TIMES)
    for queue in ("a", "b", "c", "d", "a"):
        totals.add(queue, "noop")
        durations.add(queue, seconds=1)
    assert [totals.value(queue, "noop") for queue in ("a", "b", "c")] == [2, 1, 0]
    assert totals.value("other", "other") == 2
    assert durations.count("other") == 2
