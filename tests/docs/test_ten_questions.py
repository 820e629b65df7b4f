"""Ten questions of readers: the index leads to a section, whose beginning has the answer."""

from __future__ import annotations

from typing import Final

import pytest

from draftsman_tui.cli import pages
from tests.docs.test_index import ROWS

WORDS: Final = 80
"""What a person reads in 20 s."""
QUESTIONS: Final = (
    ("decide what happens if nobody answers", "the job expires"),
    ("send the same request twice, and get one job", "`--key` makes a request idempotent"),
    ("know why a job does not run", "draftsman why D-142"),
    ("bound how many jobs run at once", "running = 4"),
    ("upgrade without a stop", "Stop the old workers"),
    ("retry what failed", "draftsman retry"),
    ("let an agent reach a host", "[networks.mirrors]"),
    ("answer on my phone", "draftsman link --web"),
    ("require two approvers", "quorum"),
    ("keep the database small", "[retention]"),
)
"""The task of a row, and what answers it."""


@pytest.mark.parametrize(("task", "answer"), QUESTIONS)
def test_a_reader_finds_the_answer_at_the_beginning_of_a_section(task: str, answer: str) -> None:
    (link,) = [link for other, _, link in ROWS if other == task]
    beginning = " ".join(pages.read(link).split()[:WORDS])
    assert answer in beginning, link
