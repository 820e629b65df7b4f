"""Display of a result: summary, link, change and counts, never its raw data."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

from draftsman.deliveries.attachment import file_content, overflow_files
from draftsman.deliveries.delivery import DeliveryKind, Message, Subject
from draftsman.deliveries.documents.plain import brief_text, render_plain
from draftsman.deliveries.message_facts import GroupStop
from draftsman.deliveries.message_text import job_outcome_spans, notice_spans
from draftsman.deliveries.result_text import change_summary, counts_summary, pr_url, raw_data
from draftsman.jobs.job import Status
from draftsman.people.spans import ActorRef, decode_spans, encode_spans, spans_text
from draftsman_testing.channel import samples
from tests.support.cases import cases

RESULT = {
    "summary": "Tidied.",
    "branch": "draftsman/D-7",
    "commit": "0123456789abcdef",
    "files_changed": 1,
    "insertions": 2,
    "deletions": 1,
    "pr_url": "https://git.example/pr/7",
    "validated": False,
    "validation": [
        {"name": "ruff", "passed": True, "summary": "ok"},
        {"name": "pytest", "passed": False, "summary": "/var/lib/draftsman/runs/D-7.1/repo"},
    ],
    "data": {
        "pr_url": "https://git.example/pr/7",
        "fixed": 3,
        "tests": {"passed": 4, "failed": 0},
        "report": "/var/lib/draftsman/runs/D-7.1-0a1b/home/report.json",
        "before": [{"name": "ruff", "path": "/root/x"}],
    },
}


def _message(result: dict[str, Any], kind: DeliveryKind = DeliveryKind.RESULT) -> Message:
    built = samples.message(kind)
    return replace(built, subject=replace(built.subject, status=Status.COMPLETED, result=result))


def test_a_result_is_displayed_as_text_and_its_data_is_attached() -> None:
    message = _message(RESULT)
    for text in (render_plain(message), "".join(map(str, brief_text(message)))):
        assert "Tidied.\nhttps://git.example/pr/7" in text
        assert "{" not in text
        assert "/var/lib" not in text
        assert "/root" not in text
    lines = render_plain(message).split("\n")
    assert "branch draftsman/D-7, commit 0123456789ab, 1 file changed, +2 -1" in lines
    assert lines[-2] == "validation 1 of 2 passed, fixed 3, tests passed 4, tests failed 0"
    [file] = overflow_files(message)
    held = file_content(replace(message, kind=DeliveryKind.FILE, payload=file)) or ""
    plain, _, data = held.partition("```json\n")
    assert plain.strip() == render_plain(message)
    attached = {key: RESULT["data"][key] for key in ("report", "before")}  # type: ignore[index]
    assert json.loads(data.removesuffix("```\n")) == {"data": attached}


def test_a_result_without_data_has_no_file() -> None:
    assert overflow_files(_message({"summary": "did it", "data": {}, "files_changed": 0})) == []
    assert overflow_files(_message({"summary": "did it", "data": {"lines": 1}})) == []
    assert overflow_files(_message({})) == []


@cases(
    ("result", "url"),
    [
        ({"pr_url": " https://x.org/1 "}, "https://x.org/1"),
        ({"data": {"pr_url": "http://x.org/2"}}, None),
        ({"pr_url": "javascript:alert(1)"}, None),
        ({"pr_url": ["https://x.org"]}, None),
        ({}, None),
    ],
)
def test_a_pull_request_is_a_page(result: dict[str, Any], url: str | None) -> None:
    assert pr_url(result) == url


@cases(
    "result",
    [
        {"summary": {"a": "b"}},
        {"validation": "x"},
        {"data": {"pr_url": "nowhere"}},
        {"data": "text"},
        {"status": 200, "body": "/root/secret", "headers": {"a": "b"}},
        {"x" * 41: 1},
        {"a b": {"c": True}},
        {"many": {f"n{number}": number for number in range(13)}},
    ],
)
def test_a_result_without_text_is_attached(result: dict[str, Any]) -> None:
    assert raw_data(result)
    lines = change_summary(result) + counts_summary(result)
    assert "/root" not in lines
    assert "{" not in lines


def test_the_result_of_a_merge_needs_no_file() -> None:
    result = {"summary": "merged abc into main", "merged": True, "commit": "abc"}
    assert raw_data(result | {"pr_url": "https://git.example/pr/7"}) == {}
    assert raw_data({"merged": True}) == {"merged": True}
    answer: dict[str, Any] = {"outcome": "answered", "value": "red", "by": ["ben"]}
    answer |= {"at": "2026-11-27T13:22:53Z", "text": None, "reason": None}
    assert raw_data(answer) == {}, "the message of the question has it"
    assert raw_data(answer | {"more": "data"})


def test_a_pull_request_that_was_not_opened_is_part_of_the_changes() -> None:
    result = {"branch": "draftsman/D-1", "pull_request_problem": "not opened: 403 no"}
    assert change_summary(result) == "branch draftsman/D-1, pull request not opened: 403 no"
    assert raw_data(result) == {}


def test_a_result_has_tokens_and_cost() -> None:
    built = samples.message(DeliveryKind.RESULT)
    used = replace(built.subject, usage="1,020 tokens, $0.42")
    assert "\n1,020 tokens, $0.42" in render_plain(replace(built, subject=used))


def test_a_denial_names_its_people_from_data_and_never_from_the_error() -> None:
    denied = Subject(
        7,
        UUID(int=7),
        "noop",
        Status.FAILED,
        "Tidy up",
        error="any text: with a colon",
        denied=True,
        denied_by=("slack:U0BEN@T9", "carol"),
        denial_reason="not: today",
    )
    spans = job_outcome_spans(denied, again="")
    assert spans_text(spans) == "was denied by slack:U0BEN@T9, carol: not: today"
    assert spans[1:] == (
        " by ",
        ActorRef("slack:U0BEN@T9"),
        ", ",
        ActorRef("carol"),
        ": not: today",
    )
    without_names = replace(denied, denied_by=(), denial_reason=None)
    assert spans_text(job_outcome_spans(without_names, again="")) == "was denied"


def test_an_actor_has_the_channel_and_the_id_of_its_account() -> None:
    actors = [ActorRef(name) for name in ("slack:U1@T9", "anna", "worker 6d0f9a1c", "X:y")]
    channels = ["slack", None, None, None]
    ids = ["U1@T9", "anna", "worker 6d0f9a1c", "X:y"]
    assert [actor.channel for actor in actors] == channels
    assert [actor.id for actor in actors] == ids


def test_a_notice_keeps_its_actors_and_begins_with_the_job_unless_named() -> None:
    spans = ("asked by ", ActorRef("trello:5f1e", "Anna"))
    assert decode_spans(encode_spans(spans)) == spans
    assert decode_spans("x") == ()
    message = replace(
        samples.message(DeliveryKind.NOTICE),
        payload={"text": spans_text(spans), "spans": encode_spans(spans)},
    )
    assert notice_spans(message) == ("D-7: ", *spans)
    assert render_plain(message) == "D-7: asked by Anna"
    named = replace(message, payload={"text": "D-7 is queued", "names_job": True})
    assert notice_spans(named) == ("", "D-7 is queued")


@cases(
    ("status", "skipped", "text"),
    [
        (Status.FAILED, 3, "group release stopped: D-7 failed, 3 jobs skipped"),
        (Status.DEAD_LETTER, 1, "group release stopped: D-7 is a dead letter, 1 job skipped"),
        (Status.CANCELED, 1000, "group release stopped: D-7 was canceled, 1,000 jobs skipped"),
    ],
)
def test_a_stopped_group_names_the_job_and_counts_the_others(
    status: Status, skipped: int, text: str
) -> None:
    assert GroupStop(7, status, skipped, 7).text("release") == text
