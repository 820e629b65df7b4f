"""Messages of questions: the job that asks. The status of a job that runs again."""

from __future__ import annotations

from draftsman.deliveries.delivery import DeliveryKind
from draftsman.jobs.job import Status
from draftsman.questions.question import QuestionStatus
from draftsman_testing.channel.samples import question
from tests.bots.slack.channel_fixtures import shown
from tests.bots.slack.test_render import rendered
from tests.support.cases import cases


def test_a_job_that_only_asks_shows_its_question_once() -> None:
    for closed in (False, True):
        kind = DeliveryKind.QUESTION_CLOSED if closed else DeliveryKind.QUESTION
        asked = question(status=QuestionStatus.ANSWERED if closed else QuestionStatus.OPEN)
        for title, times in ((asked.text, 1), ("another title", 2)):
            blocks = str(rendered(kind, question=asked, subject_title=title)["blocks"])
            assert blocks.count(asked.text) + blocks.count("another title") == times


@cases("status", Status)
def test_an_earlier_error_is_shown_until_another_run_works(status: Status) -> None:
    output = rendered(DeliveryKind.STATUS, subject_status=status, subject_error="no space")
    hidden = {"claimed", "running", "resumed", "completed", "canceled"}
    assert ("no space" in shown(output)) == (status not in hidden and "waiting" not in status)
