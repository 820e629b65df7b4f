"""People in the messages of Slack."""

from __future__ import annotations

from typing import Any

from draftsman.deliveries.delivery import DeliveryKind
from draftsman.jobs.job import Status
from draftsman.people.spans import actor_spans, encode_spans, spans_text
from draftsman.questions.question import QuestionStatus
from draftsman_testing.channel.samples import question
from tests.bots.slack.channel_fixtures import shown
from tests.bots.slack.test_render import rendered
from tests.support.cases import cases


def test_person_who_canceled_is_mentioned() -> None:
    ended = {
        "subject_status": Status.CANCELED,
        "subject_canceled_by": "slack:U0ANNA@T9",
        "subject_cancel_reason": "ask slack:U0BEN: he knows",
    }
    for kind in (DeliveryKind.STATUS, DeliveryKind.RESULT):
        text = shown(rendered(kind, **ended))
        assert "was canceled by <@U0ANNA>: ask slack:U0BEN: he knows" in text
        assert "U0ANNA@T9" not in text


def test_answer_text_cannot_mention_a_user() -> None:
    resolution = {"outcome": "answered", "text": "ask slack:U0BEN", "by": ["slack:U0ANNA"]}
    closed = question(status=QuestionStatus.ANSWERED, resolution=resolution)
    text = shown(rendered(DeliveryKind.QUESTION_CLOSED, question=closed))
    assert "was answered by <@U0ANNA>: ask slack:U0BEN" in text
    assert "<@U0BEN>" not in shown(rendered(DeliveryKind.NOTICE, payload={"text": "slack:U0BEN"}))


def _closed_by(*by: str) -> dict[str, Any]:
    resolution = {"outcome": "answered", "via": "person", "text": "ask slack:U0BEN", "by": by}
    return {"question": question(status=QuestionStatus.ANSWERED, resolution=resolution)}


def _canceled_by(*by: str) -> dict[str, Any]:
    return {
        "subject_status": Status.CANCELED,
        "subject_canceled_by": by[0],
        "subject_cancel_reason": "ask slack:U0BEN",
    }


def _denied_by(*by: str) -> dict[str, Any]:
    return {
        "subject_status": Status.FAILED,
        "subject_denied": True,
        "subject_denied_by": by,
        "subject_denial_reason": "ask slack:U0BEN",
    }


def _notice_by(*by: str) -> dict[str, Any]:
    spans = ("closed by ", *actor_spans(by), "; ask slack:U0BEN")
    return {"payload": {"text": spans_text(spans), "spans": encode_spans(spans)}}


@cases(
    ("kind", "fields"),
    [
        (DeliveryKind.QUESTION_CLOSED, _closed_by),
        (DeliveryKind.RESULT, _canceled_by),
        (DeliveryKind.RESULT, _denied_by),
        (DeliveryKind.NOTICE, _notice_by),
    ],
)
@cases(
    ("account", "display"),
    [
        ("slack:U0ANNA", "<@U0ANNA>"),
        ("slack:W0ANNA@T9", "<@W0ANNA>"),
        ("slack:<!here>", "slack:&lt;!here&gt;"),
        ("cli:root", "root (in a terminal)"),
        ("api:ci job", "ci job (by API)"),
        ("trello:5f0000000000000000000001", "a Trello user"),
        ("anna", "anna"),
    ],
)
def test_people_are_displayed_by_their_channel_and_their_text_is_not(
    kind: DeliveryKind, fields: Any, account: str, display: str
) -> None:
    output = rendered(kind, **fields(account))
    assert display in shown(output)
    assert "ask slack:U0BEN" in shown(output)
    texts = output["text"] + shown(output)
    assert "<@U0BEN>" not in texts
    if kind is not DeliveryKind.NOTICE:
        assert display in output["text"]
    if display != account:
        assert account not in texts


def test_two_people_of_a_closed_question_are_mentioned() -> None:
    output = rendered(DeliveryKind.QUESTION_CLOSED, **_closed_by("slack:U0ANNA", "slack:U0EVE"))
    for text in (output["text"], shown(output)):
        assert "<@U0ANNA>, <@U0EVE>" in text


def test_long_reason_keeps_the_mention_whole() -> None:
    ended = _canceled_by("slack:U0ANNA") | {"subject_cancel_reason": "x & y " * 2000}
    output = rendered(DeliveryKind.RESULT, **ended)
    assert "<@U0ANNA>" in shown(output)
    assert "<@U0ANNA>" in output["text"]
    assert len(output["text"]) <= 3000
