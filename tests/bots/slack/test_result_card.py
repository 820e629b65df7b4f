"""The card of a result: pull request, branch, changes, checks, cost, duration and its buttons."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from draftsman.deliveries.delivery import DeliveryKind
from draftsman.jobs.job import Status
from draftsman_bots.slack import ids
from tests.bots.slack.channel_fixtures import actionable, shown
from tests.bots.slack.test_render import rendered
from tests.support.cases import cases

START = datetime(2030, 1, 1, 9, tzinfo=UTC)
WORK = {
    "summary": "Tidied.",
    "pr_url": "https://example.org/pr/7",
    "branch": "draftsman/D-7",
    "commit": "0123456789abcdef",
    "files_changed": 4,
    "insertions": 55,
    "deletions": 3,
    "validation": [{"name": "tests", "passed": True}, {"name": "lint", "passed": True}],
    "evidence": "sha256:1",
}


def test_the_card_of_a_result_has_its_facts_and_the_button() -> None:
    output = rendered(
        DeliveryKind.RESULT,
        subject_type="run_agent",
        subject_status=Status.COMPLETED,
        subject_result=WORK,
        subject_usage="1,020 tokens, $0.42",
        subject_created_at=START,
        subject_finished_at=START + timedelta(minutes=12, seconds=20),
    )
    text = shown(output)
    for fact in (
        "https://example.org/pr/7",
        "branch draftsman/D-7",
        "4 files changed, +55 -3",
        "validation 2 of 2 passed, signed evidence",
        "$0.42",
        "took 12 min",
    ):
        assert fact in text, fact
    assert actionable(output) == [ids.REVISE]


def test_an_agents_job_that_failed_has_both_buttons_and_another_job_its_retry() -> None:
    failed = {"subject_status": Status.FAILED}
    agent = rendered(DeliveryKind.RESULT, subject_type="run_agent", **failed)
    assert actionable(agent) == [ids.RETRY, ids.REVISE]
    assert actionable(rendered(DeliveryKind.RESULT, **failed)) == [ids.RETRY]


@cases(
    ("seconds", "text"),
    [
        (0.4, "took 0.4 s"),
        (59, "took 59 s"),
        (9000, "took 2.5 h"),
        (50 * 3600, "took 2 d"),
    ],
)
def test_the_duration_has_two_digits(seconds: float, text: str) -> None:
    output = rendered(
        DeliveryKind.RESULT,
        subject_created_at=START,
        subject_finished_at=START + timedelta(seconds=seconds),
    )
    assert text in shown(output)
