"""The dashboard and the alert rules use metrics that exist, and their page says what to do."""

from __future__ import annotations

import json
import re

from tests.docs.alerts import ALERTS, RULES, TESTS, page, recorded, rules
from tests.docs.command_lines import problem
from tests.docs.grafana import PATH, dashboard
from tests.docs.metric_expressions import declared, problems
from tests.docs.pages import DOCS
from tests.support.cases import cases

PAGE = (DOCS / "observability.md").read_text("utf-8")
SECTIONS = {
    title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
}


def test_the_files_are_those_of_their_declarations() -> None:
    assert rules() == RULES.read_text("utf-8"), "python -m tests.docs.alerts"
    assert recorded() == TESTS.read_text("utf-8"), "python -m tests.docs.alerts"
    assert page(PAGE) == PAGE, "python -m tests.docs.alerts"
    assert dashboard() == PATH.read_text("utf-8"), "python -m tests.docs.grafana"


def test_each_expression_uses_metrics_and_labels_that_exist() -> None:
    expressions = [alert.expr for alert in ALERTS]
    expressions += [
        target["expr"]
        for panel in json.loads(PATH.read_text("utf-8"))["panels"]
        for target in panel.get("targets", ())
    ]
    assert len(expressions) > 50
    wrong = {text: found for text in expressions if (found := [*problems(text)])}
    assert wrong == {}


def test_recorded_series_are_samples_of_metrics() -> None:
    for alert in ALERTS:
        for series in (*alert.fires, *alert.quiet):
            name = re.match(r"\w+", series)
            assert name is not None
            metric = declared().get(name[0])
            is_gauge = metric is not None and metric.type == "gauge"
            in_range = series if is_gauge else f"{series}[1m]"
            assert [*problems(in_range)] == [], alert.name


@cases(
    ("expression", "problem"),
    [
        ("draftsman_job", "there is no metric draftsman_job"),
        ("rate(draftsman_jobs[5m])", "draftsman_jobs is a gauge"),
        ("draftsman_runs_started_total", "draftsman_runs_started_total is a counter"),
        ("draftsman_run_seconds", "draftsman_run_seconds is no histogram"),
        ('draftsman_jobs{state="queued"}', 'draftsman_jobs has no label for state="queued"'),
        ("max by (worker) (draftsman_jobs)", "no metric of the expression has the label worker"),
        (
            'rate(draftsman_run_seconds_bucket{le="61"}[5m])',
            "draftsman_run_seconds_bucket has no bucket 61",
        ),
        ("vector(1)", "there is no metric"),
    ],
)
def test_what_no_metric_has_is_found(expression: str, problem: str) -> None:
    assert problem in [*problems(expression)]


def test_each_alert_says_what_to_do_and_has_a_section() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    for alert in ALERTS:
        assert alert.severity in ("page", "ticket")
        assert alert.action.endswith("."), alert.name
        assert alert.section in SECTIONS, alert.name
        commands = re.findall("`draftsman ([^`]+)`", alert.action)
        assert [text for line in commands if (text := problem(line))] == []
        assert "draftsman " not in re.sub("`[^`]+`", "", alert.action), alert.name


def test_each_objective_has_its_alert() -> None:
    named = re.findall(r"`(\w+)`(?=[, ].*\|$)", PAGE.split("## Alerts")[0], re.MULTILINE)
    assert {"StartsLate", "AnswersSlow", "MessagesLate", "ManyDeadLetters"} <= {*named}
    objectives = {name for name in named if name[0].isupper()}
    assert objectives <= {alert.name for alert in ALERTS}
