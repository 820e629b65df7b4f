"""A job type of the page, from an empty folder to a form, a question and a result in Slack."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman_testing.slack import FakeSlack
from tests.acceptance.processes import Installation
from tests.acceptance.test_slack import Story
from tests.bots.slack.listeners.test_templates import block
from tests.docs.test_own_jobs import BLOCKS


@pytest.mark.slow(
    fast="tests/bots/slack/listeners/test_job_types.py::test_the_form_of_a_type_submits_its_job"
)
async def test_a_type_of_the_page_is_started_and_answered_in_slack(
    installation: Installation, every: int
) -> None:
    (installation.folder / "company").mkdir()
    (installation.folder / "company" / "jobs.py").write_text(BLOCKS[0], encoding="utf-8")
    async with FakeSlack() as slack:
        story = Story(slack, installation, every)
        worker = installation.start("worker", "--app", "company.jobs")
        await worker.says("worker_started")
        await story.bots()

        opened = await slack.command(story.anna, story.room, "run report:weekly")
        assert opened.acked

        def form() -> list[Any]:
            return list(slack.views(story.anna))

        (view,) = await slack.until(form, "the form")
        await slack.submit(story.anna, view["id"], {block(view, "Week"): "31"})
        question = await story.wait_for_message("3 rows in eu. Send it?")
        await slack.press(story.ben, story.room, question["ts"], "draftsman_answer:1")
        (card,) = await slack.until(story.completed_cards, "the card of a completed job")
        assert "Report of week 31" in str(card)
        assert slack.complaints == []
