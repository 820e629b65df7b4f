"""Writes the alert rules of docs/observability/, with series that fire each and series that do not.

python -m tests.docs.alerts
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.docs.pages import DOCS, filled

FOLDER: Final = DOCS / "observability"
RULES: Final = FOLDER / "alerts.yml"
TESTS: Final = FOLDER / "alerts_test.yml"
PAGE: Final = DOCS / "observability.md"
HEAD: Final = "# Written by `python -m tests.docs.alerts`.\n"
GROUP: Final = "draftsman"
SOON: Final = "1m"
"""When no alert fires yet: each has to hold for longer."""
Series = Mapping[str, str]
"""Values of series, a minute apart, in the notation of `promtool test rules`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An alert: its condition, what it says, and what makes it fire."""

    name: str
    """Its name after the prefix `Draftsman`."""
    expr: str
    wait: str
    """How long the condition has to hold."""
    severity: str
    """page: a person is needed now; ticket: in the coming days."""
    summary: str
    action: str
    """What to do first."""
    section: str
    """The section of the page."""
    fires: Series
    at: str
    """When it fires with these series."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the alert that fires."""
    quiet: Series
    """Series with which it does not."""

    @property
    def full_name(self) -> str:
        """Its name in Prometheus."""
        return f"Draftsman{self.name}"

    @property
    def annotations(self) -> dict[str, str]:
        """What it says."""
        return {
            "summary": self.summary,
            "description": self.action,
            "runbook": f"docs/{PAGE.name}#{self.section}",
        }


def _ratio(good: str, total: str, by: str, least: str) -> str:
    """Return the condition that less than a part is good in the last hour, and still is."""
    parts = [
        f"sum by ({by}) (rate({good}[{span}])) / sum by ({by}) (rate({total}[{span}])) < {least}"
        for span in ("1h", "5m")
    ]
    return " and ".join(parts)


ALERTS: Final[Sequence[Rule]] = (
    Rule(
        name="MetricsMissing",
        expr="absent(draftsman_leader)",
        wait="5m",
        severity="page",
        summary="No metrics of the database are scraped",
        action=(
            "Start the exporter, `draftsman metrics --listen 0.0.0.0:9400`, and look whether it"
            " reaches the database."
        ),
        section="metrics-missing",
        fires={},
        at="6m",
        quiet={"draftsman_leader": "1x10"},
    ),
    Rule(
        name="NoWorkers",
        expr='max(draftsman_leader) >= 0 unless on() (max(draftsman_workers{state="serving"}) > 0)',
        wait="5m",
        severity="page",
        summary="No worker serves",
        action="`draftsman workers` shows the last ones; start a worker and read its log.",
        section="no-workers",
        fires={
            "draftsman_leader": "0x10",
            'draftsman_workers{state="silent"}': "2x10",
        },
        at="6m",
        quiet={
            "draftsman_leader": "1x10",
            'draftsman_workers{state="serving"}': "1x10",
        },
    ),
    Rule(
        name="NoLeader",
        expr="max(draftsman_leader) < 1",
        wait="2m",
        severity="page",
        summary="No worker is the leader",
        action=(
            "Start a worker that may lead, without --no-leader; schedules, retries and rescues"
            " wait for it."
        ),
        section="no-leader",
        fires={"draftsman_leader": "1 1 0x5"},
        at="5m",
        quiet={"draftsman_leader": "1 0 1x5"},
    ),
    Rule(
        name="SweepsLate",
        expr="max(draftsman_sweeps_late_seconds) > 120",
        wait="5m",
        severity="page",
        summary="Due work waits for the leader",
        action="Read the log of the leader for failed sweeps, and see `draftsman doctor`.",
        section="sweeps-late",
        fires={"draftsman_sweeps_late_seconds": "0+60x15"},
        at="9m",
        quiet={"draftsman_sweeps_late_seconds": "0 130 130 0x12"},
    ),
    Rule(
        name="SweepFails",
        expr="sum by (sweep) (increase(draftsman_sweep_failures_total[15m])) > 2",
        wait="0m",
        severity="ticket",
        summary="The sweep {{ $labels.sweep }} fails",
        action="Read the log of the leader: it names the sweep and the error of the database.",
        section="sweeps-late",
        fires={'draftsman_sweep_failures_total{sweep="promote",instance="a"}': "0+1x15"},
        at="15m",
        labels={"sweep": "promote"},
        quiet={'draftsman_sweep_failures_total{sweep="promote",instance="a"}': "3x15"},
    ),
    Rule(
        name="RowsRefused",
        expr="max by (sweep) (draftsman_sweep_refused) > 0",
        wait="15m",
        severity="ticket",
        summary="The database refuses rows of the sweep {{ $labels.sweep }}",
        action=(
            "The log of the leader names each row with the error;"
            " `draftsman doctor --invariants` looks for more."
        ),
        section="sweeps-late",
        fires={'draftsman_sweep_refused{sweep="rescue"}': "1x20"},
        at="16m",
        labels={"sweep": "rescue"},
        quiet={'draftsman_sweep_refused{sweep="rescue"}': "1x5 0x15"},
    ),
    Rule(
        name="JobsWait",
        expr='max by (queue, type) (draftsman_jobs_oldest_seconds{status=~"queued|resumed"}) > 900',
        wait="5m",
        severity="page",
        summary="A job of {{ $labels.type }} waits in {{ $labels.queue }} for more than 15 minutes",
        action="`draftsman why D-142` says what it waits for: add workers, or end a pause.",
        section="jobs-wait",
        fires={
            'draftsman_jobs_oldest_seconds{queue="q",type="report",status="queued"}': "600+60x15"
        },
        at="12m",
        labels={"queue": "q", "type": "report"},
        quiet={
            'draftsman_jobs_oldest_seconds{queue="q",type="report",status="running"}': "3600x15"
        },
    ),
    Rule(
        name="StartsLate",
        expr=_ratio(
            'draftsman_queue_wait_seconds_bucket{le="60"}',
            "draftsman_queue_wait_seconds_count",
            "queue",
            "0.95",
        ),
        wait="5m",
        severity="page",
        summary="Less than 95 % of the jobs of {{ $labels.queue }} start within a minute",
        action="Compare `draftsman stats` with the slots of `draftsman workers`, and add some.",
        section="start-time",
        fires={
            (
                'draftsman_queue_wait_seconds_bucket{queue="q",type="t",instance="a",le="60"}'
            ): "0+1x90",
            'draftsman_queue_wait_seconds_count{queue="q",type="t",instance="a"}': "0+2x90",
        },
        at="80m",
        labels={"queue": "q"},
        quiet={
            (
                'draftsman_queue_wait_seconds_bucket{queue="q",type="t",instance="a",le="60"}'
            ): "0+99x90",
            'draftsman_queue_wait_seconds_count{queue="q",type="t",instance="a"}': "0+100x90",
        },
    ),
    Rule(
        name="UnhandledJobs",
        expr="max by (queue, type) (draftsman_unhandled_jobs) > 0",
        wait="10m",
        severity="page",
        summary="No worker handles {{ $labels.type }} in {{ $labels.queue }}",
        action=(
            "Start a worker with this type and queue; `draftsman types` shows what workers handle."
        ),
        section="jobs-wait",
        fires={'draftsman_unhandled_jobs{queue="q",type="t"}': "3x15"},
        at="11m",
        labels={"queue": "q", "type": "t"},
        quiet={'draftsman_unhandled_jobs{queue="q",type="t"}': "3x5 0x10"},
    ),
    Rule(
        name="DeadLetters",
        expr='max(draftsman_open_failures{status="dead_letter"}) > 0',
        wait="5m",
        severity="ticket",
        summary="Jobs are dead letters",
        action=("See `draftsman jobs --status dead_letter`; retry or dismiss them."),
        section="dead-letters",
        fires={'draftsman_open_failures{status="dead_letter"}': "0 0 2x10"},
        at="8m",
        quiet={
            'draftsman_open_failures{status="dead_letter"}': "0x12",
            'draftsman_open_failures{status="failed"}': "4x12",
        },
    ),
    Rule(
        name="ManyDeadLetters",
        expr=(
            'sum by (queue) (rate(draftsman_runs_ended_total{outcome="dead_letter"}[1h]))'
            " / sum by (queue)"
            ' (rate(draftsman_runs_ended_total{outcome=~"completed|failed|dead_letter"}[1h]))'
            " > 0.01"
        ),
        wait="5m",
        severity="page",
        summary="More than 1 % of the jobs of {{ $labels.queue }} become dead letters",
        action=(
            "`draftsman jobs --status dead_letter` shows the common error; pause the type until"
            " it is mended."
        ),
        section="dead-letters",
        fires={
            (
                'draftsman_runs_ended_total{queue="q",type="t",outcome="dead_letter",instance="a"}'
            ): "0+1x30",
            (
                'draftsman_runs_ended_total{queue="q",type="t",outcome="completed",instance="a"}'
            ): "0+50x30",
        },
        at="20m",
        labels={"queue": "q"},
        quiet={
            (
                'draftsman_runs_ended_total{queue="q",type="t",outcome="dead_letter",instance="a"}'
            ): "0x10 1x20",
            (
                'draftsman_runs_ended_total{queue="q",type="t",outcome="completed",instance="a"}'
            ): "0+500x30",
        },
    ),
    Rule(
        name="QuestionsWait",
        expr="max by (kind) (draftsman_open_questions_oldest_seconds) > 14400",
        wait="5m",
        severity="ticket",
        summary="A question ({{ $labels.kind }}) has waited for more than four hours",
        action="`draftsman questions` shows it and who may answer: delegate it, or use a ladder.",
        section="answer-time",
        fires={'draftsman_open_questions_oldest_seconds{kind="question"}': "14000+60x20"},
        at="14m",
        labels={"kind": "question"},
        quiet={'draftsman_open_questions_oldest_seconds{kind="approval"}': "600+60x20"},
    ),
    Rule(
        name="AnswersSlow",
        expr='max by (kind) (draftsman_attention_answer_seconds{kind!="",quantile="0.95"}) > 14400',
        wait="1h",
        severity="ticket",
        summary="5 % of the answers ({{ $labels.kind }}) of a day took more than four hours",
        action="Compare channels in the dashboard; route questions to people who are there.",
        section="answer-time",
        fires={'draftsman_attention_answer_seconds{kind="question",quantile="0.95"}': "20000x70"},
        at="65m",
        labels={"kind": "question"},
        quiet={'draftsman_attention_answer_seconds{kind="question",quantile="0.5"}': "20000x70"},
    ),
    Rule(
        name="DeliveriesLate",
        expr="max by (channel) (draftsman_deliveries_late_seconds) > 300",
        wait="5m",
        severity="page",
        summary="Messages to {{ $labels.channel }} are late",
        action=(
            "`draftsman deliveries` shows the error; look at the process that sends and at the"
            " service."
        ),
        section="late-deliveries",
        fires={'draftsman_deliveries_late_seconds{channel="slack",status="pending"}': "0+60x20"},
        at="12m",
        labels={"channel": "slack"},
        quiet={
            'draftsman_deliveries_late_seconds{channel="slack",status="pending"}': "0 310x3 0x16"
        },
    ),
    Rule(
        name="MessagesLate",
        expr=_ratio(
            'draftsman_delivery_lateness_seconds_bucket{le="60"}',
            "draftsman_delivery_lateness_seconds_count",
            "channel",
            "0.99",
        ),
        wait="5m",
        severity="ticket",
        summary="Less than 99 % of the messages to {{ $labels.channel }} are sent within a minute",
        action="Look for rate limits in `draftsman deliveries`, and at the network to the service.",
        section="late-deliveries",
        fires={
            (
                'draftsman_delivery_lateness_seconds_bucket{channel="slack",instance="a",le="60"}'
            ): "0+9x90",
            'draftsman_delivery_lateness_seconds_count{channel="slack",instance="a"}': "0+10x90",
        },
        at="80m",
        labels={"channel": "slack"},
        quiet={
            (
                'draftsman_delivery_lateness_seconds_bucket{channel="slack",instance="a",le="60"}'
            ): "0+10x90",
            'draftsman_delivery_lateness_seconds_count{channel="slack",instance="a"}': "0+10x90",
        },
    ),
    Rule(
        name="DeadDeliveries",
        expr="max(draftsman_dead_deliveries) > 0",
        wait="5m",
        severity="ticket",
        summary="Messages are dead letters",
        action=(
            "`draftsman deliveries --status dead_letter` shows why; `draftsman redeliver` sends"
            " them again."
        ),
        section="late-deliveries",
        fires={"draftsman_dead_deliveries": "1x10"},
        at="6m",
        quiet={"draftsman_dead_deliveries": "0x10"},
    ),
    Rule(
        name="UnservedDeliveries",
        expr="max by (channel, target) (draftsman_unserved_deliveries) > 0",
        wait="10m",
        severity="page",
        summary="No process sends to {{ $labels.channel }}:{{ $labels.target }}",
        action=(
            "Start the bots or workers with this channel; `draftsman doctor` names what is missing."
        ),
        section="late-deliveries",
        fires={'draftsman_unserved_deliveries{channel="slack",target="C1"}': "2x15"},
        at="11m",
        labels={"channel": "slack", "target": "C1"},
        quiet={'draftsman_unserved_deliveries{channel="slack",target="C1"}': "2x5 0x10"},
    ),
    Rule(
        name="WorkerStalled",
        expr="draftsman_worker_exchange_age_seconds > 60",
        wait="1m",
        severity="page",
        summary="The worker {{ $labels.instance }} neither claims nor settles",
        action="Its /readyz has the reason; look whether it reaches the database, then restart it.",
        section="workers",
        fires={'draftsman_worker_exchange_age_seconds{instance="a",job="draftsman"}': "0+60x5"},
        at="4m",
        labels={"instance": "a", "job": "draftsman"},
        quiet={'draftsman_worker_exchange_age_seconds{instance="a",job="draftsman"}': "1x5"},
    ),
    Rule(
        name="EndsRefused",
        expr="draftsman_worker_unsettled > 0",
        wait="5m",
        severity="page",
        summary="The database refuses ends of runs of {{ $labels.instance }}",
        action="The log of the worker has the error; the runs are repeated until it is mended.",
        section="workers",
        fires={'draftsman_worker_unsettled{instance="a",job="draftsman"}': "1x10"},
        at="6m",
        labels={"instance": "a", "job": "draftsman"},
        quiet={'draftsman_worker_unsettled{instance="a",job="draftsman"}': "1 0x9"},
    ),
    Rule(
        name="DatabaseErrors",
        expr=(
            "sum by (kind)"
            ' (rate(draftsman_database_errors_total{kind=~"unreachable|timeout|schema"}[5m])) > 0.1'
        ),
        wait="5m",
        severity="page",
        summary="Errors of the database: {{ $labels.kind }}",
        action="Look at the server and its log; `draftsman doctor` tells what this host sees.",
        section="database",
        fires={'draftsman_database_errors_total{kind="timeout",instance="a"}': "0+30x15"},
        at="12m",
        labels={"kind": "timeout"},
        quiet={'draftsman_database_errors_total{kind="conflict",instance="a"}': "0+30x15"},
    ),
    Rule(
        name="ChatDisconnected",
        expr="draftsman_slack_problems > 0 or draftsman_trello_problems > 0",
        wait="5m",
        severity="page",
        summary="A bot of {{ $labels.instance }} has problems",
        action="Its /readyz names them: the connection to the service, the database or a token.",
        section="chat",
        fires={'draftsman_slack_problems{instance="a",job="bots"}': "1x10"},
        at="6m",
        labels={"instance": "a", "job": "bots"},
        quiet={
            'draftsman_slack_problems{instance="a",job="bots"}': "0x10",
            'draftsman_trello_problems{instance="a",job="bots"}': "1 0x9",
        },
    ),
    Rule(
        name="SpansDropped",
        expr="sum by (reason) (increase(draftsman_spans_dropped_total[15m])) > 0",
        wait="15m",
        severity="ticket",
        summary="Spans of traces are dropped: {{ $labels.reason }}",
        action="Look at the receiver of traces; no job waits for it.",
        section="traces",
        fires={'draftsman_spans_dropped_total{reason="refused",instance="a"}': "0+10x40"},
        at="30m",
        labels={"reason": "refused"},
        quiet={'draftsman_spans_dropped_total{reason="refused",instance="a"}': "10x40"},
    ),
    Rule(
        name="MetricsTruncated",
        expr="max by (metric) (draftsman_metrics_truncated) > 0",
        wait="15m",
        severity="ticket",
        summary="There is more than {{ $labels.metric }} counts",
        action="More than 10,000 rows wait: the value is a minimum. See `draftsman stats`.",
        section="metrics-missing",
        fires={'draftsman_metrics_truncated{metric="draftsman_jobs"}': "1x20"},
        at="16m",
        labels={"metric": "draftsman_jobs"},
        quiet={'draftsman_metrics_truncated{metric="draftsman_jobs"}': "0x20"},
    ),
)


def rules() -> str:
    """Return the rule file."""
    return "".join([HEAD, f"groups:\n- name: {GROUP}\n  rules:\n", *map(_rule, ALERTS)])


def _rule(alert: Rule) -> str:
    lines = [
        f"  - alert: {alert.full_name}",
        f"    expr: {json.dumps(alert.expr)}",
        f"    for: {alert.wait}",
        "    labels:",
        f"      severity: {alert.severity}",
        "    annotations:",
        *(f"      {name}: {json.dumps(text)}" for name, text in alert.annotations.items()),
    ]
    return "\n".join(lines) + "\n"


def recorded() -> str:
    """Return the tests of the rules: the series that fire each alert, and those that do not."""
    head = f"{HEAD}rule_files: [{RULES.name}]\nevaluation_interval: 1m\ntests:\n"
    return head + "".join(part for alert in ALERTS for part in _tests(alert))


def _tests(alert: Rule) -> Iterator[str]:
    expected = {
        "exp_labels": {"severity": alert.severity, **alert.labels},
        "exp_annotations": {
            name: _rendered(text, alert.labels) for name, text in alert.annotations.items()
        },
    }
    for series, ends in (
        (alert.fires, [(SOON, []), (alert.at, [expected])]),
        (alert.quiet, [(alert.at, [])]),
    ):
        inputs = [{"series": name, "values": values} for name, values in series.items()]
        cases = [
            {"eval_time": time, "alertname": alert.full_name, "exp_alerts": alerts}
            for time, alerts in ends
        ]
        yield f"- interval: 1m\n  input_series: {json.dumps(inputs)}\n"
        yield f"  alert_rule_test: {json.dumps(cases, ensure_ascii=False)}\n"


def _rendered(text: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], text)


def page(text: str) -> str:
    """Return the page with the current table of alerts."""
    return filled(text, _table())


def _table() -> Iterator[str]:
    yield "| alert | severity | | what to do |"
    yield "|---|---|---|---|"
    for alert in ALERTS:
        summary = re.sub(r"\{\{ \$labels\.(\w+) \}\}", r"`\1`", alert.summary)
        section = alert.section.replace("-", " ").capitalize()
        yield (
            f"| `{alert.full_name}` | {alert.severity} | {summary} |"
            f" [{section}](#{alert.section}): {alert.action} |"
        )
    yield ""
    yield "Regenerate the table and the rules with `python -m tests.docs.alerts`."


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    RULES.write_text(rules(), encoding="utf-8")
    TESTS.write_text(recorded(), encoding="utf-8")
