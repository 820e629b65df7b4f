"""Rendering of messages as comments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.formats.truncation import utf16_length
from draftsman.jobs.job import Mode, RequestSummary, Status
from draftsman.jobs.status_display import STATUSES
from draftsman.people.spans import ActorRef, decode_spans, encode_spans, spans_text
from draftsman.questions.question import QuestionKind, QuestionStatus
from draftsman_bots.trello.deliveries.markdown import MAX_COMMENT, marker_of, with_marker
from draftsman_bots.trello.deliveries.member_names import names_members
from draftsman_bots.trello.deliveries.render import (
    render,
    template_fields,
)
from draftsman_bots.trello.records.cards import FIELDS
from draftsman_testing.channel import samples
from draftsman_testing.channel.samples import question
from tests.bots.messages import messages, words
from tests.bots.trello.channel_fixtures import person
from tests.support.cases import cases

ANNA = "5f1e0c9a8b7d6e5f4a3b2c1d"
NAMES = {ANNA: "anna"}
NASTY = "@ben **b** [x](http://evil) ``` <b>"
SHOWN = "@\u200bben \\*\\*b\\*\\* \\[x\\](http:\u200b//evil) \\`\\`\\` \\<b\\>"
WORDS = words("*_`@")
ACCOUNTS = st.sampled_from([ANNA, "x", ""])
GATE = {"kind": QuestionKind.APPROVAL, "choices": []}


def message_of(kind: DeliveryKind, **fields: Any) -> Message:
    return samples.message(kind, **fields)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(WORDS, ACCOUNTS, person))
def test_any_message_is_valid_and_mentions_only_addressed_people(message: Message) -> None:
    text = with_marker(render(message, NAMES), message.marker)
    assert 1 <= utf16_length(text) <= MAX_COMMENT
    assert marker_of(text) == message.marker
    assert text.count("\n```") % 2 == 0 or text.startswith("```")
    mentioned = {text[at + 1 : at + 5] for at, char in enumerate(text) if char == "@"}
    assert all(name == "anna" or name[:1] in ("", "\u200b", "…", "\n") for name in mentioned)
    text.encode()


def test_question_shows_how_to_answer() -> None:
    asked = question(choices=[{"value": "r", "label": NASTY, "description": "1. x"}])
    text = render(message_of(DeliveryKind.QUESTION, question=asked))
    assert f"1. {SHOWN} - 1\\. x" in text
    assert "To answer, comment the number, or `/answer` and free text." in text


def test_a_question_shows_the_changes_to_review_and_those_since_the_last_approval() -> None:
    changes = "3 files changed, +9 -1; since D-1/1: 2 files changed, +1 -0"
    for asked in (question(), question(**GATE)):
        text = render(replace(message_of(DeliveryKind.QUESTION, question=asked), changes=changes))
        assert "since D-1/1: 2 files changed, \\+1 \\-0" in text or changes in text
        assert f"`draftsman diff {asked.name}`" in text


def test_a_result_shows_tokens_and_cost() -> None:
    built = message_of(DeliveryKind.RESULT)
    used = replace(built.subject, usage="1,020 tokens, $0.42")
    assert " · 1,020 tokens, $0.42 · " in render(replace(built, subject=used))


def test_a_result_tells_attached_data_from_truncated_text() -> None:
    built = message_of(DeliveryKind.RESULT)
    short = replace(built.subject, result={"summary": "Fixed", "data": {"rows": [{"id": 3}]}})
    text = render(replace(built, subject=short))
    assert text.endswith("The data of the result is attached to the card.")
    long = replace(built.subject, result={"summary": "word " * 1000})
    assert render(replace(built, subject=long)).endswith(
        "Truncated. The full text is attached to the card."
    )


def test_a_paused_job_shows_who_paused_it_and_why() -> None:
    message = message_of(DeliveryKind.STATUS)
    paused = replace(message.subject, paused_by="anna", pause_reason="no *API*")
    assert " · paused by anna: no \\*API\\* · " in render(replace(message, subject=paused))


def test_a_running_job_shows_its_plan_and_newest_line() -> None:
    progress = {"progress": {"plan": "3 of 7 steps: *write*", "line": "▸ npm test"}}
    message = message_of(DeliveryKind.STATUS, payload=progress)
    running = replace(message, subject=replace(message.subject, status=Status.RUNNING))
    assert render(running).endswith("\n\n3 of 7 steps: \\*write\\*\n\n▸ npm test")
    assert "steps" not in render(message)


def test_questions_without_choices_and_approvals_show_how_to_answer() -> None:
    free = render(message_of(DeliveryKind.QUESTION, question=question(choices=[])))
    assert "To answer, comment `/answer` and your answer." in free
    gate = render(message_of(DeliveryKind.QUESTION, question=question(**GATE, quorum=2)))
    how = "To answer, comment `approve`, or `deny` and a reason."
    assert f"2 approvals are needed. {how}" in gate


def test_choices_are_truncated_to_fit() -> None:
    many = [{"value": str(n), "label": "x" * 75} for n in range(500)]
    text = render(message_of(DeliveryKind.QUESTION, question=question(choices=many)))
    assert "more: `draftsman show D-7`" in text
    assert "This allows" not in text


def test_addressed_people_are_mentioned_if_they_are_members() -> None:
    message = message_of(DeliveryKind.QUESTION, recipients=(person("anna", ANNA), person("b_n")))
    assert r"For @anna, b\_n" in render(message, NAMES)
    assert "For anna, " in render(message)


def test_closed_question_shows_its_resolution_and_quotes_its_text() -> None:
    closed = question(
        status=QuestionStatus.ANSWERED,
        text="Which?\n2",
        resolution={
            "outcome": "answered",
            "via": "person",
            "value": "red",
            "by": [f"trello:{ANNA}"],
        },
    )
    text = render(message_of(DeliveryKind.QUESTION_CLOSED, question=closed), NAMES)
    assert text.startswith("D-7/2 was answered by anna: Red\n\n")
    assert "\n> Which?\n> 2" in text
    assert "To answer, comment" not in text


def _closed_by(*by: str) -> dict[str, Any]:
    resolution = {"outcome": "answered", "via": "person", "value": "red", "by": by}
    return {"question": question(status=QuestionStatus.ANSWERED, resolution=resolution)}


def _canceled_by(actor: str) -> dict[str, Any]:
    subject = samples.message(DeliveryKind.RESULT).subject
    return {"subject": replace(subject, status=Status.CANCELED, canceled_by=actor)}


def _notice_by(actor: str) -> dict[str, Any]:
    spans = encode_spans(("closed by ", ActorRef(actor)))
    return {"payload": {"text": spans_text(decode_spans(spans)), "spans": spans}}


@cases(
    ("kind", "fields"),
    [
        (DeliveryKind.QUESTION_CLOSED, _closed_by),
        (DeliveryKind.RESULT, _canceled_by),
        (DeliveryKind.NOTICE, _notice_by),
    ],
)
def test_members_are_named_and_other_accounts_are_not(kind: DeliveryKind, fields: Any) -> None:
    message = samples.message(kind, **fields(f"trello:{ANNA}"))
    text = render(message, NAMES)
    assert "anna" in text
    assert ANNA not in text
    assert names_members(message)
    other = samples.message(kind, **fields("slack:U1"))
    assert "U1" in render(other, NAMES)
    assert not names_members(other)


def test_ids_in_text_of_people_are_not_replaced() -> None:
    message = samples.message(DeliveryKind.NOTICE, payload={"text": f"ask trello:{ANNA}"})
    assert not names_members(message)
    assert ANNA in render(message, NAMES)
    closed = _closed_by("ben")["question"]
    closed.resolution["value"] = f"trello:{ANNA}"
    assert ANNA in render(samples.message(DeliveryKind.QUESTION_CLOSED, question=closed), NAMES)


def test_a_notice_that_names_its_job_has_no_second_name() -> None:
    payload = {"text": "the label of D-7 was removed", "names_job": True}
    assert render(samples.message(DeliveryKind.NOTICE, payload=payload)).count("D-7") == 1


def test_notice_to_a_person_mentions_them() -> None:
    message = message_of(DeliveryKind.NOTICE, payload={"text": "you may not", "to": ANNA})
    assert render(message, NAMES) == "@anna D-7: you may not"
    assert render(message) == "D-7: you may not"


@cases("status", Status)
def test_every_status_is_shown(status: Status) -> None:
    message = message_of(DeliveryKind.STATUS)
    text = render(replace(message, subject=replace(message.subject, status=status)))
    assert text.startswith(f"{STATUSES[status].emoji} **D-7** **Tidy ")
    assert str(status).replace("_", " ") in text


def test_own_url_of_the_card_is_not_shown() -> None:
    message = message_of(DeliveryKind.STATUS)
    for url, shown in (("https://trello.com/c/abc", False), ("https://x.org/1", True)):
        text = render(replace(message, subject=replace(message.subject, url=url)))
        assert (url in text) is shown


def test_every_template_field_has_an_escaped_value() -> None:
    message = message_of(DeliveryKind.RESULT, marker=str(uuid4()))
    subject = replace(
        message.subject, title=NASTY, error=NASTY,
        request=RequestSummary(Mode.FIX, "tidy", None, "o", "r"),
        result={"summary": NASTY, "pr_url": "https://x.org/1", "files": 3},
    )  # fmt: skip
    fields = template_fields(replace(message, subject=subject))
    assert set(fields) == set(FIELDS)
    assert all(fields.values())
    assert fields["summary"] == SHOWN
    assert fields["pr_url"] == "<https://x.org/1>"
