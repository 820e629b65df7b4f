"""Events of each kind, and what people read of them."""

from __future__ import annotations

import json
import re
import tarfile
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from draftsman.database.sentences import with_sentences
from draftsman.events.event import Event
from draftsman.formats import times
from draftsman.ids import account_name
from draftsman.jobs.details.sections.event_sentences import event_sentence
from draftsman.jobs.details.sections.section import Line, LineSpan, Reader, plain
from draftsman.jobs.event_kinds import EVENTS
from draftsman.jobs.status_display import Meaning
from tests.upgrade.releases import FOLDER

WORKER: Final = f"worker:{UUID(int=0x6D0F9A1C)}"
AT: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
PEOPLE: Final = {"slack:U1": "Bruno"}
READER: Final = Reader(
    AT,
    time_of_day=lambda moment, now: times.clock(moment, now, zone=UTC),
    name_of=lambda actor: PEOPLE.get(actor, account_name(actor)),
)
EVENT_EXAMPLES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "job_created": (
        "cli:anna",
        {"type": "run_agent", "source": "cli", "mode": "fix", "retry_of": 7},
    ),
    "job_promoted": ("system", {}),
    "job_woken": ("system", {}),
    "job_claimed": (WORKER, {}),
    "job_started": (WORKER, {}),
    "job_returned": (WORKER, {"reason": "shutdown"}),
    "needs_input": (
        WORKER,
        {
            "key": "wrap",
            "text": "Which wrap?",
            "kind": "input",
            "question": 1,
            "checkpoint": 3,
            "others": [{"key": "size", "text": "Which size?", "kind": "input"}],
        },
    ),
    "needs_approval": (
        WORKER,
        {"key": "gate", "text": "Deploy it?", "kind": "approval", "question": 2},
    ),
    "job_snoozed": (WORKER, {"run_at": "2026-11-30T13:30:00+00:00"}),
    "job_resumed": (
        "slack:U1",
        {
            "question": 1,
            "key": "wrap",
            "via": "person",
            "source": "slack",
            "responder": "U1",
            "by": ["Bruno"],
            "value": "gift_wrap",
            "outcome": "answered",
        },
    ),
    "job_released": ("system", {"lost": True}),
    "job_retrying": (
        WORKER,
        {
            "error": "the package index did not respond",
            "error_class": "TRANSIENT_APP",
            "origin": "handler",
            "code": "call_timeout",
            "next_retry_at": "2026-11-30T12:00:48+00:00",
            "retry": 1,
            "max_retries": 5,
        },
    ),
    "job_retried": ("system", {}),
    "job_completed": (WORKER, {"summary": "Refunds are rounded once"}),
    "job_failed": (WORKER, {"error": "no such branch: fix", "error_class": "PERMANENT"}),
    "job_dead_lettered": (
        WORKER,
        {
            "error": "the index did not respond",
            "error_class": "TRANSIENT_APP",
            "attempts": 0,
            "retries": 5,
        },
    ),
    "job_canceled": ("tui:anna", {"reason": "wrong branch", "by": "tui:anna"}),
    "job_expired": ("system", {"question": 1}),
    "request_joined": (
        "slack:U1",
        {
            "requester": "Bruno",
            "name": "Bruno",
            "source": "slack",
            "title": "Tidy up",
            "key": "k",
            "digest": "c0ffee",
        },
    ),
    "attachments_added": ("slack:U1", {"names": ["log.txt", "a.png"], "message": 2}),
    "attachment_refused": ("system", {"name": "core.bin", "reason": "files have at most 25 MB"}),
    "cancel_requested": ("cli:anna", {"reason": "wrong branch"}),
    "job_paused": ("cli:anna", {"reason": "until the release"}),
    "job_unpaused": ("cli:anna", {}),
    "job_dismissed": ("cli:anna", {"reason": "fixed upstream"}),
    "job_undismissed": ("cli:anna", {}),
    "message_sent": ("slack:U1", {"message": 1, "text": "Use the v2 API"}),
    "message_delivered": (WORKER, {"messages": [1, 2]}),
    "action_refused": (
        "slack:U9",
        {"action": "cancel", "reason": "Mallory is not linked to a person", "event": "1.2"},
    ),
    "job_moved": ("cli:anna", {"place": "before", "anchor": 7, "priority": 0, "from": 0}),
    "job_prioritized": ("cli:anna", {"priority": 5, "from": 0}),
    "queue_reserved": ("cli:anna", {"queue": "default", "seconds": 600}),
    "reservation_ended": ("system", {"queue": "default", "reason": "waiting_for_input"}),
    "retry_not_created": ("system", {"reason": "its chain has 100 jobs"}),
    "content_changed": (
        WORKER,
        {"what": "question", "key": "wrap", "before": "Which wrap?", "now": "Which paper?"},
    ),
    "answer_received": (
        "slack:U1",
        {
            "question": 1,
            "key": "wrap",
            "via": "person",
            "source": "slack",
            "responder": "U1",
            "by": ["Bruno"],
            "value": "gift_wrap",
            "outcome": "answered",
            "answer": 12,
            "waited": 2520,
        },
    ),
    "answer_refused": (
        "slack:U9",
        {"voter": "slack:U9", "reason": "D-142/1 was already answered by Bruno", "question": 1},
    ),
    "answer_edited": ("slack:U1", {"text": "no wrap", "question": 1, "answer": 12, "event": "1.2"}),
    "answer_deleted": ("slack:U1", {"question": 1, "answer": 12, "event": "1.2"}),
    "vote_received": ("slack:U1", {"question": 2, "voter": "Carol", "votes": 1}),
    "rule_applied": (
        "system",
        {
            "question": 1,
            "key": "permission:1",
            "via": "rule",
            "rule": 3,
            "value": "allow once",
            "reason": "pytest tests/*",
            "outcome": "answered",
        },
    ),
    "question_acknowledged": (
        "slack:U1",
        {"question": 1, "by": "Bruno", "until": "2026-11-30T12:30:00+00:00"},
    ),
    "question_unacknowledged": ("slack:U1", {"question": 1, "by": "Bruno"}),
    "question_delegated": (
        "slack:U1",
        {"question": 1, "by": "Bruno", "to": "Carol", "until": "2026-11-30T12:30:00+00:00"},
    ),
    "question_notified": (
        "system",
        {
            "question": 1,
            "step": 2,
            "ladder": "default",
            "notified": ["Bruno"],
            "skipped": {"Carol": "away"},
        },
    ),
    "question_extended": ("cli:anna", {"question": 1, "expires_at": "2026-11-30T14:00:00+00:00"}),
    "question_escalated": (
        "system",
        {
            "question": 1,
            "key": "wrap",
            "escalate_to": "leads",
            "expires_at": "2026-11-30T14:00:00+00:00",
        },
    ),
    "question_expired": (
        "system",
        {
            "question": 1,
            "key": "wrap",
            "via": "policy",
            "outcome": "answered",
            "value": "none",
            "label": "No wrap",
        },
    ),
    "token_minted": ("cli:anna", {"question": 2, "approver": "Carol", "by": "anna"}),
    "token_redeemed": ("api:carol", {"question": 2, "approver": "Carol"}),
    "token_refused": (
        "api:carol",
        {"question": 2, "approver": "Carol", "reason": "the token has expired"},
    ),
    "budget_raised": (
        "system",
        {
            "budget": "job:142",
            "day": "-infinity",
            "measure": "cost_usd",
            "used": 1.5,
            "of": 1.0,
            "run": 1,
            "question": 3,
            "added": 1.0,
            "by": ["Carol"],
        },
    ),
    "delivery_sent": (
        "system",
        {
            "delivery": 8,
            "kind": "question",
            "channel": "slack",
            "target": "C1",
            "question": 1,
            "ref": "1.2",
        },
    ),
    "delivery_dead_lettered": (
        "system",
        {
            "delivery": 8,
            "kind": "status",
            "channel": "slack",
            "target": "C1",
            "error": "channel_not_found",
        },
    ),
    "attachment_uploaded": (
        "system",
        {
            "delivery": 9,
            "kind": "file",
            "channel": "slack",
            "target": "C1",
            "artifact": "report.html",
        },
    ),
    "attachment_failed": (
        "system",
        {
            "delivery": 9,
            "kind": "file",
            "channel": "slack",
            "target": "C1",
            "artifact": "report.html",
            "error": "file is too large",
        },
    ),
    "redelivered": ("cli:anna", {"deliveries": [8, 9]}),
    "repo_resolved": (
        WORKER,
        {
            "source": "https://git.example/acme/pay",
            "base_sha": "c0ffee1234567890",
            "method": "name",
            "confidence": 1.0,
            "owner": "acme",
            "name": "pay",
        },
    ),
    "clone_incomplete": (
        WORKER,
        {
            "parts": [
                {
                    "kind": "lfs",
                    "paths": ["a.bin"],
                    "text": "1 file of Git LFS: the server has none",
                },
                {"kind": "submodule", "paths": ["lib"], "text": "the submodule lib"},
            ]
        },
    ),
    "sandbox_applied": (WORKER, {"mode": "bwrap", "network": False, "uid": 1000}),
    "iteration_started": (
        WORKER,
        {"iteration": 1, "runner": "draftsman 0.1.0", "agent": "codex", "version": "1.2"},
    ),
    "iteration_finished": (
        WORKER,
        {
            "iteration": 1,
            "outcome": "failed",
            "files_changed": 2,
            "failed": ["tests", "ruff"],
            "usage": {"input_tokens": 1200, "cost_usd": 0.5},
        },
    ),
    "command_executed": (
        WORKER,
        {
            "name": "setup",
            "command": ["pytest", "-q"],
            "required": True,
            "exit_code": 0,
            "duration_seconds": 12.345,
            "passed": True,
            "summary": "12 passed in 3.1s",
            "output": "…",
        },
    ),
    "validation_ran": (
        WORKER,
        {
            "name": "tests",
            "command": ["pytest", "-q"],
            "required": True,
            "exit_code": 1,
            "duration_seconds": 12.345,
            "passed": False,
            "summary": "1 failed, 11 passed",
            "output": "…",
            "file": "tests/test_a.py",
            "on": "base",
            "exit_codes": [1],
        },
    ),
    "base_updated": (WORKER, {"from": "c0ffee1234567890", "to": "decade1234567890"}),
    "branch_published": (
        WORKER,
        {"branch": "draftsman/D-142", "commit": "c0ffee1234567890", "draft": True},
    ),
    "pr_created": (
        WORKER,
        {"pr_url": "https://git.example/acme/pay/pull/7", "files_changed": 1, "loc_delta": 3},
    ),
    "follow_up_created": (
        "system",
        {
            "job": 150,
            "follow_up": 1,
            "pr_url": "https://git.example/acme/pay/pull/7",
            "events": ["review"],
        },
    ),
    "forge_event_ignored": (
        "system",
        {
            "event": "review_comment",
            "author": "carol",
            "url": "https://git.example/acme/pay/pull/7",
            "reason": "it is draftsman's own",
        },
    ),
    "pull_request_ended": (
        "system",
        {
            "event": "closed",
            "author": "carol",
            "url": "https://git.example/acme/pay/pull/7",
            "state": "merged",
        },
    ),
    "pull_request_reopened": (
        "system",
        {"event": "reopened", "author": "carol", "url": "https://git.example/acme/pay/pull/7"},
    ),
    "page_read": (
        WORKER,
        {
            "page": 3,
            "url": "https://shop.example/3",
            "new": True,
            "items": [{"sku": "a-1", "price": 12.5}],
        },
    ),
    "agent.permission": (WORKER, {"decision": "allow once"}),
    "agent.validation_ran": (
        WORKER,
        {"name": "ruff", "passed": True, "summary": "All checks passed"},
    ),
}
"""The actor and a payload of each kind, and of kinds of handlers and agents."""
RAW: Final = re.compile(r'[={}]|\["|\bNone\b|\?[,;:]')
"""A payload as it is stored, or a value that an event does not have."""


def event(kind: str, actor: str, payload: dict[str, Any], to: str | None = None) -> Event:
    return Event(142, 1, 2, kind, None, to, actor, payload, AT, 1, 1)


def sentence(kind: str, actor: str, payload: dict[str, Any], to: str | None = None) -> Line:
    return event_sentence(event(kind, actor, payload, to), READER)


def test_each_kind_has_its_sentence(snapshot: SnapshotAssertion) -> None:
    assert EVENT_EXAMPLES.keys() >= EVENTS.keys()
    texts = {kind: plain(sentence(kind, *EVENT_EXAMPLES[kind])) for kind in EVENT_EXAMPLES}
    for kind, text in texts.items():
        assert not RAW.search(text), (kind, text)
    assert "\n".join(f"{kind}: {text}" for kind, text in texts.items()) == snapshot


def test_the_events_of_a_real_database_are_sentences() -> None:
    kinds = set()
    for kind, actor, payload in recorded_events():
        text = plain(event_sentence(with_sentences(event(kind, actor, payload)), READER))
        assert not RAW.search(text.replace("Which one?", "")), (kind, text)
        kinds.add(kind)
    assert len(kinds & EVENTS.keys()) > 25


def recorded_events() -> list[tuple[str, str, dict[str, Any]]]:
    """Return the kind, actor and payload of the events in the data of a release."""
    with tarfile.open(FOLDER / "0.1.0" / "data.tar.xz") as archive:
        member = archive.extractfile("job_events.copy")
        assert member is not None
        head, *rows = member.read().decode().splitlines()
    columns = head.split("\t")
    events = [dict(zip(columns, row.split("\t"), strict=True)) for row in rows]
    return [
        (row["kind"], row["actor"], json.loads(row["payload"].replace("\\\\", "\\")))
        for row in events
    ]


def test_a_cancel_of_a_running_job_is_two_facts() -> None:
    payload = {"reason": "wrong branch", "by": "cli:anna"}
    assert plain(sentence("cancel_requested", "cli:anna", payload)) == (
        "anna asked to cancel the running job: wrong branch"
    )
    assert plain(sentence("job_canceled", WORKER, payload)) == (
        "Run 2 stopped, and the job is canceled"
    )
    by_itself = {"reason": "nothing to do", "by": WORKER}
    assert plain(sentence("job_canceled", WORKER, by_itself)).endswith(
        "canceled the job: nothing to do"
    )


def test_a_value_that_an_event_does_not_have_leaves_out_its_part() -> None:
    assert plain(sentence("job_canceled", "cli:anna", {})) == "anna canceled the job"
    assert plain(sentence("job_retrying", WORKER, {"error": "busy"})) == (
        "Run 2 failed: busy; it is repeated"
    )
    assert plain(sentence("answer_received", "slack:U1", {"via": "person"})) == "Bruno answered"
    denied = {"via": "person", "outcome": "denied", "reason": "not on a Friday", "question": 2}
    assert plain(sentence("answer_received", "slack:U1", denied)) == (
        "Bruno denied D-142/2: not on a Friday"
    )
    default = {"via": "policy", "outcome": "answered", "value": "red"}
    assert plain(sentence("answer_received", "system", default)) == "The policy answered: red"


def test_people_times_and_links_are_spans() -> None:
    delegated = sentence("question_delegated", *EVENT_EXAMPLES["question_delegated"])
    names = [span.text for span in delegated if isinstance(span, LineSpan) and span.is_name]
    assert names == ["Bruno", "Carol", "D-142/1"]
    (until,) = [span.when for span in delegated if isinstance(span, LineSpan) and span.when]
    assert until == datetime(2026, 11, 30, 12, 30, tzinfo=UTC)
    opened = sentence("pr_created", *EVENT_EXAMPLES["pr_created"])
    assert "https://git.example/acme/pay/pull/7" in {
        span.url for span in opened if isinstance(span, LineSpan)
    }


def test_the_words_have_the_meaning_of_the_new_status() -> None:
    failed = sentence("job_failed", WORKER, {"error": "no"}, "failed")[0]
    assert isinstance(failed, LineSpan)
    assert failed.meaning is Meaning.FAILURE
    denial = {"error": "no", "error_class": "DENIED"}
    denied = sentence("job_failed", WORKER, denial, "failed")[0]
    assert isinstance(denied, LineSpan)
    assert denied.meaning is Meaning.DENIED


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda values: (
        st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=10), values, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(sorted(EVENT_EXAMPLES)), st.data())
def test_any_value_in_any_field_is_words(kind: str, data: st.DataObject) -> None:
    actor, payload = EVENT_EXAMPLES[kind]
    changed = {key: data.draw(JSON) for key in payload}
    line = sentence(kind, actor, changed)
    assert plain(line)
    assert not any("\n" in str(span) for span in line)


def test_a_job_that_asks_several_things_counts_them() -> None:
    others = [{"text": "Which size?", "kind": "input"}, {"text": "Print it?", "kind": "approval"}]
    payload = {"text": "Which wrap?", "kind": "input", "question": 1, "others": others}
    assert plain(sentence("needs_approval", WORKER, payload)) == (
        "The job waits for 2 answers and 1 approval: Which wrap? · Which size? · Print it?"
    )
