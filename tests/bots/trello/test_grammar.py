"""What a comment says to us."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman_bots.trello.grammar import Word, is_picture, read
from draftsman_bots.trello.ids import after, born, date, iso
from draftsman_bots.trello.text import quoted

ME = "draftsman"
LINE = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=40)
PLAIN = st.from_regex(r"[a-z0-9]{1,10}( [a-z0-9]{1,10}){0,3}", fullmatch=True).filter(
    lambda text: text.split()[0] not in ("approve", "deny")
)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("2", Word("2", "2")),
        ("/answer D-7/1 yes", Word("yes", "yes", True, 7, 1)),
        ("/answer D-7 yes", Word("yes", "yes", True, 7)),
        ("/ANSWER yes", Word("yes", "yes", True)),
        ("@Draftsman, yes please", Word("yes please", "yes please", True)),
        ("@draftsman /answer yes", Word("yes", "yes", True)),
        ("Approve", Word("Approve", "Approve", decision=True)),
        ("/approve D-7/2", Word("", "", True, 7, 2, True)),
        ("@draftsman approve", Word("approve", "approve", True, decision=True)),
        ("deny", Word("deny", "deny", decision=False)),
        (
            "deny not\nnow",
            Word("deny not", "deny not\nnow", decision=False, reason="not\nnow"),
        ),
        ("/deny D-7/2 no", Word("no", "no", True, 7, 2, False, "no")),
        ("/approve it", Word("it", "it", True)),
        ("approve it", Word("approve it", "approve it")),
        ("approve\nit", Word("approve", "approve\nit")),
        ("approved", Word("approved", "approved")),
        ("@anna yes", None),
        ("@draftsmanish yes", None),
        ("/answerable", Word("/answerable", "/answerable")),
        ("", None),
        ("> 2\n\n> 1", None),
        ("D-7/1 yes", Word("D-7/1 yes", "D-7/1 yes")),
    ],
)
def test_it_is_read(text: str, word: Word | None) -> None:
    assert read(text, ME) == word


@given(st.text(max_size=200))
def test_whatever_is_said_is_read_or_not(text: str) -> None:
    word = read(text, ME)
    is_picture(text)
    if word is not None and word.decision:
        assert "approve" in text.casefold()


@given(PLAIN, st.lists(LINE, max_size=4))
def test_what_is_quoted_before_or_fenced_changes_nothing(said: str, others: list[str]) -> None:
    before = quoted("\n".join(others))
    fenced = "\n".join(["```", *(line for line in others if "`" not in line), "```"])
    for text in (f"{before}\n\n{said}", f"{fenced}\n{said}", f"{said}\n{before}"):
        word = read(text, ME)
        assert word is not None
        assert (word.line, word.text) == (said, said)


@given(st.lists(LINE, max_size=4), st.sampled_from(["approve", "/answer 2", "@draftsman 2"]))
def test_what_is_quoted_decides_nothing(others: list[str], said: str) -> None:
    assert read(quoted("\n".join([*others, said])), ME) is None
    assert read(f"```\n{said}\n```", ME) is None
    assert read(f"    {said}", ME) is None


@given(PLAIN, st.integers(1, 10**17), st.integers(1, 10**8))
def test_a_name_is_read_where_it_is_meant(said: str, job: int, question: int) -> None:
    word = read(f"/answer D-{job}/{question} {said}", ME)
    assert word == Word(said, said, True, job, question)


@given(st.datetimes(), st.text(max_size=50), st.from_regex(r"[0-9a-f]{24}", fullmatch=True))
def test_times_are_read_as_trello_writes_them(when: object, text: str, id: str) -> None:
    date(text)
    date(when)
    assert date(iso(born(id))) == born(id)
    later = date(after(id))
    assert later is not None
    assert later > born(id)
