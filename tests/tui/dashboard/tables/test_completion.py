"""Completion of command lines, filters and form fields."""

from __future__ import annotations

from draftsman_tui.dashboard.tables.completion import commands, filters, form_field
from tests.support.cases import cases

VALUES = {
    "status": ["waiting", "failed", "dead_letter"],
    "repo": ["acme/pay", "my repo"],
    "by": ["me", "anna"],
    "COLUMN": ["job", "title"],
    "VIEW": ["mine"],
}
TAKES = {
    "jobs": "FILTER",
    "sort": "COLUMN",
    "theme": "dark|light",
    "views": "VIEW",
    "cancel": "REASON",
    "save": "NAME",
}


@cases(
    ("text", "expected"),
    [
        ("", [*TAKES, "mine"]),
        ("s", ["sort", "save"]),
        ("m", ["mine"]),
        ("sort ", ["sort job", "sort title"]),
        ("sort T", ["sort title"]),
        ("theme l", ["theme light"]),
        ("views ", ["views mine"]),
        ("jobs status:f", ["jobs status:failed"]),
        ("jobs x status:failed,d", ["jobs x status:failed,dead_letter"]),
        ("cancel wr", []),
        ("nonsense x", []),
    ],
)
def test_command_line_completion(text: str, expected: list[str]) -> None:
    assert commands(text, [*TAKES, "mine"], TAKES, VALUES) == expected


@cases(
    ("text", "expected"),
    [
        ("", ["status:", "repo:", "by:", "age<", "age>"]),
        ("st", ["status:"]),
        ("word a", ["word age<", "word age>"]),
        ("by:", ["by:me", "by:anna"]),
        ("repo:M", ["repo:'my repo'"]),
        ("status:failed,f", []),
        ("https:", []),
    ],
)
def test_filter_completion(text: str, expected: list[str]) -> None:
    assert filters(text, VALUES) == expected


@cases(
    ("text", "multiple", "lines"),
    [
        ("", False, ["tidy", "coder", "code-review"]),
        ("co", False, ["coder", "code-review"]),
        ("ID", False, ["tidy"]),
        (" review ", False, ["code-review"]),
        ("tidy", False, []),
        ("nothing", False, []),
        ("tidy,re", True, ["tidy,code-review "]),
        ("tidy cod", True, ["tidy coder ", "tidy code-review "]),
        ("tidy ", True, ["tidy tidy ", "tidy coder ", "tidy code-review "]),
        ("coder", True, []),
    ],
)
def test_form_field_offers_values_that_contain_the_word(
    text: str, multiple: bool, lines: list[str]
) -> None:
    assert form_field(text, ["tidy", "coder", "code-review"], multiple=multiple) == lines
