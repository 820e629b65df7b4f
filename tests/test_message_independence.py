"""No code reads our sentences: the front ends work as well when the core speaks gibberish."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
NEW_JOB: Final = "tests/tui/dashboard/test_new_job.py"
FILES: Final = (
    "tests/tui/dashboard/test_supervised.py",
    "tests/tui/dashboard/test_form.py",
    f"{NEW_JOB}::test_a_form_whose_job_was_made_before_makes_no_second_one_by_itself",
    f"{NEW_JOB}::test_what_is_wrong_stands_beside_it_and_nothing_is_lost",
    "tests/tui/cli/jobs/test_cancel_and_retry.py::test_several_jobs_are_run_anew_each_once",
    "tests/tui/dashboard/commands/test_commands.py::test_several_jobs_are_canceled_after_a_yes",
    "tests/bots/slack/listeners/test_commands.py::test_unusual_characters_are_stored_unchanged",
    "tests/bots/slack/listeners/test_modals.py::test_a_denial_with_its_reason",
    "tests/bots/slack/listeners/test_modals.py::test_refused_new_job_shows_the_error_in_its_modal",
    "tests/bots/slack/listeners/test_people_in_replies.py",
    "tests/bots/slack/test_render.py",
    "tests/bots/trello/test_render.py",
    "tests/bots/trello/test_error_text.py",
    "tests/bots/trello/inbound/test_answers.py::test_late_comment_reply_names_the_member_who_answered",
    "tests/bots/trello/inbound/test_labels.py::test_label_added_again_creates_a_job_after_the_first_ends",
    "tests/bots/trello/test_tokens.py::test_credentials_are_read_and_never_shown",
)
"""Tests of the front ends, but for WORDED."""
WORDED: Final = (
    "test_all_that_is_wrong_is_said_beside_its_field",
    "test_what_needs_more_than_a_field_is_beside_it_too",
    "test_a_notice_names_its_job_once",
    "test_notification_displays_people_and_times_for_readers",
    "test_result_is_shown_once_without_field_names",
    "test_answer_text_cannot_mention_a_user",
    "test_person_who_canceled_is_mentioned",
    "test_closed_question_shows_its_resolution_and_quotes_its_text",
    "test_notice_to_a_person_mentions_them",
)
"""Those that check words of the core."""


@pytest.mark.timeout(240)
def test_front_ends_work_when_every_text_of_the_core_is_gibberish() -> None:
    worded = " or ".join(WORDED)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.gibberish", "-q"]
    command += ["-k", f"not ({worded})", *FILES]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=230, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    garbled = re.search(r"garbled texts: (\d+)", done.stdout)
    assert garbled is not None
    assert int(garbled[1]) > 500
