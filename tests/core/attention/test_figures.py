"""Reminders in quiet hours, and metrics, without a database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from draftsman.attention.figures import (
    AttentionFigures,
    FigureGroup,
    Interruption,
    metrics_text,
    with_quiet_pings,
)
from draftsman.people.hours import parse
from draftsman.people.policy import Person, Policy
from draftsman.questions.question import QuestionKind

NIGHT = parse("22:00-07:00", "UTC")
POLICY = Policy(
    {
        "anna": Person("anna", frozenset({"approver"}), {"slack": "U1"}, NIGHT),
        "ben": Person("ben", frozenset({"approver"})),
        "carol": Person("carol", frozenset({"approver"}), quiet=NIGHT),
    }
)
EVENING = datetime(2026, 3, 1, 23, tzinfo=UTC)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = AttentionFigures(FigureGroup.ALL, "", 4, 2, 2, 3.5, 60.0, 90.25, 5, 2.5, seen_p95=7.5)
ROWS = [
    ALL,
    replace(ALL, by=FigureGroup.PERSON, value="anna"),
    replace(ALL, by=FigureGroup.CHANNEL, value="slack"),
    replace(ALL, by=FigureGroup.CHANNEL, value="log", seen_p50=None, answer_p50=None),
    replace(ALL, by=FigureGroup.KIND, value="approval"),
]


def sent(
    at: datetime, *approvers: str, person: str | None = None, channel: str = "slack"
) -> Interruption:
    return Interruption(channel, QuestionKind.APPROVAL, approvers, "dan", person, at)


def test_a_reminder_interrupts_if_all_its_recipients_have_quiet_hours() -> None:
    reminders = [
        sent(NOON, "anna", "carol"),
        sent(EVENING, "anna", "ben"),
        sent(EVENING, "anna", "carol"),
        sent(EVENING, "anna", "ben", person="anna"),
        sent(EVENING, "unknown", channel="log"),
    ]
    counts = {
        (row.by, row.value): row.quiet_pings
        for row in with_quiet_pings(ROWS, reminders, POLICY, None)
    }
    assert list(counts.values()) == [2, 1, 2, 0, 2]
    defaults = with_quiet_pings(ROWS, reminders, POLICY, NIGHT)
    assert [row.quiet_pings for row in defaults] == [3, 1, 2, 1, 3], "the default hours, of unknown"


def test_metrics_have_no_people_and_leave_unknown_times_out() -> None:
    lines = metrics_text(ROWS).splitlines()
    assert not any("anna" in line for line in lines)
    samples = [line for line in lines if not line.startswith("#")]
    assert samples[:7] == [
        "draftsman_attention_questions 4",
        "draftsman_attention_jobs 2",
        "draftsman_attention_answers 2",
        "draftsman_attention_pings 5",
        "draftsman_attention_questions_per_job 2",
        "draftsman_attention_pings_per_answer 2.5",
        "draftsman_attention_quiet_pings 0",
    ]
    assert 'draftsman_attention_seen_seconds{channel="slack",quantile="0.5"} 3.5' in samples
    assert 'draftsman_attention_seen_seconds{channel="slack",quantile="0.95"} 7.5' in samples
    assert 'draftsman_attention_answer_seconds{kind="approval",quantile="0.95"} 90.25' in samples
    assert 'draftsman_attention_answer_seconds{channel="log",quantile="0.5"}' not in str(samples)
    helps = [line.split()[2] for line in lines if line.startswith("# HELP")]
    assert helps == [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(helps) == len(set(helps)) == 9
