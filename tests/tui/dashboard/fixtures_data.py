"""Fixed values for pictures: jobs, questions and workers of a team at noon."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from draftsman.costs.budgets import BudgetUse
from draftsman.deliveries.delivery import Delivery, DeliveryKind, DeliveryStatus
from draftsman.entities.costs import BudgetRow
from draftsman.entities.repos import RepoRow
from draftsman.entities.workers import Health, WorkerRow
from draftsman.events.event import Event
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.section import LineSpan
from draftsman.jobs.details.service.read_model import BUCKET_SECONDS
from draftsman.jobs.details.stats import ActivityBucket, RecentActivity
from draftsman.jobs.details.wait_reason import WaitReason
from draftsman.jobs.job import (
    AgentRequest,
    GroupKind,
    Job,
    Mode,
    OnFailure,
    OnLost,
    RequestSummary,
    Source,
    Status,
)
from draftsman.jobs.job_summary import JobSummary, JobVersion, Replacement
from draftsman.jobs.runs.run import Run, RunStatus
from draftsman.people.actor import Actor
from draftsman.people.policy import ROLES
from draftsman.questions.answer import Answer
from draftsman.questions.question import (
    OnDeny,
    OnExpire,
    OpenQuestion,
    QuestionKind,
    QuestionStatus,
)
from draftsman.queues.queue_models import QueuePause, QueueSummary
from draftsman.repos.repo_catalog import Repo
from draftsman.schedules.schedule import FireStatus, Misfire, Overlap, Schedule
from draftsman.schedules.template import Template, TemplateDefinition
from draftsman.worker.registry.registered_worker import RegisteredWorker
from draftsman.workflows.dependencies import JobTree
from draftsman.workflows.groups import JobGroup
from draftsman_bots.trello.command_line.board_rows import BoardRow
from draftsman_bots.trello.records.board import BoardConfig, LabelRule
from draftsman_tui.dashboard.frame.dashboard_stats import DashboardStats, WorkerStats
from draftsman_tui.dashboard.jobs.details.log_buffer import LogLine, LogView
from draftsman_tui.dashboard.jobs.details.snapshot import JobPatch, JobSnapshot
from tests.tui.dashboard.fixture_figures import COSTS, FIGURES, RULES, THROUGHPUT

NOW: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)
ANNA: Final = Actor(Source.TUI, "anna", "Anna", "anna", ROLES, owner=True)
TITLES: Final = (
    "Tidy the inventory service",
    "Fix the flaky test of the payment gateway, which fails on the first of each month",
    "Münze ⚙ zählen 数える",
    "Ship it",
    "Upgrade the build image",
)
"""Titles: long, short and wide."""
BEFORE: Final = {
    "inventory/stock.py": """import os
import re
LIMIT = 5
def count(items):
    return len([i for i in items])
"""
}
AFTER: Final = {
    "inventory/stock.py": """import re
LIMIT = 5
def count(items):
    return len(items)
"""
}
PATCH: Final = """diff --git a/inventory/stock.py b/inventory/stock.py
index f874f95ac72ff243ad98a1c480d200737bad8980..69e084ec344c759af173ca0f70c92c82491e0e7d 100644
--- a/inventory/stock.py
+++ b/inventory/stock.py
@@ -1,5 +1,4 @@
-import os
 import re
 LIMIT = 5
 def count(items):
-    return len([i for i in items])
+    return len(items)
"""
"""Patch of an agent that changes BEFORE to AFTER; test_answers.py compares it with git's."""


BUMP = TemplateDefinition(
    description="Update a dependency",
    parameters={"properties": {"package": {"type": "string"}, "level": {"enum": ["minor"]}}},
    text="Update {package}",
)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def schedule(name: str, rule: str, **columns: Any) -> Schedule:
    unset = dict.fromkeys((field.name for field in fields(Schedule)), None)
    given = {
        "id": 1,
        "name": name,
        "rule": rule,
        "timezone": "Europe/Berlin",
        "template": "bump",
        "params": {},
        "misfire": Misfire.LAST,
        "misfire_limit": 10,
        "jitter": 0,
        "overlap": Overlap.SKIP,
        "created_by": "anna",
        "created_at": ago(300),
        "updated_at": ago(300),
        "due_at": ago(-95),
        "fire_at": ago(-95),
        "last_due_at": ago(60) if "last_status" in columns else None,
    }
    return Schedule(**{**unset, **given, **columns})


def job(number: int, status: Status) -> JobSummary:
    error = "the disk of the build host is full" if status in ("failed", "dead_letter") else None
    return JobSummary(
        number=number,
        id=UUID(int=number),
        type="run_agent",
        queue="default",
        status=status,
        source="cli",
        title=TITLES[number % 5],
        request=RequestSummary(
            Mode.FIX, "tidy", None, "acme", ("pay", "inventory", "site")[number % 3]
        ),
        invoker_id=("anna", "ben", "slack:U012ABCDEF")[number % 3],
        tags=["nightly"] if number % 4 == 0 else [],
        attempts=0,
        max_attempts=3,
        retry_count=0,
        max_retries=3,
        run_count=1 + number % 2,
        next_retry_at=None,
        run_at=None,
        last_error=error,
        error_class=None,
        created_at=ago(7 * (144 - number)),
        started_at=ago(6 * (144 - number)),
        finished_at=None,
        template=None,
        template_version=None,
        due_in=90.0 if status in ("retrying", "scheduled") else None,
        failure_open=status in ("failed", "dead_letter"),
    )


def question(number: int = 142, kind: QuestionKind = QuestionKind.INPUT) -> OpenQuestion:
    gate = kind is QuestionKind.APPROVAL
    choices: list[dict[str, Any]] = [
        {"value": "all", "label": "all fixes", "description": "also those that change behavior"},
        {"value": "safe", "label": "safe fixes", "description": None},
    ]
    return OpenQuestion(
        job=number,
        ordinal=1,
        run=1,
        key="what",
        kind=kind,
        status=QuestionStatus.OPEN,
        text="Push the branch to origin?" if gate else "Which fixes should be applied?",
        choices=[] if gate else choices,
        freeform_allowed=not gate,
        context_snippet=None if gate else "inventory/stock.py:1: `os` imported but unused",
        approvers=["maintainers"] if gate else [],
        quorum=1,
        on_expire=OnExpire.EXPIRE,
        default_value=None,
        on_deny=OnDeny.FAIL,
        digest="",
        action={"to": "origin", "push": "draftsman/D-140"} if gate else None,
        resolution=None,
        asked_at=ago(3),
        expires_at=NOW + timedelta(minutes=40 if gate else 300),
        answered_at=None,
        title=TITLES[0],
        repo="acme/inventory",
        requester="ben",
        agent="tidy",
    )


GATE: Final = question(140, QuestionKind.APPROVAL)


def run(number: int, ordinal: int, status: RunStatus) -> Run:
    ended = None if status is RunStatus.RUNNING else ago(1)
    failed = status is RunStatus.FAILED
    return Run(
        *(number, ordinal, UUID(int=7), 1, {}, status, ago(0.1), ago(4), ended),
        exit_code=2 if failed else None,
        error="make: *** [test] Error 2" if failed else None,
        error_class="TRANSIENT_APP" if failed else None,
        usage=None,
        result=None,
    )


def delivery(seq: int, status: DeliveryStatus) -> Delivery:
    dead = status is DeliveryStatus.DEAD_LETTER
    return Delivery(
        *(seq, UUID(int=seq), 140, None, None),
        channel="webhook" if dead else "slack",
        target="ops" if dead else "C012ABCDE",
        thread=None,
        kind=DeliveryKind.RESULT if dead else DeliveryKind.QUESTION,
        status=status,
        attempts=10 if dead else 1,
        in_doubt=False,
        next_attempt_at=None,
        external_ref=None,
        last_error="ops.example.org answered 503 Service Unavailable" if dead else None,
        created_at=ago(5),
        sent_at=None if dead else ago(4),
    )


def worker(number: int, silent: float) -> WorkerRow:
    row = RegisteredWorker(
        id=UUID(int=number),
        host=f"build-{number}",
        host_id="",
        pid=4200 + number,
        pid_started=0,
        version="0.1.0",
        types=[],
        queues=["default", "nightly"],
        slots=10,
        draining=False,
        started_at=ago(600),
        heartbeat_at=ago(silent),
        busy=3,
        heartbeat_age=silent,
        connected=True,
        lost=False,
        leader=number == 1,
    )
    return WorkerRow(row, Health.SILENT if silent > 60 else Health.ALIVE)


def event(id: int, kind: str, to: str | None, **payload: Any) -> Event:
    actor = f"worker:{UUID(int=1)}" if to == "running" else "cli:anna"
    return Event(142, id, 1, kind, None, to, actor, payload, ago(20 - id), 1, 1)


def repo(id: int, name: str, by: str) -> RepoRow:
    address = f"https://git.example/acme/{name}"
    return RepoRow(Repo(id, "git.example", "acme", name, address, "main", id == 1, by, ago(9999)))


_ORDER: Final = [
    *(Status.RUNNING, Status.WAITING_FOR_INPUT, Status.WAITING_FOR_APPROVAL, Status.RETRYING),
    *(Status.QUEUED, Status.CLAIMED, Status.RESUMED, Status.SCHEDULED, Status.FAILED),
    *(Status.DEAD_LETTER, Status.COMPLETED, Status.CANCELED, Status.EXPIRED),
]


def job_group(
    id: int,
    name: str,
    kind: GroupKind,
    succeeded: int,
    *,
    running: int = 0,
    waiting: int = 0,
    failed: int = 0,
) -> JobGroup:
    """Return a group with these numbers of jobs."""
    total = succeeded + running + waiting + failed
    made = ("cli:anna", ago(60), None, None, None)
    counts = (total, succeeded, running, waiting, failed, 0)
    return JobGroup(id, name, kind, OnFailure.STOP, *made, *counts, [])


ROWS: Final[dict[str, list[Any]]] = {
    "jobs": [job(143 - nth, status) for nth, status in enumerate(_ORDER)],
    "inbox": [GATE, question()],
    "dead": [job(134, Status.DEAD_LETTER), job(97, Status.DEAD_LETTER)],
    "runs": [
        run(143, 1, RunStatus.RUNNING),
        run(142, 1, RunStatus.PARKED),
        run(135, 2, RunStatus.FAILED),
        run(135, 1, RunStatus.COMPLETED),
    ],
    "deliveries": [
        delivery(812, DeliveryStatus.PENDING),
        delivery(811, DeliveryStatus.DEAD_LETTER),
        delivery(810, DeliveryStatus.SENT),
    ],
    "workers": [worker(1, 2), worker(2, 95)],
    "events": [
        event(9, "question_asked", "waiting_for_input", question=1),
        event(8, "validation_ran", None, name="lint", passed=False, summary="3 findings"),
        event(7, "job_started", "running"),
        event(6, "job_created", "queued"),
    ],
    "repos": [
        repo(1, "pay", "anna"),
        repo(2, "inventory", "ben"),
    ],
    "queues": [
        QueueSummary("default", 3, 0, 2, 95.0, capped=False),
        QueueSummary(
            *("pay", 0, 14, 1, 4000.0),
            capped=False,
            pauses=(QueuePause("pay", None, "disk is full", "cli:olga", ago(55)),),
        ),
    ],
    "costs": COSTS,
    "figures": FIGURES,
    "stats": THROUGHPUT,
    "rules": RULES,
    "budgets": [
        BudgetRow(BudgetUse("all:*", NOW.date(), "cost_usd", 20.0, 0.4, 200, 0)),
        BudgetRow(BudgetUse("job:142", None, "cost_usd", 9.2, 0.4, 10, 5)),
        BudgetRow(BudgetUse("repo:*", None, "input_tokens", 0, 0, 20_000_000, 0)),
        BudgetRow(BudgetUse("person:anna", NOW.date(), "cost_usd", 20.3, 0, 20, 0)),
    ],
    "boards": [
        BoardRow(
            BoardConfig(
                board_id="5f1e0c9a8b7d6e5f4a3b2c1d",
                name="Plans",
                labels={"5f1e0c9a8b7d6e5f4a3b2c1e": LabelRule(name="draftsman", mode=Mode.FIX)},
            ),
            polled_at=ago(1),
        )
    ],
    "schedules": [
        schedule("nightly", "0 2 * * *", last_job=141, last_status=FireStatus.FIRED),
        schedule("poll", "@every 90m", paused_at=ago(30), paused_by="olga", pause_reason="freeze"),
        schedule(
            "weekly", "0 9 * * mon", last_status=FireStatus.REFUSED, last_reason="unknown agent"
        ),
    ],
    "templates": [
        Template("bump", 3, BUMP, "cli:anna", ago(90)),
        Template("nightly", 1, TemplateDefinition(agent="tidy", text="Tidy up"), "cli:ben", ago(9)),
    ],
    "groups": [
        job_group(2, "release", GroupKind.SEQUENTIAL, succeeded=3, running=1, waiting=3),
        job_group(1, "checks", GroupKind.PARALLEL, succeeded=9, failed=1),
    ],
}
"""Rows of each table."""


def activity() -> RecentActivity:
    """Return an increasing number of finished jobs, and an answer every few minutes."""
    now = int(NOW.timestamp()) // BUCKET_SECONDS
    ended = {now - nth: (180 - nth) // 9 % 14 for nth in range(180)}
    took = {now - nth: [20.0 + nth] for nth in range(0, 180, 25)}
    spans = {at: ActivityBucket(at, count, took.get(at, [])) for at, count in ended.items()}
    return RecentActivity(spans, (1, 1, 1), now - 180)


JOBS: Final = dict.fromkeys(map(str, Status), 3) | {"completed": 10_000}
WORKERS: Final = WorkerStats({"alive": 2, "silent": 1}, 7, 20, "00000001", 2.0)
STATS: Final = DashboardStats(
    JOBS, WORKERS, 4.0, activity(), open_failures={"failed": 3, "dead_letter": 3}
)
"""Statistics of the overview."""


def whole_job() -> Job:
    """Return job D-142 with the fields of its screen."""
    nothing: dict[str, Any] = dict.fromkeys(field.name for field in fields(Job))
    line = ROWS["jobs"][1]
    same = {name: getattr(line, name) for name in line.__slots__ if name in nothing}
    given = {
        "source": "trello",
        "source_type": "card",
        "invoker_display_name": "Anna",
        "url": "https://trello.example/c/abc123",
        "title": "Count coins, too",
        "request": AgentRequest(
            mode=Mode.FIX,
            agent="tidy",
            repo_host=None,
            repo_owner="acme",
            repo_name=line.request.repo_name,
            text="The stock counts notes only.\n\n- coins\n- small change",
            skills=[],
        ),
        "payload": {"depth": 3},
        "overrides": {},
        "chain_length": 1,
        "on_lost": OnLost.RESUME,
        "version": 7,
        "queued_at": ago(14),
        "updated_at": ago(3),
    }
    return Job(**nothing | same | given)


def job_details(**parts: Any) -> JobDetails:
    """Return a job with an open question, and with other parts of the test."""
    answered = Answer(
        *(1, 142, 1, "input", "slack", "e-1", "U012ABCDEF", "Ben", "ben", {"text": "coins"}),
        accepted=False,
        reason="there is no such choice",
        created_at=ago(1),
    )
    unset: dict[str, Any] = dict.fromkeys((field.name for field in fields(JobDetails)), ())
    given: dict[str, Any] = {
        "job": whole_job(),
        "at": NOW,
        "version": JobVersion(Status.WAITING_FOR_INPUT, 7, paused=False),
        "wait_reason": WaitReason(
            Status.WAITING_FOR_INPUT, "question", "D-142/1 needs an answer", "a: answer it"
        ),
        "runs": [run(142, 1, RunStatus.PARKED)],
        "questions": [question()],
        "open_questions": [question()],
        "answers": [answered],
        "attention": {},
        "retry_chain": [],
        "replacement": Replacement(None, None, None),
        "tree": JobTree([], [], 0, None),
        **dict.fromkeys(("occurrence", "group", "family")),
        "events": ROWS["events"][::-1],
        "deliveries": ROWS["deliveries"],
    }
    return JobDetails(**unset | given | parts)


def job_snapshot(**parts: Any) -> JobSnapshot:
    """Return a snapshot of a job with data in every tab, and with other parts of the test."""
    lines = [
        *("cloning https://git.example/acme/inventory", "ruff check .", "Found 3 errors."),
        "inventory/stock.py:1:8: F401 `os` imported but unused",
    ]
    details = job_details(**parts)
    return JobSnapshot(
        details,
        NOW,
        responders={1: LineSpan("anna, ben")},
        log=LogView([LogLine(nth, 1, text) for nth, text in enumerate(lines)]),
        patch=JobPatch(PATCH, len(PATCH)),
    )
