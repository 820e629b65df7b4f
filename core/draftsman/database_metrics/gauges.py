"""Gauges of what the database knows, the same in each process that reads them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from draftsman.metrics import OTHER, DatabaseGauge

MAX_PAIRS: Final = 200
"""Maximum pairs of labels of a metric, such as queue and type: those with the most; the rest are
`other`."""


JOBS: Final = DatabaseGauge("jobs", "Jobs that have not ended.", ("queue", "type", "status"))
JOBS_OLDEST: Final = DatabaseGauge(
    "jobs_oldest_seconds",
    "Time since the oldest of them began to wait for a worker, was due, was claimed, or began to"
    " wait for people.",
    ("queue", "type", "status"),
)
FAILURES: Final = DatabaseGauge(
    "open_failures",
    "Failed jobs and dead letters that no person has retried or dismissed.",
    ("status",),
)
QUESTIONS: Final = DatabaseGauge("open_questions", "Open questions.", ("kind",))
QUESTIONS_OLDEST: Final = DatabaseGauge(
    "open_questions_oldest_seconds", "Age of the oldest open question.", ("kind",)
)
DELIVERIES: Final = DatabaseGauge(
    "deliveries", "Deliveries that are not done.", ("channel", "status")
)
DELIVERIES_LATE: Final = DatabaseGauge(
    "deliveries_late_seconds",
    "Time since the delivery that has been due longest was due.",
    ("channel", "status"),
)
DEAD_DELIVERIES: Final = DatabaseGauge(
    "dead_deliveries", "Deliveries that are dead letters, without those that were sent since."
)
WORKERS: Final = DatabaseGauge(
    "workers", "Workers: serving, draining, or silent for longer than a lease.", ("state",)
)
WORKER_SLOTS: Final = DatabaseGauge("workers_slots", "Slots of these workers.", ("state",))
HEARTBEAT_AGE: Final = DatabaseGauge(
    "workers_heartbeat_age_seconds", "Age of the oldest last heartbeat of a worker.", ("state",)
)
LEADER: Final = DatabaseGauge("leader", "1 while a worker is the leader, else 0.")
LEADER_TERM: Final = DatabaseGauge("leader_term", "Number of the leader's term.")
SWEEPS_LATE: Final = DatabaseGauge(
    "sweeps_late_seconds", "Longest time that due work has waited for a sweep of the leader."
)
MODEL_CALLS: Final = DatabaseGauge(
    "model_calls_today", "Calls of models today.", ("agent", "model")
)
MODEL_COST: Final = DatabaseGauge(
    "model_cost_usd_today", "Cost of models today, in US dollars.", ("agent", "model")
)
MODEL_TOKENS: Final = DatabaseGauge(
    "model_tokens_today",
    "Tokens of models today; direction is input or output.",
    ("agent", "model", "direction"),
)
TRUNCATED: Final = DatabaseGauge(
    "metrics_truncated",
    "1 if there are more rows than these metrics count, 10,000 of a status, else 0.",
    ("metric",),
)


@dataclass(frozen=True, slots=True)
class StatusCount:
    """Jobs of a status, queue and type, or deliveries of a status and channel.

    `seconds` are those of the oldest; None: none of them is late.
    """

    status: str
    group: tuple[str, ...]
    count: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class KindCount:
    """Open questions of a kind, and the age of the oldest."""

    kind: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class WorkerCount:
    """Workers of a state, with their slots and the age of the oldest heartbeat."""

    state: str
    count: int
    slots: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ModelUse:
    """Use of a model by an agent today; `rows` were added up."""

    agent: str
    model: str
    calls: int
    cost_usd: float
    input_tokens: int
    output_tokens: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseState:
    """What the gauges show; no more than `most` rows were counted of each kind and status."""

    most: int
    jobs: Sequence[StatusCount] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    questions: Sequence[KindCount] = ()
    deliveries: Sequence[StatusCount] = ()
    dead_deliveries: int = 0
    workers: Sequence[WorkerCount] = ()
    leader: tuple[bool, int] = (False, 0)
    """Whether there is a leader, and the number of its term."""
    due_in: float | None = None
    """Seconds until a sweep has something to do, negative if it is late; None: nothing is due."""
    models: Sequence[ModelUse] = ()


def metrics_text(state: DatabaseState) -> str:
    """Return the gauges in the text format of Prometheus."""
    leads, term = state.leader
    late = max(0.0, -(state.due_in or 0.0))
    return "".join(
        [
            *_by_status(JOBS, JOBS_OLDEST, state.jobs),
            FAILURES.render(({"status": name}, count) for name, count in state.failures.items()),
            QUESTIONS.render(({"kind": item.kind}, item.count) for item in state.questions),
            QUESTIONS_OLDEST.render(
                ({"kind": item.kind}, item.seconds) for item in state.questions
            ),
            *_by_status(DELIVERIES, DELIVERIES_LATE, state.deliveries),
            DEAD_DELIVERIES.render_value(state.dead_deliveries),
            WORKERS.render(({"state": item.state}, item.count) for item in state.workers),
            WORKER_SLOTS.render(({"state": item.state}, item.slots) for item in state.workers),
            HEARTBEAT_AGE.render(({"state": item.state}, item.seconds) for item in state.workers),
            LEADER.render_value(leads),
            LEADER_TERM.render_value(term),
            SWEEPS_LATE.render_value(late),
            *_of_models(state.models),
            TRUNCATED.render(({"metric": name}, value) for name, value in _truncated(state)),
        ]
    )


def _by_status(
    count: DatabaseGauge, oldest: DatabaseGauge, rows: Sequence[StatusCount]
) -> Iterator[str]:
    """Yield the number and the age of the oldest by group and status."""
    *names, last = count.labels
    shown = most_common((row.group, row.count) for row in rows)
    counts = Counter[tuple[str, ...]]()
    ages: dict[tuple[str, ...], float] = {}
    for row in rows:
        group = row.group if row.group in shown else (OTHER,) * len(names)
        key = (*group, row.status)
        counts[key] += row.count
        if row.seconds is not None:
            ages[key] = max(row.seconds, ages.get(key, 0.0))
    labels = {key: dict(zip((*names, last), key, strict=True)) for key in sorted(counts)}
    yield count.render((labels[key], counts[key]) for key in labels)
    yield oldest.render((labels[key], ages[key]) for key in labels if key in ages)


def _of_models(models: Sequence[ModelUse]) -> Iterator[str]:
    shown = most_common(((use.agent, use.model), use.calls) for use in models)
    totals: dict[tuple[str, str], list[float]] = {}
    for use in models:
        key = (use.agent, use.model)
        total = totals.setdefault(key if key in shown else (OTHER, OTHER), [0, 0, 0, 0])
        for index, amount in enumerate(
            (use.calls, use.cost_usd, use.input_tokens, use.output_tokens)
        ):
            total[index] += amount
    labels = {key: dict(zip(("agent", "model"), key, strict=True)) for key in sorted(totals)}
    yield MODEL_CALLS.render((labels[key], totals[key][0]) for key in labels)
    yield MODEL_COST.render((labels[key], totals[key][1]) for key in labels)
    yield MODEL_TOKENS.render(
        ({**labels[key], "direction": direction}, totals[key][index])
        for key in labels
        for index, direction in ((2, "input"), (3, "output"))
    )


def most_common(rows: Iterable[tuple[tuple[str, ...], int]]) -> set[tuple[str, ...]]:
    """Return the groups that are shown by name: those with the most, equal ones by name."""
    counts = Counter[tuple[str, ...]]()
    for group, count in rows:
        counts[group] += count
    return set(sorted(counts, key=lambda group: (-counts[group], group))[:MAX_PAIRS])


def _truncated(state: DatabaseState) -> Iterator[tuple[str, bool]]:
    """Yield whether more rows may exist than were counted, by metric."""
    for metric, rows in ((JOBS, state.jobs), (DELIVERIES, state.deliveries)):
        counts = Counter[str]()
        for row in rows:
            counts[row.status] += row.count
        yield metric.full_name, max(counts.values(), default=0) >= state.most
    yield QUESTIONS.full_name, sum(item.count for item in state.questions) >= state.most
    yield FAILURES.full_name, sum(state.failures.values()) >= state.most
    yield DEAD_DELIVERIES.full_name, state.dead_deliveries >= state.most
    yield MODEL_CALLS.full_name, sum(use.rows for use in state.models) >= state.most
