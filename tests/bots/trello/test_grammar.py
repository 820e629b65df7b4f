"""Parser of comments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from draftsman.deliveries.documents.markdown import quoted
from draftsman_bots.conversation.answers import ApprovalDecision
from draftsman_bots.conversation.comments import ParsedComment, is_attachment_only, parse
from draftsman_bots.trello.ids import created_at, format_time, just_after, parse_time
from tests.support.cases import cases

ME = "draftsman"
LINE = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=40)
PLAIN = st.from_regex(r"[a-z0-9]{1,10}( [a-z0-9]{1,10}){0,3}", fullmatch=True).filter(
    lambda text: text.split()[0] not in ("approve", "deny")
)


@cases(
    ("text", "comment"),
    [
        ("2", ParsedComment("2", "2")),
        ("/answer D-7/1 yes", ParsedComment("yes", "yes", True, 7, 1)),
        ("/answer D-7 yes", ParsedComment("yes", "yes", True, 7)),
        ("/ANSWER yes", ParsedComment("yes", "yes", True)),
        ("@Draftsman, yes please", ParsedComment("yes please", "yes please", True)),
        ("@draftsman /answer yes", ParsedComment("yes", "yes", True)),
        ("Approve", ParsedComment("Approve", "Approve", decision=ApprovalDecision(True))),
        ("/approve D-7/2", ParsedComment("", "", True, 7, 2, ApprovalDecision(True))),
        (
            "@draftsman approve",
            ParsedComment("approve", "approve", True, decision=ApprovalDecision(True)),
        ),
        ("deny", ParsedComment("deny", "deny", decision=ApprovalDecision(False))),
        (
            "deny not\nnow",
            ParsedComment(
                "deny not", "deny not\nnow", decision=ApprovalDecision(False, "not\nnow")
            ),
        ),
        ("/deny D-7/2 no", ParsedComment("no", "no", True, 7, 2, ApprovalDecision(False, "no"))),
        ("/approve it", ParsedComment("it", "it", True)),
        ("approve it", ParsedComment("approve it", "approve it")),
        ("approve\nit", ParsedComment("approve", "approve\nit")),
        ("approved", ParsedComment("approved", "approved")),
        ("@anna yes", None),
        ("@draftsmanish yes", None),
        ("/paus now", ParsedComment("/paus now", "/paus now", unknown="paus")),
        ("@draftsman /paus", ParsedComment("/paus", "/paus", True, unknown="paus")),
        ("/answer /etc", ParsedComment("/etc", "/etc", True)),
        ("/etc/hosts", ParsedComment("/etc/hosts", "/etc/hosts")),
        ("/answerable", ParsedComment("/answerable", "/answerable", unknown="answerable")),
        ("", None),
        ("> 2\n\n> 1", None),
        ("D-7/1 yes", ParsedComment("D-7/1 yes", "D-7/1 yes")),
    ],
)
def test_comment_is_parsed(text: str, comment: ParsedComment | None) -> None:
    assert parse(text, ME) == comment


@given(st.text(max_size=200))
def test_any_comment_is_parsed_or_ignored(text: str) -> None:
    comment = parse(text, ME)
    is_attachment_only(text)
    if comment is not None and comment.decision and comment.decision.approved:
        assert "approve" in text.casefold()


@given(PLAIN, st.lists(LINE, max_size=4))
def test_quoted_or_fenced_text_does_not_change_the_answer(answer: str, others: list[str]) -> None:
    before = quoted("\n".join(others))
    fenced = "\n".join(["```", *(line for line in others if "`" not in line), "```"])
    for text in (f"{before}\n\n{answer}", f"{fenced}\n{answer}", f"{answer}\n{before}"):
        comment = parse(text, ME)
        assert comment is not None
        assert (comment.line, comment.text) == (answer, answer)


@given(st.lists(LINE, max_size=4), st.sampled_from(["approve", "/answer 2", "@draftsman 2"]))
def test_quoted_text_decides_nothing(others: list[str], answer: str) -> None:
    assert parse(quoted("\n".join([*others, answer])), ME) is None
    assert parse(f"```\n{answer}\n```", ME) is None
    assert parse(f"    {answer}", ME) is None


@given(PLAIN, st.integers(1, 10**17), st.integers(1, 10**8))
def test_command_can_name_its_question(answer: str, job: int, question: int) -> None:
    comment = parse(f"/answer D-{job}/{question} {answer}", ME)
    assert comment == ParsedComment(answer, answer, True, job, question)


@given(st.datetimes(), st.text(max_size=50), st.from_regex(r"[0-9a-f]{24}", fullmatch=True))
def test_times_are_parsed_in_trello_format(when: object, text: str, id: str) -> None:
    parse_time(text)
    parse_time(when)
    assert parse_time(format_time(created_at(id))) == created_at(id)
    later = parse_time(just_after(id))
    assert later is not None
    assert later > created_at(id)
