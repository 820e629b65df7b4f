"""The page about the states of a job matches the code."""

from __future__ import annotations

from draftsman.jobs.job import TRANSITIONS
from tests.docs.state_machine import PAGE, TRIGGERS, page


def test_page_matches_the_transitions() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "regenerate it: python -m tests.docs.state_machine"


def test_exactly_the_transitions_have_a_trigger() -> None:
    assert TRIGGERS.keys() == TRANSITIONS.keys()
