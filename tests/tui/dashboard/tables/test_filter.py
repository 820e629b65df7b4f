"""Filters: parsing, formatting and matching."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.entities.terms import ColumnTerm
from draftsman.errors import UsageError
from draftsman_tui.dashboard.tables.filter import HEADS, NOTHING, Filter, FilterFields, parse
from draftsman_tui.dashboard.views import VIEWS
from tests.support.cases import cases

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ROW = FilterFields(
    "D-7 Tidy the basement of pay",
    "failed",
    "acme/pay",
    "slack:U1",
    "tidy",
    ("urgent",),
    NOW - timedelta(hours=2),
    repo_host="git.example",
)
SAID = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1)
KNOWN = re.compile(
    r"(channel|repository|state|status|repo|by|agent|tag|source|for):", re.IGNORECASE
)
WORD = SAID.filter(
    lambda text: not text.startswith(("-", "/", "age<", "age>")) and not KNOWN.match(text)
) | st.sampled_from(["bogus:x", "a:'b", "http://x"])
TERM = st.builds(ColumnTerm, st.sampled_from(["title", "type", "queue"]), st.just(":"), SAID) | (
    st.builds(ColumnTerm, st.just("runs"), st.sampled_from("<>"), st.integers(0).map(str))
)
AGE = st.none() | st.integers(1, 10**6).map(float)
FILTERS = st.builds(
    Filter,
    words=st.lists(WORD, max_size=3).map(tuple),
    without=st.lists(SAID, max_size=2).map(tuple),
    statuses=st.sampled_from([(), ("failed",), ("failed", "dead_letter")]),
    repo=st.none() | SAID,
    by=st.none() | SAID,
    agent=st.none() | SAID,
    tag=st.none() | SAID,
    columns=st.lists(TERM, max_size=2).map(tuple),
    older=AGE,
    newer=AGE,
)


@cases(
    ("text", "expected"),
    [
        ("", True),
        ("tidy BASEMENT", True),
        ("tidy attic", False),
        ("'the basement'", True),
        ("-attic", True),
        ("-basement", False),
        ("status:failed", True),
        ("status:dead-letter,failed", True),
        ("status:waiting", False),
        ("repo:pay", True),
        ("repo:acme/pay", True),
        ("repo:git.example/Acme/pay", True),
        ("repo:other.example/acme/pay", False),
        ("repo:acme", False),
        ("by:U1", True),
        ("by:slack:u1", True),
        ("agent:tidy tag:urgent", True),
        ("tag:other", False),
        ("age>1h", True),
        ("age<1h", False),
        ("age>1h age<3h", True),
        ("age<2019-12-31", True),
        ("age>2019-12-31", False),
        ("/base?ment/", True),
        ("/^basement/", False),
        ("status:failed /D-\\d+ t/", True),
    ],
)
def test_row_matches_if_every_term_matches(text: str, expected: bool) -> None:
    assert parse(text).matches(ROW, NOW) is expected


def test_row_without_a_time_matches_no_age() -> None:
    assert not parse("age>1s").matches(FilterFields("x"), NOW)


@cases(
    ("text", "message"),
    [
        ("status:", "status: needs a value"),
        ("title:", "title: needs a value, as in title:VALUE"),
        ("cost>", "cost> needs a number, such as 3"),
        ("age>", "age> needs a duration or a time, as in age>1d"),
        ("Status=failed", "filters have no =; did you mean status:failed?"),
        ("runs>=2", "filters have no >=; did you mean runs>2?"),
        ("age<=2h", "filters have no <=; did you mean age<2h?"),
        ("status!=failed", "filters have no !=; name the values that you want"),
        ("status:,", "status:failed"),
        ("age>soon", "yesterday 9:00"),
        ("/(/", "invalid regular expression"),
        ("/(?=a)/", "invalid regular expression"),
        ("/((a{100}){100}){100}/", "invalid regular expression"),
        ("/a/ /b/", "one regular expression"),
        ("'open", "missing closing quote"),
        (
            "bogus:x",
            "unknown field 'bogus'; fields: status: repo: by: agent: tag: source: group: for: job:",
        ),
        ("stats:failed", "did you mean status:?"),
        ("csot>1", "unknown column 'csot'; did you mean cost? to search for this text"),
        ("foo<12", "quote it: 'foo<12'"),
        ("ValueError:", "to search for this text, quote it: 'ValueError:'"),
        ("-status:failed", "- excludes words only"),
        ("age:2h", "age<2h"),
        ("x" * 501, "longer than 500"),
    ],
)
def test_invalid_filter_is_rejected_in_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


@cases("bomb", ["(a+)+$", "^(a|a)*$", "(.*a){20}$", "^a*a*a*a*a*a*$", "(?:a?){99}a{99}$"])
def test_regular_expressions_take_linear_time(bomb: str) -> None:
    row = FilterFields("a" * 998 + "!")
    assert not parse(f"/{bomb}/").matches(row, NOW)
    assert parse(f"/{bomb}/").matches(FilterFields("A" * 999), NOW)


def test_words_also_match_the_text_of_columns() -> None:
    row = replace(ROW, column_text="D-7 gate approve or deny")
    assert parse("gate /^D-7 gate/ tidy").matches(row, NOW)
    assert not parse("-gate").matches(row, NOW)


def test_quoted_word_may_look_like_a_field() -> None:
    assert parse("'bogus:x' \"ValueError: no\"").words == ("bogus:x", "ValueError: no")
    assert parse("12:30 D-7:").words == ("12:30", "D-7:")
    assert parse("Repository:pay state:dead-letter") == parse("repo:pay status:dead_letter")


def test_url_is_a_word() -> None:
    assert parse("https://a.example/b").words == ("https://a.example/b",)
    assert parse("a/b /c").words == ("a/b", "/c")


@given(FILTERS)
def test_formatted_filter_parses_to_the_same_filter(row_filter: Filter) -> None:
    if len(str(row_filter)) <= 500:
        assert parse(str(row_filter)) == row_filter


@given(st.text(max_size=600))
def test_any_text_is_a_filter_or_is_rejected(text: str) -> None:
    try:
        parsed = parse(text)
    except UsageError:
        return
    assert parsed.matches(ROW, NOW) in (True, False)


@given(FILTERS, st.sampled_from(["words", "without", "statuses", "repo", "by", "older"]))
def test_each_term_only_narrows(row_filter: Filter, part: str) -> None:
    nothing: Any = getattr(NOTHING, part)
    if row_filter.matches(ROW, NOW):
        assert replace(row_filter, **{part: nothing}).matches(ROW, NOW)


def test_heads_are_the_columns_that_have_no_field() -> None:
    heads = {column.head.casefold() for view in VIEWS.values() for column in view.columns}
    words = {head for head in heads if head.isalpha()}
    fields = {"age", "agent", "by", "for", "group", "job", "kind", "repo", "repository", "status"}
    assert words - fields == HEADS.keys()
