"""Templates of comments."""

from __future__ import annotations

import pytest

from draftsman.text_template import fill
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.cards import FIELDS, check
from tests.support.cases import cases

A = "a" * 24


def test_fields_are_replaced_and_a_line_of_empty_fields_is_omitted() -> None:
    text = fill("**{job}**: {summary}\nSee {pr_url}\nThat is all", {"job": "D-7", "summary": "ok"})
    assert text == "**D-7**: ok\nThat is all"


def test_values_are_not_expanded_as_templates() -> None:
    assert fill("{summary} {job}", {"summary": "{job} {{x}}", "job": "D-7"}) == "{job} {{x}} D-7"


def test_doubled_braces_are_literal_braces() -> None:
    assert fill(check("{{job}} {job}"), {"job": "D-7"}) == "{job} D-7"


def test_every_field_can_be_used() -> None:
    assert check(" ".join(f"{{{name}}}" for name in FIELDS))


@cases(
    ("template", "message"),
    [
        ("{job.__class__}", "unknown field {job.__class__}; fields: job, title"),
        ("{job!r}", "unknown field"),
        ("{job:>1000000000}", "unknown field"),
        ("{0}", "unknown field"),
        ("{}", "unknown field"),
        ("{job", "single {"),
        ("job}", "single }"),
        (" \n", "the template is empty"),
    ],
)
def test_an_unknown_field_is_refused(template: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoardConfig(board_id=A, name="Work", comment_template=template)
