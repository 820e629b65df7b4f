"""Parameters of a template in the description of a card."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from draftsman_bots.trello.requests.template_jobs import read_parameters
from tests.support.cases import cases

NAMES: dict[str, dict[str, Any]] = {"package": {}, "level": {}, "max_days": {}, "note": {}}

NOON = "2026-11-30T12:00:00.000Z"


def read(description: str, *names: str, **more: Any) -> dict[str, str]:
    result = read_parameters(
        {name: {} for name in names} or NAMES, {"description": description, **more}
    )
    assert result.problems == {}
    return result.values


@cases(
    ("line", "value"),
    [
        ("package: httpx", "httpx"),
        ("  package :  httpx  ", "httpx"),
        ("Package: httpx", "httpx"),
        ("- package: httpx", "httpx"),
        ("* package: httpx", "httpx"),
        ("**package**: httpx", "httpx"),
        ("**package:** httpx", "httpx"),
        ("`package`: `httpx`", "httpx"),
        ("package: a: b", "a: b"),
        ("package: foo\\_bar\\-baz", "foo_bar-baz"),
        ("package: `foo\\_bar`", "foo\\_bar"),
        ('package: [https://x.org/a](https://x.org/a "smartCard-inline")', "https://x.org/a"),
        ("package: <https://x.org/a>", "https://x.org/a"),
        ('package: ["a", "b"]', '["a", "b"]'),
        ("package: [a](b) c", "[a](b) c"),
    ],
)
def test_a_line_sets_a_parameter(line: str, value: str) -> None:
    assert read(f"Please update.\n{line}\r\nThanks") == {"package": value}


@cases(
    "line",
    ["package:httpx", "package httpx", "size: 7", "the package: httpx", "package:", "> package: a"],
)
def test_other_lines_are_text(line: str) -> None:
    assert read(line) == {}


def test_names_with_escaped_signs() -> None:
    assert read("max\\_days: 7") == {"max_days": "7"}
    assert read("A: 1\na: 2", "A", "a") == {"A": "1", "a": "2"}


def test_a_parameter_on_two_lines_is_a_problem() -> None:
    result = read_parameters(NAMES, {"description": "level: a\nLevel: b"})
    assert result.problems == {"level": "is on two lines; write a single line"}


@cases(
    ("field", "schema", "value"),
    [
        ({"name": "package", "value": "a: *b* <c>"}, {}, "a: *b* <c>"),
        ({"name": "PACKAGE ", "value": " a "}, {}, "a"),
        (
            {"name": "package", "value": "2026-11-30T12:00:00.000Z"},
            {"format": "date"},
            "2026-11-30",
        ),
        (
            {"name": "package", "value": "2026-11-30T12:00:00.000Z"},
            {"format": "date-time"},
            "2026-11-30T12:00:00.000Z",
        ),
        ({"name": "package", "value": "soon"}, {"format": "date"}, "soon"),
    ],
)
def test_a_custom_field_sets_the_parameter_of_its_name(
    field: dict[str, str], schema: dict[str, Any], value: str
) -> None:
    card = {"description": "", "custom_fields": [{"name": "", "value": "x"}, field]}
    assert read_parameters({"package": schema}, card).values == {"package": value}
    named = {"name": "Max-Days", "value": "7"}, {"name": "max days", "value": " "}
    assert read("", custom_fields=named) == {"max_days": "7"}


def test_a_value_that_is_given_twice_is_a_problem() -> None:
    twice = {"name": "Level", "value": "a"}, {"name": "level", "value": "b"}
    card = {
        "description": "level: c\nnote: d",
        "custom_fields": [*twice, {"name": "note", "value": "e"}],
    }
    assert read_parameters(NAMES, card).problems == {
        "level": "is a custom field and a line; keep one of them",
        "note": "is a custom field and a line; keep one of them",
    }
    assert read_parameters(NAMES, card | {"description": ""}).problems == {
        "level": "is in two custom fields; rename one of them"
    }


def test_title_description_and_url_are_those_of_the_card() -> None:
    card = {"title": "Fix it", "url": "https://trello.com/c/1"}
    names = ("title", "description", "url", "level")
    text = "It fails.\nlevel: major\nOften."
    assert read(text, *names, **card) == {
        "title": "Fix it",
        "description": "It fails.\nOften.",
        "url": "https://trello.com/c/1",
        "level": "major",
    }
    assert read("title: Other", *names, **card)["title"] == "Other"
    assert read("", "title", "description", title=" ") == {}


@given(st.text())
def test_any_description_is_read(text: str) -> None:
    values = read_parameters(NAMES, {"description": text}).values
    assert values.keys() <= set(NAMES)
    assert all(value.strip() == value and value for value in values.values())


@cases("piece", ["a", "_", "*", " ", "`", "[", "](", "\\_", "package: [", ":"])
def test_time_grows_with_the_length_and_not_with_its_square(piece: str) -> None:
    began = time.process_time()
    read_parameters(NAMES, {"description": piece * (200_000 // len(piece))})
    assert time.process_time() - began < 2
