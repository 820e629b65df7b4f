"""Values of results that say how they are shown: made, stored, read back and printed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman import Done, Failure
from draftsman.deliveries.documents.document import Code, Command, Link, Note, Paragraph, Strong
from draftsman.deliveries.documents.markdown_reader import MAX_CODES, read_markdown
from draftsman.deliveries.documents.plain import print_plain
from draftsman.deliveries.documents.shown_results import DETAILS, MAX_CELL, MESSAGE, shown_result
from draftsman.formats.json_data import as_data
from draftsman.job_types.parameters import Results
from draftsman.jobs.runs.outcome import validate_result
from draftsman.results import Link as ResultLink
from draftsman.results import Markdown, Picture, Shown, Table, shown_values
from tests.support.cases import cases

FULL = Command("draftsman show D-7")
TABLE = Table(["region", "orders"], [["eu", 900], ["us", None]])
VALUES: dict[str, Shown] = {
    "table": TABLE,
    "notes": Markdown("**All** well"),
    "report": ResultLink("https://x.example/", "The report"),
    "chart": Picture("chart.png"),
}


def test_values_are_stored_as_json_and_read_back() -> None:
    result = validate_result(Done(VALUES | {"n": 1}))
    assert result is not None
    assert shown_values(json.loads(json.dumps(result))) == VALUES
    stored = Results("t", Table).dump(TABLE)
    assert shown_values(stored) == {"": TABLE}
    assert Results("t", Table).load(stored) == TABLE
    for annotation in (Any, dict[str, object]):
        assert shown_values(Results("t", annotation).dump(VALUES)) == VALUES


def test_a_table_of_objects_has_a_column_for_each_name() -> None:
    assert Table.of([{"a": 1}, {"b": "x", "a": 2}]) == Table(["a", "b"], [[1, None], [2, "x"]])


@cases(
    ("make", "problem"),
    [
        (lambda: Table(["a", "b"], [["eu"]]), "a Table of 2 columns has a row of 1 cells: ['eu']"),
        (lambda: Table(["a"], [[b"x"]]), "a cell of a Table cannot be b'x'"),  # type: ignore[list-item]
        (lambda: Table("ab", []), "the columns of a Table cannot be 'ab'"),  # type: ignore[arg-type]
        (lambda: ResultLink("javascript:alert(1)"), "begins with https:// or http://"),
        (lambda: ResultLink("https://x.example", 1), "the text of a Link cannot be 1"),  # type: ignore[arg-type]
        (lambda: Picture(" "), "the name of an artifact, or an address"),
        (lambda: Markdown(b"x"), "the text of Markdown cannot be b'x'"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_value_is_an_error_where_it_is_made(make: Any, problem: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text follows
        make()
    assert problem in str(caught.value)


@cases(
    "data",
    [
        {"shown": "table"},
        {"shown": "table", "columns": ["a"], "rows": [[1, 2]]},
        {"shown": "table", "columns": ["a"], "rows": [[{}]]},
        {"shown": "link", "url": "javascript:alert(1)"},
        {"shown": "picture", "source": None},
        {"shown": "markdown", "text": "x", "more": 1},
        {"shown": ["table"]},
        {"shown": "chart", "text": "x"},
    ],
)
def test_data_that_is_only_similar_is_data(data: dict[str, Any]) -> None:
    assert shown_values(data) == {}
    assert shown_values({"field": data}) == {}


def test_a_result_that_is_no_json_is_refused() -> None:
    with pytest.raises(Failure):
        validate_result(Done({"n": object()}))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["shown", "text", "url", "rows", "columns"]) | st.text(), JSON)
)
def test_any_data_is_read(data: dict[str, Any]) -> None:
    print_plain(shown_result({"field": data} | data, "D-7", FULL))


def test_sizes_are_bounded_and_the_rest_is_named() -> None:
    long = Table(["n" * 500, *["x"] * 99], [["a\nb" * 500, *[0] * 99]] * 1000)
    result = as_data({"long": long, "text": Markdown("word " * 10_000)})
    for room, rows, most in ((MESSAGE, 20, 6000), (DETAILS, 200, 42_000)):
        _, text, notice, _, table = shown_result(result, "D-7", FULL, room)
        assert (len(table.rows), table.total, len(table.columns)) == (rows, 1000, 21)  # type: ignore[union-attr]
        assert MAX_CELL - 2 < len(table.rows[0][0]) <= MAX_CELL  # type: ignore[union-attr]
        assert isinstance(text, Paragraph)
        assert notice == Note(("Truncated. To read it: ", FULL))
        printed = print_plain((table, text))
        assert len(printed) < most
        assert "more rows: draftsman show D-7" in printed
        assert "… 80 more\n" in printed
    many = as_data({str(number): TABLE for number in range(100)})
    assert shown_result(many, "D-7", FULL)[2 * 20 :] == (Note(("… and 80 more values: ", FULL)),)
    numbers = as_data(Table(["n"], [[number] for number in range(200)]))
    assert "\n199" in print_plain(shown_result(numbers, "D-7", FULL, DETAILS))


def test_columns_are_lined_up_also_of_wide_characters() -> None:
    table = Table(["name", "n"], [["日本", 5], ["eu", 1200], ["é", None]])
    assert print_plain(shown_result(as_data(table), "D-7", FULL)).split("\n") == [
        "name  n",
        "──────────",
        "日本     5",
        "eu    1200",
        "é",
    ]


@cases(
    ("source", "parts"),
    [
        ("# Title #\n\n**a** b", [Paragraph((Strong("Title"), "\n\n", Strong("a"), " b"), 900)]),
        (
            "[x](https://x.example/) [y](javascript:1)",
            [Paragraph(("x (", Link("https://x.example/"), ")", " [y](javascript:1)"), 900)],
        ),
        ("<https://x.example/>", [Paragraph((Link("https://x.example/"),), 900)]),
        (
            "[**b** c](https://x.example/)",
            [Paragraph(("b c (", Link("https://x.example/"), ")"), 900)],
        ),
        ("[m](mailto:a@x.example)", [Paragraph(("m (mailto:a@x.example)",), 900)]),
        ("- a\n  * b\n", [Paragraph(("• ", "a", "\n", "  • ", "b"), 900)]),
        ("2. a\n3. b", [Paragraph(("2. ", "a", "\n", "3. ", "b"), 900)]),
        ("> a\n> b", [Paragraph(("> ", "a", "\n> ", "b"), 900)]),
        ("*c* `d`\ne", [Paragraph(("c `d`", "\n", "e"), 900)]),
        (
            "a\n```py\n# b\n````\nc",
            [
                Paragraph(("a",), 900),
                Code("# b", 900, language="py", full=FULL),
                Paragraph(("c",), 900),
            ],
        ),
        ("~~~\n```\n", [Code("```", 900, full=FULL)]),
        (" \n\n", []),
        ("<b>&**", [Paragraph(("<b>&**",), 900)]),
    ],
)
def test_markdown_is_read(source: str, parts: list[Any]) -> None:
    assert [*read_markdown(source, 900, FULL)] == parts


@given(st.text("a *`~#[](:)/-\nhtps"))
def test_any_markdown_is_read(source: str) -> None:
    parts = [*read_markdown(source, 900, FULL)]
    assert sum(isinstance(part, Code) for part in parts) <= MAX_CODES
    assert bool(parts) or not re.search(r"[ahtps]", source)
