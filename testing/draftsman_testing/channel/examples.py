"""Examples of every kind of message: short, long, hostile, empty, and in each state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from draftsman.deliveries.delivery import Delegation, DeliveryKind, Message, Subject
from draftsman.formats.json_data import as_data
from draftsman.jobs.job import Mode, RequestSummary, Status
from draftsman.people.policy import Person
from draftsman.people.spans import ActorRef, encode_spans
from draftsman.questions.question import OnChanges, Question, QuestionKind, QuestionStatus
from draftsman.results import Link, Markdown, Picture, Table
from draftsman_testing.channel.samples import WHEN, message, question

HOSTILE: Final = (
    "<!everyone> @anna *b* _i_ `c` [x](https://evil.example) <b> & #12\n"
    "# title\n```\n1. one\n> q\n/approve D-7/2 \u202e fixes https://example.org/1"
)
LONG: Final = "The refunds of the shop are paid twice if the network fails. " * 150
DIFF: Final = """diff --git a/pay.py b/pay.py
--- a/pay.py
+++ b/pay.py
@@ -1,2 +1,2 @@
-retry = True
+retry = not paid
"""
ANNA: Final = Person(
    "anna",
    frozenset(),
    {"slack": "U0ANNA", "trello": "5f1e0c9a8b7d6e5f4a3b2c1d", "forge": "github:ann"},
)
BEN: Final = Person("ben", frozenset(), {})
APPROVAL: Final[dict[str, Any]] = {
    "kind": QuestionKind.APPROVAL,
    "choices": [],
    "text": "May I push?",
}
REVIEW: Final = APPROVAL | {"text": "Publish the work?", "on_changes": OnChanges.TELL}
MANY: Final = [{"value": str(number), "label": f"region {number}"} for number in range(1, 121)]
TEXTS: Final = {"short": "Which color?", "long": LONG, "hostile": HOSTILE, "empty": ""}
RESULT: Final[dict[str, Any]] = {
    "summary": "Refunds are paid once.",
    "pr_url": "https://github.example/acme/pay/pull/7",
    "branch": "draftsman/D-7",
    "files_changed": 2,
    "insertions": 9,
    "deletions": 1,
    "validation": [{"passed": True}, {"passed": False}],
}

SHOWN: Final[dict[str, dict[str, Any]]] = {
    "result with shown values": {
        "summary": "3 regions",
        "orders": as_data(Table.of([{"region": "eu", "orders": 1200}, {"region": "日本"}])),
        "notes": as_data(
            Markdown(
                "# Week 31\n\nAll **well**, see\n[it](https://x.example/).\n- one\n```\ncode\n```"
            )
        ),
        "report": as_data(Link("https://x.example/r?a=1&b=2", "The report")),
        "chart": as_data(Picture("chart.png", "Orders of a day")),
        "map": as_data(Picture("https://x.example/map.png")),
    },
    "result that is a long table": as_data(Table(["n"], [[number] for number in range(60)])),
    "result with hostile values": {
        "rows": as_data(Table([HOSTILE], [[HOSTILE]])),
        "text": as_data(Markdown(HOSTILE)),
        "link": {"shown": "link", "url": "javascript:alert(1)", "text": HOSTILE},
        "picture": as_data(Picture(HOSTILE, HOSTILE)),
    },
}
"""Results with values that say how they are shown."""
DIGEST_ITEM: Final[dict[str, Any]] = {
    "name": "D-8/1",
    "jobs": 1,
    "text": "May I push the branch that pays refunds once, and open a pull request for it?",
    "title": "Pay refunds once, also if the network fails",
    "expires_at": (WHEN + timedelta(hours=1)).isoformat(),
}


def examples(target: str = "ops") -> dict[str, Message]:
    """Return the messages by name, for a target."""
    return {
        name: replace(example, target=target, marker=str(UUID(int=number)))
        for number, (name, example) in enumerate(_examples(), 1)
    }


def _examples() -> Iterator[tuple[str, Message]]:
    for status in Status:
        yield f"status {status}", _about(DeliveryKind.STATUS, status=status)
        if status in ENDED:
            yield f"result {status}", _about(DeliveryKind.RESULT, status=status, **ENDED[status])
    yield "status denied", _about(DeliveryKind.STATUS, status=Status.FAILED, **DENIED)
    yield (
        "status open failure",
        _about(DeliveryKind.STATUS, status=Status.FAILED, error="boom", failure_open=True),
    )
    yield (
        "status dismissed",
        _about(
            DeliveryKind.STATUS,
            status=Status.FAILED,
            error="boom",
            dismissed="by ben: fixed upstream",
        ),
    )
    yield (
        "status paused",
        _about(
            DeliveryKind.STATUS,
            status=Status.RUNNING,
            paused_by="ben",
            pause_reason="the API is down",
        ),
    )
    yield (
        "status with progress",
        replace(
            _about(DeliveryKind.STATUS, status=Status.RUNNING),
            payload={"progress": {"plan": "3 of 7 steps: write tests", "line": "▸ npm test"}},
        ),
    )
    yield (
        "status with another question",
        _about(DeliveryKind.STATUS, status=Status.WAITING_FOR_INPUT, asks_with="D-141/1"),
    )
    yield "result denied", _about(DeliveryKind.RESULT, status=Status.FAILED, **DENIED)
    yield (
        "result with data",
        _about(
            DeliveryKind.RESULT, status=Status.COMPLETED, result={"data": {"rows": [{"id": 3}]}}
        ),
    )
    for name, result in SHOWN.items():
        yield name, _about(DeliveryKind.RESULT, status=Status.COMPLETED, result=result)
    yield (
        "result of a group",
        _about(
            DeliveryKind.RESULT,
            status=Status.FAILED,
            error="boom",
            group_stop="group release stopped: D-7 failed, 3 jobs skipped",
        ),
    )
    for name, text in TEXTS.items():
        yield (
            f"status {name}",
            _about(DeliveryKind.STATUS, status=Status.FAILED, error=text, title=text or "-"),
        )
        yield (
            f"result {name}",
            _about(DeliveryKind.RESULT, status=Status.COMPLETED, result={"summary": text}),
        )
        yield f"question {name}", _asks(text=text, context_snippet=text)
        yield f"notice {name}", message(DeliveryKind.NOTICE, payload={"text": text})
        yield f"closed {name}", _closed(text=text, by=["anna"], text_answer=text or "ok")
    yield "question without choices", _asks(choices=[])
    yield "question with one way", _asks(freeform_allowed=False)
    yield "question with many choices", _asks(choices=MANY)
    yield (
        "question with descriptions",
        _asks(
            choices=[
                {"value": "a", "label": "Now", "description": "without a test", "emoji": "rocket"},
                {"value": "b", "label": "Later", "description": HOSTILE},
            ]
        ),
    )
    yield "approval", _asks(**APPROVAL, recipients=(ANNA, BEN))
    yield "approval without approver", _asks(**APPROVAL)
    yield (
        "approval of an action",
        _asks(
            **APPROVAL,
            action={"do": "push", "branch": "draftsman/D-7", "to": "origin"},
            context_snippet=DIFF,
            quorum=2,
            expires_at=WHEN + timedelta(days=1),
            changes="2 files changed, +9 -1",
            recipients=(ANNA,),
        ),
    )
    yield (
        "approval escalated",
        _asks(
            **APPROVAL, escalate_to="leads", escalated_at=WHEN, expires_at=WHEN + timedelta(hours=1)
        ),
    )
    yield "approval of work", _asks(**REVIEW, changes="1 file changed, +1 -0")
    yield (
        "approval after requested changes",
        _asks(
            **REVIEW,
            changes="1 file changed, +1 -0; since D-7/1: no changes",
            requested=("changes requested by ben in D-7/1", "use the v2 API\n\na.py:3: rename it"),
        ),
    )
    yield (
        "question delegated",
        _asks(delegation=Delegation("ben", "anna", WHEN + timedelta(hours=2)), recipients=(ANNA,)),
    )
    yield "reminder", _asks(message_kind=DeliveryKind.REMINDER)
    yield (
        "reminder with a text",
        _asks(message_kind=DeliveryKind.REMINDER, payload={"text": "D-7/2: 2 hours are left"}),
    )
    yield "closed approved", _closed(**APPROVAL, by=["slack:U1", "ben"], outcome="approved")
    denied = {**APPROVAL, "by": ["ben"], "outcome": "denied", "reason": "no test"}
    yield "closed denied", _closed(**denied, job=Status.FAILED)
    yield "closed denied and continued", _closed(**denied)
    yield (
        "closed with changes requested",
        _closed(**REVIEW, by=["ben"], outcome="changes_requested", reason="use the v2 API"),
    )
    yield (
        "closed expired",
        _closed(outcome="expired", status=QuestionStatus.EXPIRED, job=Status.EXPIRED),
    )
    yield (
        "closed by a rule",
        _closed(**APPROVAL, outcome="approved", via="rule", rule=3, reason="pytest tests/*"),
    )
    spans = encode_spans(("closed by ", ActorRef("slack:U2"), " and ", ActorRef("anna")))
    yield "notice about people", message(DeliveryKind.NOTICE, payload={"spans": spans})
    yield (
        "notice of a rule",
        message(
            DeliveryKind.NOTICE, payload={"text": "a rule is proposed: pytest tests/*", "rule": 3}
        ),
    )
    yield (
        "notice to a person",
        message(
            DeliveryKind.NOTICE,
            payload={"text": "you may not answer", "to": "5f1e0c9a8b7d6e5f4a3b2c1d"},
        ),
    )
    yield (
        "digest",
        _digest(
            {
                "name": "D-7/2",
                "jobs": 3,
                "text": "Which color?",
                "title": "Paint",
                "expires_at": None,
            },
            {**DIGEST_ITEM, "text": HOSTILE, "title": HOSTILE},
        ),
    )
    yield "digest of many questions", _digest(*[DIGEST_ITEM] * 3, count=60)
    yield "file", message(DeliveryKind.FILE, payload={"name": "patch.diff"})


ENDED: Final[dict[Status, dict[str, Any]]] = {
    Status.COMPLETED: {"result": RESULT},
    Status.FAILED: {"error": "boom"},
    Status.DEAD_LETTER: {"error": "the network is gone"},
    Status.CANCELED: {"canceled_by": "anna", "cancel_reason": "enough"},
    Status.EXPIRED: {},
}
DENIED: Final[dict[str, Any]] = {
    "error": "denied",
    "denied": True,
    "denied_by": ("anna",),
    "denial_reason": "not now",
}


def _about(kind: DeliveryKind, **fields: Any) -> Message:
    subject = Subject(
        number=7,
        id=UUID(int=7),
        type="run_agent",
        status=Status.QUEUED,
        title="Pay refunds once",
        request=RequestSummary(Mode.FIX, "tidy", "git.example", "acme", "pay"),
        group="release",
        url="https://tickets.example/7",
        invoker="anna",
        usage="1,020 tokens, $0.42",
        next_retry_at=WHEN + timedelta(minutes=5),
        created_at=WHEN,
    )
    subject = replace(subject, **fields)
    if kind is DeliveryKind.RESULT:
        subject = replace(subject, finished_at=WHEN + timedelta(minutes=12))
    return message(kind, subject=subject, question=None)


def _digest(*questions: dict[str, Any], count: int = 0) -> Message:
    payload = {"person": "anna", "count": count or len(questions), "questions": [*questions]}
    return message(DeliveryKind.DIGEST, question=None, payload=payload, recipients=(ANNA,))


def _asks(
    message_kind: DeliveryKind = DeliveryKind.QUESTION,
    *,
    recipients: tuple[Person, ...] = (),
    changes: str = "",
    requested: tuple[str, str] | None = None,
    delegation: Delegation | None = None,
    payload: dict[str, Any] | None = None,
    **fields: Any,
) -> Message:
    return message(
        message_kind,
        question=question(**fields),
        recipients=recipients,
        changes=changes,
        requested=requested,
        delegation=delegation,
        payload=payload,
    )


def _closed(
    *,
    by: list[str] | None = None,
    outcome: str = "answered",
    via: str = "person",
    text_answer: str | None = None,
    reason: str | None = None,
    rule: int | None = None,
    status: QuestionStatus = QuestionStatus.ANSWERED,
    job: Status = Status.RUNNING,
    **fields: Any,
) -> Message:
    closes = "expires_at" if status is QuestionStatus.EXPIRED else "answered_at"
    fields[closes] = WHEN + timedelta(hours=1)
    resolution: dict[str, Any] = {"outcome": outcome, "via": via, "by": by or []}
    optional = {"text": text_answer, "reason": reason, "rule": rule}
    resolution |= {name: value for name, value in optional.items() if value is not None}
    closed: Question = question(status=status, resolution=resolution, **fields)
    built = message(DeliveryKind.QUESTION_CLOSED, question=closed)
    return replace(built, subject=replace(built.subject, status=job))
