"""The text format of Prometheus."""

from __future__ import annotations

from draftsman.metrics import NO_LABELS, Gauge

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
