"""Names of jobs and questions, as people type them."""

from __future__ import annotations

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.errors import UsageError
from draftsman.ids import (
    job_name,
    new_id,
    parse_job,
    parse_jobs,
    parse_question,
    question_name,
    run_name,
    unknown_job,
)
from tests.support.cases import cases

NUMBERS = st.integers(1, 10**18 - 1)
SPACES = st.text(" \t\n", max_size=3)


@given(NUMBERS, st.sampled_from(["", "D-", "d-"]), SPACES, SPACES)
def test_a_number_parses_to_a_job(number: int, prefix: str, before: str, after: str) -> None:
    assert parse_job(f"{before}{prefix}{number}{after}").number == number


@given(NUMBERS, st.integers(1, 10**9 - 1))
def test_a_number_with_an_ordinal_parses_to_a_question(number: int, ordinal: int) -> None:
    job, question = parse_question(f" D-{number}/{ordinal} ")
    assert (job.number, question) == (number, ordinal)


def test_a_job_has_one_name() -> None:
    assert [job_name(5), run_name(5, 2), question_name(5, 3)] == ["D-5", "D-5.2", "D-5/3"]
    job, ordinal = parse_question(question_name(5, 3))
    assert (job.number, ordinal) == (5, 3)
    assert str(unknown_job(5)) == "there is no job D-5; see: draftsman jobs"


@given(st.uuids(), st.integers(4, 36), st.booleans())
def test_a_prefix_covers_the_ids_that_start_with_it(id: UUID, length: int, upper: bool) -> None:
    prefix = str(id)[:length]
    if len(prefix.replace("-", "")) < 4:
        return
    ref = parse_job(prefix.upper() if upper else prefix)
    if ref.number is not None:
        assert prefix.isdigit()
    else:
        assert ref.lowest <= id <= ref.highest
        assert str(ref.lowest).startswith(prefix)
        assert str(ref.highest).startswith(prefix)


@given(st.integers(1, 10**17), st.integers(0, 999), st.sampled_from(["", "D-", "d-"]))
def test_a_range_has_all_jobs_between(first: int, more: int, prefix: str) -> None:
    jobs = parse_jobs(f" D-{first}..{prefix}{first + more} ")
    assert [job.number for job in jobs] == [*range(first, first + more + 1)]
    assert parse_jobs(f"D-{first}") == (parse_job(f"D-{first}"),)


@cases("text", ["D-2..D-1", "D-1..D-1001", "D-0..D-5", "D-1..", "..D-5", "D-1...D-5", "D-1/1..D-2"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="job"):
        parse_jobs(text)


@given(st.uuids())
def test_a_whole_id_covers_only_itself(id: UUID) -> None:
    for text in (str(id), id.hex):
        ref = parse_job(text)
        assert ref.number is not None or ref.lowest == ref.highest == id


@given(st.text())
def test_any_text_is_a_name_or_a_usage_error(text: str) -> None:
    for parse in (parse_job, parse_question):
        with contextlib.suppress(UsageError):
            parse(text)


NO_JOBS = ["", " ", "D", "D-", "D-0", "0", "-1", "D-01", "abc", "1.5", "D-1-", "1e3", "D-1 2"]
NO_JOBS += ["\uff12", "g1234567", "1" * 40, "--------", "\x00", "D-1\n2", "dead/beef/"]


@cases("text", NO_JOBS)
def test_an_invalid_job_name_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="is not a job; use D-142") as caught:
        parse_job(text)
    assert "\n" not in str(caught.value)


@cases("text", ["D-1/", "D-1/0", "D-1/01", "D-1/x", "D-1/2/3", "/1", "D-1/ 2"])
def test_an_invalid_question_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a"):
        parse_question(text)


def test_a_job_name_has_no_question() -> None:
    job, ordinal = parse_question("D-7")
    assert (job.number, ordinal) == (7, None)


def test_digits_are_a_number_and_with_a_letter_a_prefix() -> None:
    assert parse_job("12345678").number == 12345678
    assert parse_job("1234567a").number is None
    assert parse_job("01234567").number is None


def test_new_ids_are_ordered_by_time() -> None:
    ids = [new_id() for _ in range(1000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 1000
    assert {id.version for id in ids} == {7}


@cases("text", ["D-142/1", "142/2", " d-142/1 "])
def test_a_question_in_the_place_of_a_job_is_refused_with_its_job(text: str) -> None:
    with pytest.raises(UsageError, match=r"is a question, .*; use (D-|d-)?142"):
        parse_job(text)
