"""Messages of questions: the job that asks."""

from __future__ import annotations

from draftsman.domain.deliveries.delivery import DeliveryKind
from draftsman.domain.question import QuestionStatus
from tests.bots.slack.test_render import rendered
from tests.core.channels.channel_contract import question


def test_a_job_that_only_asks_shows_its_question_once() -> None:
    for closed in (False, True):
        kind = DeliveryKind.QUESTION_CLOSED if closed else DeliveryKind.QUESTION
        asked = question(status=QuestionStatus.ANSWERED if closed else QuestionStatus.OPEN)
        for title, times in ((asked.text, 1), ("another title", 2)):
            blocks = str(rendered(kind, question=asked, subject_title=title)["blocks"])
            assert blocks.count(asked.text) + blocks.count("another title") == times
