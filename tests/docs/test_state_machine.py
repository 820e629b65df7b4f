"""The page about the life of a job is true."""

from __future__ import annotations

from draftsman.domain.job import TRANSITIONS
from tests.docs.state_machine import PAGE, TRIGGERS, page


def test_the_page_says_what_the_table_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "regenerate it: python -m tests.docs.state_machine"


def test_every_step_has_a_trigger_and_nothing_else_has() -> None:
    assert TRIGGERS.keys() == TRANSITIONS.keys()
