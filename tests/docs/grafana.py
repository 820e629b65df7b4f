"""Writes the dashboard for Grafana, docs/observability/dashboard.json.

python -m tests.docs.grafana
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from tests.docs.alerts import FOLDER

PATH: Final = FOLDER / "dashboard.json"
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
WIDTH: Final = 24
COLUMNS: Final = 3
HEIGHT: Final = 7


class Panel(NamedTuple):
    """A panel: expressions with their legends."""

    title: str
    unit: str
    expressions: Sequence[tuple[str, str]]
    text: str = ""
    """What it says, where its title does not."""


def _of(expression: str, legend: str) -> Sequence[tuple[str, str]]:
    return ((expression, legend),)


def _quantiles(histogram: str, by: str) -> Sequence[tuple[str, str]]:
    rate = f"rate({histogram}_bucket[$__rate_interval])"
    return [
        (
            f"histogram_quantile({quantile}, sum by (le, {by}) ({rate}))",
            f"{{{{{by}}}}} p{quantile * 100:.0f}",
        )
        for quantile in (0.5, 0.95)
    ]


def _rate(counter: str, by: str) -> Sequence[tuple[str, str]]:
    legend = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return _of(f"sum by ({by}) (rate({counter}[$__rate_interval]))", legend)


def _shared(gauge: str, by: str = "") -> Sequence[tuple[str, str]]:
    """Return a gauge of the database, which all instances have alike."""
    if not by:
        return _of(f"max({gauge})", gauge.removeprefix("draftsman_"))
    legend = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return _of(f"max by ({by}) ({gauge})", legend)


ROWS: Final[dict[str, Sequence[Panel]]] = {
    "Jobs": (
        Panel(
            "Jobs by status",
            "short",
            _of("sum by (status) (max without (instance, job) (draftsman_jobs))", "{{status}}"),
        ),
        Panel(
            "Oldest job that waits for a worker",
            "s",
            _shared('draftsman_jobs_oldest_seconds{status=~"queued|resumed"}', "queue, type"),
        ),
        Panel(
            "Failures nobody has looked at", "short", _shared("draftsman_open_failures", "status")
        ),
        Panel("Starts", "ops", _rate("draftsman_runs_started_total", "queue, type")),
        Panel("Ends", "ops", _rate("draftsman_runs_ended_total", "outcome")),
        Panel("Jobs without a worker", "short", _shared("draftsman_unhandled_jobs", "queue, type")),
    ),
    "Times": (
        Panel("Wait for a worker", "s", _quantiles("draftsman_queue_wait_seconds", "queue")),
        Panel("Runs", "s", _quantiles("draftsman_run_seconds", "type")),
        Panel(
            "Starts within a minute",
            "percentunit",
            _of(
                'sum by (queue) (rate(draftsman_queue_wait_seconds_bucket{le="60"}[1h]))'
                " / sum by (queue) (rate(draftsman_queue_wait_seconds_count[1h]))",
                "{{queue}}",
            ),
        ),
    ),
    "Questions": (
        Panel("Open questions", "short", _shared("draftsman_open_questions", "kind")),
        Panel(
            "Oldest open question", "s", _shared("draftsman_open_questions_oldest_seconds", "kind")
        ),
        Panel(
            "Time to an answer",
            "s",
            _shared('draftsman_attention_answer_seconds{channel!=""}', "channel, quantile"),
            "Of questions of the last day.",
        ),
    ),
    "Messages": (
        Panel("Messages to send", "short", _shared("draftsman_deliveries", "channel, status")),
        Panel("Latest message", "s", _shared("draftsman_deliveries_late_seconds", "channel")),
        Panel("Attempts", "ops", _rate("draftsman_delivery_attempts_total", "channel, outcome")),
        Panel("Lateness", "s", _quantiles("draftsman_delivery_lateness_seconds", "channel")),
        Panel("Dead letters", "short", _shared("draftsman_dead_deliveries")),
        Panel(
            "Messages without a sender",
            "short",
            _shared("draftsman_unserved_deliveries", "channel, target"),
        ),
    ),
    "Workers": (
        Panel("Workers", "short", _shared("draftsman_workers", "state")),
        Panel(
            "Runs and slots",
            "short",
            [
                ("sum(draftsman_worker_runs)", "runs"),
                ("sum(draftsman_worker_slots)", "slots"),
                ("sum(draftsman_worker_unsettled)", "ends that are refused"),
            ],
        ),
        Panel(
            "Age of the last exchange",
            "s",
            _of("draftsman_worker_exchange_age_seconds", "{{instance}}"),
        ),
        Panel("Leader", "short", _shared("draftsman_leader")),
        Panel("Lateness of sweeps", "s", _shared("draftsman_sweeps_late_seconds")),
        Panel("Rows of sweeps", "ops", _rate("draftsman_sweep_rows_total", "sweep")),
        Panel("Failed sweeps", "ops", _rate("draftsman_sweep_failures_total", "sweep")),
        Panel("Errors of the database", "ops", _rate("draftsman_database_errors_total", "kind")),
        Panel(
            "Spans of traces that are dropped",
            "ops",
            _rate("draftsman_spans_dropped_total", "reason"),
        ),
    ),
    "Models": (
        Panel(
            "Cost today", "currencyUSD", _shared("draftsman_model_cost_usd_today", "agent, model")
        ),
        Panel(
            "Tokens today",
            "short",
            _shared("draftsman_model_tokens_today", "agent, model, direction"),
        ),
        Panel("Calls today", "short", _shared("draftsman_model_calls_today", "agent, model")),
    ),
    "Chat": (
        Panel(
            "Problems",
            "short",
            [
                ("draftsman_slack_problems", "Slack {{instance}}"),
                ("draftsman_trello_problems", "Trello {{instance}}"),
            ],
        ),
        Panel("Connections to Slack", "short", _of("draftsman_slack_sockets", "{{instance}}")),
        Panel(
            "Requests from Slack", "ops", _rate("draftsman_slack_requests_total", "kind, outcome")
        ),
    ),
}


def dashboard() -> str:
    """Return the dashboard."""
    document = {
        "title": "draftsman",
        "uid": "draftsman",
        "tags": ["draftsman"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                }
            ]
        },
        "panels": [*_panels()],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _panels() -> Iterator[dict[str, Any]]:
    ids = count(1)
    top = 0
    for title, panels in ROWS.items():
        yield {
            "id": next(ids),
            "type": "row",
            "title": title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1},
        }
        top += 1
        for index, panel in enumerate(panels):
            row, column = divmod(index, COLUMNS)
            width = WIDTH // COLUMNS
            place = {"x": column * width, "y": top + row * HEIGHT, "w": width, "h": HEIGHT}
            yield _panel(next(ids), panel, place)
        top += -(-len(panels) // COLUMNS) * HEIGHT


def _panel(id: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": id,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": DATASOURCE,
                "expr": expr,
                "legendFormat": legend,
            }
            for number, (expr, legend) in enumerate(panel.expressions)
        ],
    }


if __name__ == "__main__":
    PATH.write_text(dashboard(), encoding="utf-8")
