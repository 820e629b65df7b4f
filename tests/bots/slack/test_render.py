"""Rendering of messages: valid for any text, and complete."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.deliveries.documents.plain import render_plain
from draftsman.deliveries.question_text import resolution_text
from draftsman.jobs.job import Mode, RequestSummary, Status
from draftsman.questions.question import QuestionKind, QuestionStatus
from draftsman_bots.slack import ids
from draftsman_bots.slack.deliveries.render import render
from draftsman_testing.channel.examples import DIGEST_ITEM
from draftsman_testing.channel.samples import question
from draftsman_testing.slack.block_validation import message_blocks
from tests.bots.messages import messages, words
from tests.bots.slack.channel_fixtures import (
    Json,
    actionable,
    answer_rows,
    message,
    person,
    shown,
)
from tests.support.cases import cases

NASTY = "<!everyone> <@U1> <http://evil|click> & ``` *b* :tada:"
SHOWN = "&lt;!everyone&gt; &lt;@U1&gt; &lt;http://evil|click&gt; &amp;"
WORDS = words("&<>`")


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(WORDS, WORDS, person))
def test_any_text_renders_to_a_valid_message(notification: Message) -> None:
    output = render(notification)
    message_blocks(output.blocks)
    json.dumps(output.blocks).encode()
    assert 0 < len(output.text) <= 3000
    output.text.encode()


def rendered(kind: DeliveryKind, **fields: Any) -> Json:
    output = render(message(kind, "C1", **fields))
    message_blocks(output.blocks)
    return {"text": output.text, "blocks": output.blocks}


def test_a_question_shows_the_changes_to_review_and_those_since_the_last_approval() -> None:
    changes = "3 files changed, +9 -1; since D-1/1: <2> files changed, +1 -0"
    for asked in (question(), question(kind=QuestionKind.APPROVAL, choices=[])):
        output = render(
            replace(message(DeliveryKind.QUESTION, "C1", question=asked), changes=changes)
        )
        message_blocks(output.blocks)
        assert "since D-1/1: &lt;2&gt; files changed, +1 -0" in str(output.blocks)
        assert f"`draftsman diff {asked.name}`" in str(output.blocks)


def test_a_result_shows_tokens_and_cost() -> None:
    built = message(DeliveryKind.RESULT, "C1")
    assert "$" not in str(render(built).blocks)
    used = replace(built.subject, usage="1,020 tokens, $0.42")
    assert "1,020 tokens, $0.42" in str(render(replace(built, subject=used)).blocks)


def test_a_paused_job_shows_who_paused_it_and_why() -> None:
    built = message(DeliveryKind.STATUS, "C1", subject_status=Status.WAITING_FOR_INPUT)
    paused = replace(built.subject, paused_by="anna", pause_reason="no <API>\nuntil noon")
    texts = [item["text"] for item in render(replace(built, subject=paused)).blocks[1]["elements"]]
    assert texts[:2] == ["waiting for input", "paused by anna: no &lt;API&gt; until noon"]
    assert "waits for an answer\npaused by anna: no <API> until noon" in render_plain(
        replace(built, subject=paused)
    )


def test_a_running_job_shows_its_plan_and_newest_line() -> None:
    progress = {"progress": {"plan": "3 of 7 steps: <write>", "line": "▸ npm test"}}
    fields = {"payload": progress, "subject_status": Status.RUNNING}
    blocks = rendered(DeliveryKind.STATUS, **fields)["blocks"]
    texts = [element["text"] for element in blocks[2]["elements"]]
    assert texts == ["3 of 7 steps: &lt;write&gt;", "▸ npm test"]
    over = rendered(DeliveryKind.STATUS, **(fields | {"subject_status": Status.COMPLETED}))
    assert "steps" not in str(over["blocks"])


@cases("kind", DeliveryKind)
def test_markup_is_escaped_in_every_kind_of_message(kind: DeliveryKind) -> None:
    asked = question(
        text=NASTY,
        context_snippet=NASTY,
        choices=[{"value": "a", "label": NASTY[:75], "description": NASTY}],
        resolution={"outcome": "answered", "via": "person", "text": NASTY, "by": [NASTY]},
        status=QuestionStatus.ANSWERED,
    )
    output = rendered(
        kind,
        question=asked,
        payload={"text": NASTY, "name": NASTY, "questions": [{**DIGEST_ITEM, "text": NASTY}]},
        subject_title=NASTY,
        subject_status=Status.FAILED,
        subject_error=NASTY,
        subject_url=NASTY,
        subject_request=RequestSummary(Mode.FIX, NASTY, NASTY, NASTY, NASTY),
        subject_invoker=NASTY,
        subject_result={"summary": NASTY, "pr_url": NASTY, "title": NASTY},
    )
    mrkdwn = [part["text"] for part in walk(output["blocks"]) if part["type"] == "mrkdwn"]
    for text in [output["text"], *mrkdwn]:
        assert "<!everyone" not in text
        assert "<@U1>" not in text
        assert "<http" not in text
    assert any(SHOWN in text for text in [output["text"], *mrkdwn])


def walk(value: Any) -> list[Json]:
    if isinstance(value, list):
        return [part for item in value for part in walk(item)]
    if not isinstance(value, dict):
        return []
    own = [value] if isinstance(value.get("type"), str) else []
    return own + [part for item in value.values() for part in walk(item)]


def test_the_card_can_be_canceled_while_the_job_lives_and_retried_after() -> None:
    alive = rendered(DeliveryKind.STATUS, subject_status=Status.RUNNING)
    assert actionable(alive) == [ids.CANCEL]
    assert alive["blocks"][-1]["elements"][0]["value"] == ids.job_value(7)
    assert actionable(rendered(DeliveryKind.STATUS, subject_status=Status.FAILED)) == [ids.RETRY]
    is_open = rendered(DeliveryKind.STATUS, subject_status=Status.FAILED, subject_failure_open=True)
    assert actionable(is_open) == [ids.RETRY, ids.DISMISS]
    assert actionable(rendered(DeliveryKind.STATUS, subject_status=Status.COMPLETED)) == []


def test_a_few_choices_are_buttons_and_free_text_is_one_more() -> None:
    output = rendered(DeliveryKind.QUESTION)
    assert actionable(output) == [ids.answer_action(1), ids.answer_action(2), ids.FREE]
    (row,) = answer_rows(output["blocks"])
    assert row["block_id"] == ids.question_block(7, 2)
    assert [element["value"] for element in row["elements"]] == ["q:7:2:1", "q:7:2:2", "q:7:2"]


def test_many_choices_become_a_select_menu() -> None:
    for count, kind in ((6, "static_select"), (100, "static_select"), (101, "external_select")):
        same = [{"value": f"v{n}" * 70, "label": "the same"} for n in range(count)]
        output = rendered(
            DeliveryKind.QUESTION, question=question(choices=same, freeform_allowed=False)
        )
        (row,) = answer_rows(output["blocks"])
        (element,) = row["elements"]
        assert (element["type"], element["action_id"]) == (kind, ids.CHOOSE)
        assert row["block_id"] == ids.question_block(7, 2)
        if kind == "static_select":
            values = [option["value"] for option in element["options"]]
            assert values == [f"q:7:2:{n}" for n in range(1, count + 1)]
            assert len({option["text"]["text"] for option in element["options"]}) == count


DESCRIBED = [
    {"value": f"v{n}", "label": f"{n} " + "l" * 70, "description": "d" * 75} for n in range(100)
]


@cases("count", [5, 6, 30, 100])
@cases("text", ["short", "long " * 2000])
def test_a_question_keeps_its_controls_however_large_it_is(count: int, text: str) -> None:
    asked = question(
        text=text,
        choices=DESCRIBED[:count],
        context_snippet="c & c\n" * 400,
        action={"do": "x" * 900},
    )
    output = rendered(DeliveryKind.QUESTION, question=asked, recipients=(person("anna", "U0ANNA"),))
    assert output["blocks"][-1]["type"] == "actions"
    assert actionable(output)[-1] == ids.FREE
    assert asked.name in shown(output)


def test_a_question_that_is_too_large_loses_context_then_descriptions_then_options() -> None:
    asked = question(text="Which?", choices=DESCRIBED[:10], context_snippet="c" * 2500)
    details = []
    many = [{"value": str(number), "label": f"{number} {'x' * 70}"} for number in range(90)]
    longer = [replace(asked, text="Which? " * repeats) for repeats in (600, 1000)]
    for asked_again in (asked, *longer, replace(asked, choices=many)):
        blocks = rendered(DeliveryKind.QUESTION, question=asked_again)["blocks"]
        (row,) = answer_rows(blocks)
        text = shown({"blocks": [block for block in blocks if block is not row]})
        details.append(("ccc" in text, "ddd" in text, row["elements"][0]["type"]))
    assert details == [
        (True, True, "static_select"),
        (False, True, "static_select"),
        (False, False, "static_select"),
        (False, False, "external_select"),
    ]


def test_approval_has_two_buttons_and_names_only_its_approvers() -> None:
    gate = question(kind=QuestionKind.APPROVAL, choices=[], freeform_allowed=False)
    output = rendered(
        DeliveryKind.QUESTION, question=gate, recipients=(person("anna", "U0ANNA"), person("ben"))
    )
    assert actionable(output) == [ids.APPROVE, ids.DENY]
    assert "For <@U0ANNA>, ben" in shown(output)
    assert shown(output).count("<@") == 1
    assert "<@" not in shown(rendered(DeliveryKind.QUESTION, question=gate))
    eve = person("eve", "U0EVE@T0ELSEWHERE")
    assert "For <@U0EVE>" in shown(
        rendered(DeliveryKind.QUESTION, question=gate, recipients=(eve,))
    )
    with_markup = person("eve", "U1> <!here")
    assert "For eve" in shown(
        rendered(DeliveryKind.QUESTION, question=gate, recipients=(with_markup,))
    )


def test_long_label_is_truncated() -> None:
    long = [{"value": "a", "label": "👩" * 75}, {"value": "b", "label": ""}]
    output = rendered(DeliveryKind.QUESTION, question=question(choices=long))
    row = answer_rows(output["blocks"])[-1]["elements"]
    assert [len(item["text"]["text"]) for item in row[:2]] == [38, 1]


def test_a_reminder_asks_again() -> None:
    output = rendered(DeliveryKind.REMINDER, payload={"text": "half the time is over"})
    assert "half the time is over" in shown(output)
    assert actionable(output)


@cases("status", [questionstatu for questionstatu in QuestionStatus if questionstatu != "open"])
def test_closed_question_shows_its_outcome_and_people_without_buttons(
    status: QuestionStatus,
) -> None:
    resolution = {
        "outcome": str(status),
        "via": "person",
        "value": "red",
        "by": ["slack:U0ANNA@T9", "ben"],
    }
    closed = question(status=status, resolution=resolution)
    output = rendered(
        DeliveryKind.QUESTION_CLOSED, question=closed, recipients=(person("anna", "U0ANNA"),)
    )
    assert actionable(output) == []
    expected = f"D-7/2 {resolution_text(closed)}".replace("slack:U0ANNA@T9", "<@U0ANNA>")
    assert expected in shown(output)
    assert "Which one?" in shown(output)


DIFF = (
    "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,60 @@\n one\n-two\n"
    + "\n".join(f"+line {n}" for n in range(59))
)


def test_a_diff_shows_its_statistics_and_thirty_lines() -> None:
    output = shown(rendered(DeliveryKind.QUESTION, question=question(context_snippet=DIFF)))
    assert "x.py | +59 -1" in output
    assert "1 file changed, +59 -1" in output
    assert "+line 23" in output
    assert "+line 24" not in output
    assert "The full text is a file in this thread" in output


def test_a_short_context_is_shown_whole() -> None:
    output = shown(rendered(DeliveryKind.QUESTION, question=question(context_snippet="a\nb")))
    assert "a\nb" in output
    assert "file in this thread" not in output


def test_long_result_is_truncated_with_code_fences_closed() -> None:
    result = {
        "summary": "```\n" + "x" * 50_000,
        "data": {"log": "```" * 9000},
        "pr_url": "https://e.org/1",
    }
    output = rendered(DeliveryKind.RESULT, subject_result=result)
    assert len(output["text"]) <= 3000
    total = sum(len(text) for text in shown(output).split("\n"))
    assert total < 13_000
    assert "The full text is a file in this thread" in shown(output)
    for block in output["blocks"]:
        if block["type"] == "section" and "```" in (text := block["text"]["text"]):
            assert text.startswith("```\n")
            assert text.endswith("\n```")
            assert text.count("```") == 2
    assert "<https://e.org/1>" in shown(output)


def test_notification_of_a_result_shows_its_summary_without_data() -> None:
    result = {
        "summary": "All is <well>",
        "pr_url": "https://e.org/1",
        "data": {"patch": "--- a/x"},
        "report": "report.md",
    }
    output = rendered(DeliveryKind.RESULT, subject_result=result, subject_status=Status.COMPLETED)
    _, *text = output["text"].split("\n")
    assert text == ["All is &lt;well&gt;", "https://e.org/1"]
    output = rendered(DeliveryKind.RESULT, subject_result={"data": {"a": 1}})
    assert "{" not in output["text"]


RESULT = {
    "summary": "Tidied.",
    "branch": "draftsman/d-7",
    "commit": "0123456789abcdef",
    "files_changed": 1,
    "insertions": 2,
    "deletions": 1,
    "tests": {"passed": 3},
}


def test_result_is_shown_once_without_field_names() -> None:
    output = rendered(DeliveryKind.RESULT, subject_result=RESULT, subject_status=Status.COMPLETED)
    text = shown(output)
    assert "branch draftsman/d-7, commit 0123456789ab, 1 file changed, +2 -1" in text
    assert "tests passed 3" in text
    assert "files_changed" not in text
    assert text.count("completed") == 1
    assert "completed" in output["text"]


@cases("status", [Status.FAILED, Status.DEAD_LETTER, Status.EXPIRED])
def test_failure_is_shown_without_terminal_commands(status: Status) -> None:
    for kind in (DeliveryKind.STATUS, DeliveryKind.RESULT):
        output = rendered(kind, subject_status=status, subject_error="no space")
        texts = output["text"] + shown(output)
        for phrase in ("draftsman retry", "is failed", "dead_letter", "is expired"):
            assert phrase not in texts
    assert "press Retry" in shown(output)


def test_notification_displays_people_and_times_for_readers() -> None:
    resolution = {"outcome": "canceled", "by": ["slack:U0ANNA@T9", "cli:root"]}
    closed = question(text="ask slack:U0BEN", status=QuestionStatus.CANCELED, resolution=resolution)
    output = rendered(DeliveryKind.QUESTION_CLOSED, question=closed)
    assert output["text"].startswith("D-7/2 was canceled by <@U0ANNA>, root (in a terminal)")
    assert "root (in a terminal)" in shown(output)
    assert "<@U0BEN>" not in output["text"] + shown(output)
    output = rendered(
        DeliveryKind.RESULT,
        subject_title="for slack:U0BEN",
        subject_status=Status.CANCELED,
        subject_canceled_by="slack:U0ANNA",
    )
    assert "was canceled by <@U0ANNA>" in output["text"]
    assert "<@U0BEN>" not in output["text"]
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    asked = question(
        expires_at=when, choices=[{"value": f"{n}", "label": f"c{n}"} for n in range(130)]
    )
    output = rendered(DeliveryKind.QUESTION, question=asked)
    assert "expires at 2 Jan 2026, 03:04 UTC" in output["text"]
    assert "and 120 more" in output["text"]
    assert len(output["text"].splitlines()) < 20
    assert "draftsman answer" not in output["text"]
    output = rendered(
        DeliveryKind.STATUS, subject_status=Status.RETRYING, subject_next_retry_at=when
    )
    assert "will be retried at 2 Jan 2026, 03:04 UTC" in output["text"]


def test_approval_without_an_approver_explains_how_to_add_one() -> None:
    gate = question(kind=QuestionKind.APPROVAL, choices=[], freeform_allowed=False)
    output = shown(rendered(DeliveryKind.QUESTION, question=gate))
    assert "This approval has no approver" in output
    assert "`approver`" in output
    assert "Nobody may" not in shown(rendered(DeliveryKind.QUESTION))


def test_times_are_shown_in_the_timezone_of_the_reader() -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    output = shown(rendered(DeliveryKind.QUESTION, question=question(expires_at=when)))
    assert f"<!date^{int(when.timestamp())}^" in output


def test_rendering_is_deterministic() -> None:
    notification = message(DeliveryKind.QUESTION, "C1")
    assert render(notification) == render(replace(notification))


@cases(
    ("payload", "read"),
    [
        ({"text": "D-7 is still queued", "names_job": True}, "D-7 is still queued"),
        ({"text": "D-7/1 was edited", "names_job": True}, "D-7/1 was edited"),
        ({"text": "D-71 is another job"}, "D-7: D-71 is another job"),
        ({"text": "all is well"}, "D-7: all is well"),
    ],
)
def test_a_notice_names_its_job_once(payload: dict[str, Any], read: str) -> None:
    reply = rendered(DeliveryKind.NOTICE, payload=payload)
    assert (shown(reply), reply["text"]) == (read, read)
