"""For which question or job a text is: one rule each, in a place without a channel."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.questions.answer import Answer
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman_bots.conversation.parser import FORGE, REPLY, SLACK, parse
from draftsman_bots.conversation.resolution import (
    Change,
    Outcome,
    Place,
    PlacedJob,
    PlacedQuestion,
    Resolved,
    Talk,
    WrittenText,
    resolve,
)
from draftsman_testing.channel import samples
from draftsman_testing.channel.samples import WHEN
from tests.support.cases import cases

MINUTE: Final = timedelta(minutes=1)
NOW: Final = WHEN + 10 * MINUTE
DIALECTS: Final = {Talk.ALL: SLACK, Talk.PERMITTED: REPLY, Talk.NONE: FORGE}
RESPONDER: Final = frozenset({"D-7/1", "D-7/2"})


def asked(ordinal: int = 1, **fields: Any) -> Question:
    """Return an open question with the choices red and blue."""
    fields = {"freeform_allowed": False, "asked_at": WHEN} | fields
    return samples.question(ordinal=ordinal, **fields)


CHOICE: Final = asked()
FREE: Final = asked(2, choices=[], freeform_allowed=True)
APPROVAL: Final = asked(3, kind=QuestionKind.APPROVAL, choices=[])
WORDS: Final = asked(4, choices=[{"value": "approve", "label": "Approve"}])
CLOSED: Final = asked(
    status=QuestionStatus.ANSWERED, answered_at=WHEN + 5 * MINUTE, freeform_allowed=True
)
GATE_CLOSED: Final = replace(
    CLOSED, ordinal=3, kind=QuestionKind.APPROVAL, choices=[], freeform_allowed=False
)


def recorded(key: str, *, accepted: bool = True, voter: str = "ben", ordinal: int = 1) -> Answer:
    """Return a recorded answer."""
    return Answer(
        id=1,
        job=7,
        question=ordinal,
        kind="input",
        source="slack",
        source_event_id=key,
        responder_id=voter,
        responder_display_name=None,
        voter=voter,
        payload={},
        accepted=accepted,
        reason=None,
        created_at=NOW,
    )


def resolved(text: str, *questions: Question, talk: Talk = Talk.ALL, **fields: Any) -> Resolved:
    """Resolve a text in a place with these questions of D-7, or with `jobs`."""
    place = Place(
        talk=talk,
        questions=[PlacedQuestion(question) for question in questions],
        jobs=fields.pop("jobs", [PlacedJob(7)]),
        answers=fields.pop("answers", ()),
        voter="ben",
        permitted=fields.pop("permitted", RESPONDER),
    )
    bot = "" if talk is Talk.ALL else "draftsman"
    addressed = talk is Talk.ALL and text.startswith("@draftsman ")
    parsed = parse(
        text.removeprefix("@draftsman ") if addressed else text,
        DIALECTS[talk],
        name=bot,
        addressed=addressed,
    )
    return resolve(WrittenText(parsed, "key", **{"written": NOW} | fields), place)


def short(result: Resolved) -> tuple[str, list[int]]:
    """Return the outcome and the questions."""
    return str(result.outcome), [question.ordinal for question in result.questions]


@pytest.mark.parametrize("talk", Talk)
@cases(
    ("text", "questions", "outcome", "ordinals"),
    [
        ("red", [CHOICE], "answer", [1]),
        ("1", [CHOICE], "answer", [1]),
        ("9", [CHOICE], "answer", [1]),
        ("red\nthanks", [CHOICE], "answer", [1]),
        ("/answer green", [CHOICE], "answer", [1]),
        ("red", [CHOICE, CLOSED], "answer", [1]),
        ("/answer D-7/2 red", [CHOICE, FREE], "answer", [2]),
        ("@draftsman D-7/2 red", [CHOICE, FREE], "answer", [2]),
        ("/answer red", [CHOICE, APPROVAL], "answer", [1]),
        ("/answer red", [CHOICE, asked(5)], "ambiguous", [5, 1]),
        ("/answer green", [CHOICE, FREE], "answer", [2]),
        ("approve", [APPROVAL], "answer", [3]),
        ("approve", [APPROVAL, FREE], "answer", [3]),
        ("approve", [APPROVAL, asked(5, kind=QuestionKind.APPROVAL)], "ambiguous", [5, 3]),
        ("approve", [WORDS], "answer", [4]),
        ("/approve", [WORDS], "wrong_kind", [4]),
        ("/deny it", [FREE], "wrong_kind", [2]),
        ("/approve if it works", [APPROVAL], "wrong_kind", [3]),
        ("approve D-7/3 if it works", [APPROVAL], "wrong_kind", [3]),
        ("approve D-7/9", [APPROVAL], "not_here", []),
        ("deny D-8/3 no", [APPROVAL], "not_here", []),
        ("yes", [APPROVAL], "wrong_kind", [3]),
        ("/answer yes", [APPROVAL], "wrong_kind", [3]),
        ("@draftsman /paus", [FREE], "unknown_command", [2]),
        ("/answer", [FREE], "no_text", [2]),
        ("/answer", [CLOSED], "answer", [1]),
        ("thanks", [CLOSED], "talk", []),
        ("/answer red", [CLOSED], "answer", [1]),
        ("red", [CLOSED], "answer", [1]),
        ("approve", [GATE_CLOSED], "answer", [3]),
        ("approve", [CLOSED], "talk", []),
        ("/approve", [CLOSED], "not_here", []),
        ("/answer it", [], "not_here", []),
        ("/tell use v2", [FREE], "command", []),
        ("/draftsman pause", [FREE], "command", []),
        ("@draftsman pause", [CHOICE], "command", []),
        ("@draftsman pause", [FREE], "answer", [2]),
        ("/ack 2h", [CHOICE], "command", [1]),
        ("/ack 2h", [CHOICE, FREE], "ambiguous", [2, 1]),
        ("/ack D-7/2 2h", [CHOICE, FREE], "command", [2]),
        ("/ack", [CLOSED], "ambiguous", [1]),
        ("/ack", [], "not_here", []),
    ],
)  # fmt: skip
def test_a_text_is_for_the_same_question_in_each_place(
    talk: Talk, text: str, questions: list[Question], outcome: str, ordinals: list[int]
) -> None:
    if text == "thanks" and talk is Talk.ALL:
        outcome = "message"  # any text of the thread is for the job
    if text == "/answer" and CLOSED in questions:
        outcome, ordinals = "talk", []
    assert short(resolved(text, *questions, talk=talk)) == (outcome, ordinals)


@cases(
    ("text", "thread", "card", "forge"),
    [
        ("let us talk", "answer", "answer", "talk"),
        ("/paus it", "unknown_command", "unknown_command", "talk"),
        ("@draftsman let us talk", "answer", "answer", "answer"),
    ],
)
def test_a_free_text_is_an_answer_where_people_do_not_also_talk(
    text: str, thread: str, card: str, forge: str
) -> None:
    outcomes = [resolved(text, FREE, talk=talk).outcome for talk in (Talk.ALL, Talk.PERMITTED)]
    assert outcomes == [thread, card]
    assert resolved(text, FREE, talk=Talk.NONE).outcome == forge
    stranger = resolved(text, FREE, talk=Talk.PERMITTED, permitted=frozenset())
    assert (stranger.outcome == "talk") is not text.startswith("@")


def test_repeated_text_is_for_the_question_that_it_has_answered() -> None:
    answers = [recorded("key")]
    result = resolved("red", CLOSED, FREE, answers=answers)
    assert short(result) == ("answer", [1])
    assert resolved("red", CLOSED, FREE, answers=[recorded("key:edit")]).outcome == "repeated"
    assert short(resolved("red", FREE, answers=[recorded("key2")])) == ("answer", [2])


def test_edit_or_deletion_of_an_accepted_answer_changes_nothing() -> None:
    for change, outcome in (
        (Change.EDITED, Outcome.ANSWER_EDITED),
        (Change.DELETED, Outcome.ANSWER_DELETED),
    ):
        result = resolved("blue", CLOSED, answers=[recorded("key")], change=change, version="key:2")
        assert (result.outcome, result.answer) == (outcome, recorded("key"))
    edited: dict[str, Any] = {"change": Change.EDITED, "version": "key:2"}
    again = resolved("blue", CLOSED, answers=[recorded("key:2")], **edited)
    assert again.outcome is Outcome.REPEATED
    refused = resolved("blue", CHOICE, answers=[recorded("key", accepted=False)], **edited)
    assert short(refused) == ("answer", [1]), "before acceptance, the latest text counts"
    assert resolved("blue", CHOICE, change=Change.DELETED).outcome is Outcome.TALK


@cases("text", ["/tell use v2", "/cancel", "/ack 2h", "/draftsman pause D-7 it"])
def test_an_edited_command_is_not_executed(text: str) -> None:
    result = resolved(text, CHOICE, change=Change.EDITED, version="key:2")
    assert result.outcome is Outcome.EDITED_COMMAND


def test_late_text_is_for_no_question_that_was_asked_after_it() -> None:
    later = replace(FREE, asked_at=WHEN + 6 * MINUTE)
    early = WHEN + 2 * MINUTE
    assert short(resolved("blue", CLOSED, later, written=early)) == ("answer", [1])
    assert short(resolved("dark", CLOSED, later, written=early)) == ("answer", [1])
    assert short(resolved("dark", CLOSED, later, written=NOW)) == ("answer", [2])
    assert short(resolved("dark", later, written=early)) == ("answer", [2]), "clocks differ"
    placed = PlacedQuestion(later, since=WHEN + 3 * MINUTE)
    place = Place(Talk.ALL, [placed], [PlacedJob(7)])
    text = WrittenText(parse("dark", SLACK), "key", early)
    assert resolve(text, place).outcome is Outcome.MESSAGE, "the place has its own clock"


def test_a_refusal_is_not_repeated_for_a_late_answer() -> None:
    for answer, outcome in (
        (recorded("other", accepted=False), "talk"),
        (recorded("other"), "answer"),
        (recorded("other", accepted=False, voter="anna"), "answer"),
    ):
        assert resolved("red", CLOSED, answers=[answer]).outcome == outcome


@cases(
    ("text", "jobs", "outcome", "numbers"),
    [
        ("/pause it", [PlacedJob(9), PlacedJob(7, finished=True)], "command", [9]),
        ("/resume", [PlacedJob(9, finished=True), PlacedJob(7, finished=True)], "command", [9]),
        ("/pause it", [PlacedJob(9), PlacedJob(7)], "which_job", [9, 7]),
        ("/pause D-7 it", [PlacedJob(9), PlacedJob(7)], "command", [7]),
        ("/cancel 7", [PlacedJob(9), PlacedJob(7)], "command", [7]),
        ("/tell it", [PlacedJob(9, is_agent=False), PlacedJob(7)], "command", [7]),
        ("/tell it", [PlacedJob(9, is_agent=False)], "which_job", []),
        ("/pause it", [], "which_job", []),
    ],
)
def test_a_command_is_for_the_only_unfinished_job(
    text: str, jobs: list[PlacedJob], outcome: str, numbers: list[int]
) -> None:
    result = resolved(text, jobs=jobs)
    assert (str(result.outcome), list(result.jobs)) == (outcome, numbers)


def test_a_file_is_no_answer_but_a_message() -> None:
    assert resolved("", FREE).outcome is Outcome.TALK
    empty = WrittenText(parse("x", SLACK), "key", is_file=True)
    place = Place(Talk.ALL, [PlacedQuestion(FREE)], [PlacedJob(7)])
    assert resolve(empty, place).outcome is Outcome.NO_TEXT
    assert resolve(empty, replace(place, questions=[])).outcome is Outcome.MESSAGE


QUESTIONS = st.lists(
    st.sampled_from([CHOICE, FREE, APPROVAL, WORDS, CLOSED, GATE_CLOSED]),
    max_size=4,
    unique_by=lambda question: question.ordinal,
)
TEXTS = st.sampled_from([
    "1", "red", "approve", "deny it", "/approve", "/deny D-7/3", "/answer D-7/2 it", "@draftsman 1",
    "/answer red", "it", "approve D-7/3", "@draftsman approve", "/tell it", "/ack", "D-7/1 red",
])  # fmt: skip


@given(TEXTS, QUESTIONS, st.sampled_from(Talk))
def test_nothing_is_guessed(text: str, questions: list[Question], talk: Talk) -> None:
    result = resolved(text, *questions, talk=talk)
    named = next((item for item in (1, 2, 3) if f"D-7/{item}" in text), None)
    if result.outcome is Outcome.ANSWER:
        (question,) = result.questions
        assert question in questions
        is_gate = question.kind is QuestionKind.APPROVAL
        assert is_gate is (result.decision is not None)
        if named is not None and text != "D-7/1 red":
            assert question.ordinal == named
        if is_gate:
            assert "approve" in text or "deny" in text
            gates = [item for item in questions if item.kind is QuestionKind.APPROVAL]
            alike = [item for item in gates if item.status is question.status]
            assert named is not None or len(alike) == 1
    if result.outcome is Outcome.AMBIGUOUS and text != "/ack":
        assert len(result.questions) > 1


FIXES: Final = asked(
    choices=[
        {"value": "safe", "label": "safe fixes"},
        {"value": "all", "label": "all fixes"},
        {"value": "stop", "label": "change nothing"},
    ]
)
NEARLY: Final = (
    "safe fixs",
    "Safe fix",
    "saef fixes",
    "safe.",
    "allfixes",
    "change nothin!",
    "chan",
)
ORDINARY: Final = (
    "I think the safe fixes are fine",
    "what are safe fixs?",
    "ok",
    "al",
    "no",
    "thanks!",
    "@ben safe fixs",
    "safe fixs\n\nor do we want all of them?",
)


@cases("talk", [*Talk])
def test_a_mistyped_choice_is_for_its_question_in_each_place(talk: Talk) -> None:
    for text in NEARLY:
        for permitted in (RESPONDER, frozenset()):
            found = resolved(text, FIXES, APPROVAL, talk=talk, permitted=permitted)
            assert (found.outcome, found.questions) == (Outcome.ANSWER, [FIXES]), text


@cases("talk", [Talk.PERMITTED, Talk.NONE])
def test_ordinary_talk_beside_a_choice_gets_no_reply(talk: Talk) -> None:
    for text in ORDINARY:
        assert resolved(text, FIXES, talk=talk).outcome is Outcome.TALK, text
