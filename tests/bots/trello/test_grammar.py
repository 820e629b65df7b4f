"""Parser of comments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman_bots.answer_resolution import Decision
from draftsman_bots.trello.ids import created_at, format_time, just_after, parse_time
from draftsman_bots.trello.markdown import blockquote
from draftsman_bots.trello.parsers.comment_parser import ParsedComment, is_attachment_only, parse

ME = "draftsman"
LINE = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=40)
PLAIN = st.from_regex(r"[a-z0-9]{1,10}( [a-z0-9]{1,10}){0,3}", fullmatch=True).filter(
    lambda text: text.split()[0] not in ("approve", "deny")
)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("2", ParsedComment("2", "2")),
        ("/answer D-7/1 yes", ParsedComment("yes", "yes", True, 7, 1)),
        ("/answer D-7 yes", ParsedComment("yes", "yes", True, 7)),
        ("/ANSWER yes", ParsedComment("yes", "yes", True)),
        ("@Draftsman, yes please", ParsedComment("yes please", "yes please", True)),
        ("@draftsman /answer yes", ParsedComment("yes", "yes", True)),
        ("Approve", ParsedComment("Approve", "Approve", decision=Decision(True))),
        ("/approve D-7/2", ParsedComment("", "", True, 7, 2, Decision(True))),
        ("@draftsman approve", ParsedComment("approve", "approve", True, decision=Decision(True))),
        ("deny", ParsedComment("deny", "deny", decision=Decision(False))),
        (
            "deny not\nnow",
            ParsedComment("deny not", "deny not\nnow", decision=Decision(False, "not\nnow")),
        ),
        ("/deny D-7/2 no", ParsedComment("no", "no", True, 7, 2, Decision(False, "no"))),
        ("/approve it", ParsedComment("it", "it", True)),
        ("approve it", ParsedComment("approve it", "approve it")),
        ("approve\nit", ParsedComment("approve", "approve\nit")),
        ("approved", ParsedComment("approved", "approved")),
        ("@anna yes", None),
        ("@draftsmanish yes", None),
        ("/answerable", ParsedComment("/answerable", "/answerable")),
        ("", None),
        ("> 2\n\n> 1", None),
        ("D-7/1 yes", ParsedComment("D-7/1 yes", "D-7/1 yes")),
    ],
)
def test_it_is_read(text: str, word: ParsedComment | None) -> None:
    assert parse(text, ME) == word


@given(st.text(max_size=200))
def test_whatever_is_said_is_read_or_not(text: str) -> None:
    word = parse(text, ME)
    is_attachment_only(text)
    if word is not None and word.decision and word.decision.approved:
        assert "approve" in text.casefold()


@given(PLAIN, st.lists(LINE, max_size=4))
def test_what_is_quoted_before_or_fenced_changes_nothing(said: str, others: list[str]) -> None:
    before = blockquote("\n".join(others))
    fenced = "\n".join(["```", *(line for line in others if "`" not in line), "```"])
    for text in (f"{before}\n\n{said}", f"{fenced}\n{said}", f"{said}\n{before}"):
        word = parse(text, ME)
        assert word is not None
        assert (word.line, word.text) == (said, said)


@given(st.lists(LINE, max_size=4), st.sampled_from(["approve", "/answer 2", "@draftsman 2"]))
def test_what_is_quoted_decides_nothing(others: list[str], said: str) -> None:
    assert parse(blockquote("\n".join([*others, said])), ME) is None
    assert parse(f"```\n{said}\n```", ME) is None
    assert parse(f"    {said}", ME) is None


@given(PLAIN, st.integers(1, 10**17), st.integers(1, 10**8))
def test_a_name_is_read_where_it_is_meant(said: str, job: int, question: int) -> None:
    word = parse(f"/answer D-{job}/{question} {said}", ME)
    assert word == ParsedComment(said, said, True, job, question)


@given(st.datetimes(), st.text(max_size=50), st.from_regex(r"[0-9a-f]{24}", fullmatch=True))
def test_times_are_read_as_trello_writes_them(when: object, text: str, id: str) -> None:
    parse_time(text)
    parse_time(when)
    assert parse_time(format_time(created_at(id))) == created_at(id)
    later = parse_time(just_after(id))
    assert later is not None
    assert later > created_at(id)
