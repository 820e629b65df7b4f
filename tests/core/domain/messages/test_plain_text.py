"""Display of a result: summary, link, change and counts, never its raw data."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from draftsman.domain.job import Status
from draftsman.domain.messages.attachment import file_content, overflow_files
from draftsman.domain.messages.delivery import DeliveryKind, Message, Subject
from draftsman.domain.messages.plain_text import (
    change_summary,
    counts_summary,
    job_outcome_parts,
    pr_url,
    raw_data,
    render_brief,
    render_plain,
)
from tests.core.channels import contract

RESULT = {
    "summary": "Tidied.",
    "branch": "draftsman/D-7",
    "commit": "0123456789abcdef",
    "files_changed": 1,
    "insertions": 2,
    "deletions": 1,
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
    made = contract.message(kind)
    return replace(made, subject=replace(made.subject, status=Status.COMPLETED, result=result))


def test_a_result_is_told_in_words_and_its_data_is_in_a_file() -> None:
    message = _message(RESULT)
    for text in (render_plain(message), render_brief(message)):
        assert "Tidied.\nhttps://git.example/pr/7" in text
        assert "{" not in text
        assert "/var/lib" not in text
        assert "/root" not in text
    lines = render_plain(message).split("\n")
    assert "branch draftsman/D-7, commit 0123456789ab, 1 file changed, +2 -1" in lines
    assert lines[-1] == "validation 1 of 2 passed, fixed 3, tests passed 4, tests failed 0"
    [file] = overflow_files(message)
    held = file_content(replace(message, kind=DeliveryKind.FILE, payload=file)) or ""
    words, _, data = held.partition("```json\n")
    assert words.strip() == render_plain(message)
    kept = {key: RESULT["data"][key] for key in ("report", "before")}  # type: ignore[index]
    assert json.loads(data.removesuffix("```\n")) == {"data": kept}


def test_a_result_without_data_has_no_file() -> None:
    assert overflow_files(_message({"summary": "did it", "data": {}, "files_changed": 0})) == []
    assert overflow_files(_message({"summary": "did it", "data": {"lines": 1}})) == []
    assert overflow_files(_message({})) == []


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ({"pr_url": " https://x.org/1 "}, "https://x.org/1"),
        ({"data": {"pr_url": "http://x.org/2"}}, "http://x.org/2"),
        ({"data": {"pr_url": "javascript:alert(1)"}}, None),
        ({"data": {"pr_url": ["https://x.org"]}}, None),
        ({"data": "https://x.org"}, None),
        ({}, None),
    ],
)
def test_a_pull_request_is_a_page(result: dict[str, Any], found: str | None) -> None:
    assert pr_url(result) == found


@pytest.mark.parametrize(
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
def test_what_has_no_words_is_in_the_file(result: dict[str, Any]) -> None:
    assert raw_data(result)
    said = change_summary(result) + counts_summary(result)
    assert "/root" not in said
    assert "{" not in said


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
    assert job_outcome_parts(denied, again="") == (
        "was denied by slack:U0BEN@T9, carol",
        ": not: today",
    )
    without_names = replace(denied, denied_by=(), denial_reason=None)
    assert job_outcome_parts(without_names, again="") == ("was denied", "")
