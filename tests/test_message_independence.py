"""No code parses our sentences: the front ends also work when the core's texts are gibberish."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from draftsman_testing import TEST_URL
from draftsman_tui.cli.main import COMMANDS
from tests.support.core_errors import error_functions, errors_of_core
from tests.support.slow import slow_except

ROOT: Final = Path(__file__).parents[1]
_COMMAND: Final = re.compile(rf"\bdraftsman (?:{'|'.join(COMMANDS)})\b|(?<![\w-])--[a-z]{{2,}}")
_JOINT: Final = re.compile(r"""["']\s*f?["']""")
"""Place between two parts of a literal."""
NEW_JOB: Final = "tests/tui/dashboard/test_new_job.py"
LABELS: Final = "tests/bots/trello/inbound/test_labels.py"
FILES: Final = {
    "slack": (
        "tests/bots/slack/listeners/test_modals.py::test_refused_new_job_shows_the_error_in_its_modal",
        "tests/bots/slack/listeners/test_people_in_replies.py",
        "tests/bots/slack/test_render.py",
        "tests/bots/slack/test_render_people.py",
    ),
    "others": (
        "tests/core/agent_runs/clones/test_publish.py::test_a_source_that_its_owner_cannot_read_is_reported",
        "tests/tui/dashboard/test_form.py::test_all_invalid_fields_are_reported_at_once",
        f"{NEW_JOB}::test_form_whose_first_submission_succeeded_creates_no_second_job",
        "tests/tui/cli/jobs/test_cancel_and_retry.py::test_several_jobs_are_retried_once_each",
        "tests/bots/trello/test_render.py",
        "tests/bots/trello/test_error_text.py",
        "tests/bots/trello/inbound/test_answers.py::test_late_comment_reply_names_the_member_who_answered",
        f"{LABELS}::test_label_added_again_creates_a_job_after_the_first_ends[poll]",
    ),
}
"""Tests of the front ends that a text or an error of the core reaches, except WORDED."""
WORDED: Final = (
    "test_every_error_is_shown_beside_its_field",
    "test_errors_of_the_whole_request_are_shown_beside_a_field",
    "test_a_notice_names_its_job_once",
    "test_notification_displays_people_and_times_for_readers",
    "test_result_is_shown_once_without_field_names",
    "test_answer_text_cannot_mention_a_user",
    "test_person_who_canceled_is_mentioned",
    "test_closed_question_shows_its_resolution_and_quotes_its_text",
    "test_notice_to_a_person_mentions_them",
    "test_a_paused_job_shows_who_paused_it_and_why",
)
"""Tests that check texts of the core."""
SLOW: Final = ("test_any_message_is", "test_a_question_keeps_its_controls", "is_too_large_loses")
"""Those that pass a few hundred texts of their own."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("front_ends", slow_except(["slack"], FILES))
def test_front_ends_work_when_every_text_of_the_core_is_gibberish(
    empty_url: str, front_ends: str
) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.gibberish", "-q"]
    command += [
        "-p",
        "no:cacheprovider",
        "-k",
        f"not ({' or '.join(WORDED + SLOW)})",
        *FILES[front_ends],
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {TEST_URL: empty_url},
        capture_output=True,
        text=True,
        timeout=230,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    garbled = re.search(r"garbled texts: (\d+)", done.stdout)
    assert garbled is not None
    assert int(garbled[1]) > 500


def test_errors_of_the_core_name_commands_and_options_in_hints_only() -> None:
    """A front end words a hint in its own way, but never a command inside of a message."""
    errors = errors_of_core() | error_functions()
    found = []
    for path in sorted((ROOT / "core").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not _COMMAND.search(_JOINT.sub("", source)):
            continue
        for call in ast.walk(ast.parse(source)):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in errors:
                texts = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant)]
                found += [(path.name, text) for text in texts if _COMMAND.search(str(text))]
    assert found == []
