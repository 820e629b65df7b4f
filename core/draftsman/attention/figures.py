"""Figures of people's time by person, channel and kind of question. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from draftsman.metrics import DatabaseGauge
from draftsman.people.hours import InterruptibleHours, next_allowed
from draftsman.people.policy import Policy
from draftsman.questions.question import QuestionKind


def _gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> DatabaseGauge:
    return DatabaseGauge(f"attention_{name}", f"{text} Of questions of the last day.", labels)


QUESTIONS: Final = _gauge("questions", "Questions that were asked.")
JOBS: Final = _gauge("jobs", "Jobs that asked questions.")
ANSWERS: Final = _gauge("answers", "Accepted answers and votes.")
PINGS: Final = _gauge("pings", "Questions and reminders that were sent.")
QUESTIONS_PER_JOB: Final = _gauge("questions_per_job", "Questions of a job that asked.")
PINGS_PER_ANSWER: Final = _gauge("pings_per_answer", "Pings for each answer.")
QUIET_PINGS: Final = _gauge("quiet_pings", "Interruptions in quiet hours.")
_OF_TIMES: Final = ("channel", "kind", "quantile")
SEEN: Final = _gauge(
    "seen_seconds", "Time until a question was first opened or answered.", _OF_TIMES
)
ANSWERED: Final = _gauge("answer_seconds", "Time from a question to its answer.", _OF_TIMES)


class FigureGroup(StrEnum):
    """Groups of figures."""

    ALL = "all"
    PERSON = "person"
    CHANNEL = "channel"
    KIND = "kind"


@dataclass(frozen=True, slots=True)
class AttentionFigures:
    """Figures of a person, channel, kind of question, or of all; times are in seconds.

    `questions` and `jobs` are those that were asked, and 0 for people and channels. A ping is a
    question or reminder that was sent; that of a person was sent to this person alone.
    """

    by: FigureGroup
    value: str
    questions: int
    jobs: int
    answers: int
    seen_p50: float | None
    """Median time until the question was first opened or answered; of a person, by this person."""
    answer_p50: float | None
    answer_p95: float | None
    pings: int
    pings_per_answer: float | None
    quiet_pings: int = 0
    """Interruptions outside of the hours of all their possible recipients."""
    seen_p95: float | None = None

    @property
    def questions_per_job(self) -> float | None:
        """Questions of each job that asked; None without any."""
        return self.questions / self.jobs if self.jobs else None


@dataclass(frozen=True, slots=True)
class Interruption:
    """A reminder or question that was sent; `person` alone got it, None for a shared target."""

    channel: str
    kind: QuestionKind
    approvers: Sequence[str]
    invoker: str
    person: str | None
    sent_at: datetime


def is_quiet(sent: Interruption, policy: Policy, default: InterruptibleHours | None) -> bool:
    """Return whether none of the possible recipients should have been interrupted at that time."""
    if sent.person is not None and sent.person in policy.people:
        hours = {policy.people[sent.person].quiet}
    else:
        hours = policy.quiet_hours_of(
            sent.approvers, sent.invoker, default, approval=sent.kind is QuestionKind.APPROVAL
        )
    return next_allowed(sent.sent_at, hours) > sent.sent_at


def with_quiet_pings(
    figures: Iterable[AttentionFigures],
    interruptions: Iterable[Interruption],
    policy: Policy,
    default: InterruptibleHours | None,
) -> list[AttentionFigures]:
    """Return the figures with the number of interruptions in quiet hours."""
    counts: Counter[tuple[FigureGroup, str | None]] = Counter()
    for sent in interruptions:
        if is_quiet(sent, policy, default):
            counts[FigureGroup.ALL, ""] += 1
            counts[FigureGroup.PERSON, sent.person] += 1
            counts[FigureGroup.CHANNEL, str(sent.channel)] += 1
            counts[FigureGroup.KIND, str(sent.kind)] += 1
    return [replace(row, quiet_pings=counts[row.by, row.value]) for row in figures]


def metrics_text(figures: Iterable[AttentionFigures]) -> str:
    """Return the figures without people in the text format of Prometheus, as gauges."""
    rows = [row for row in figures if row.by in {FigureGroup.CHANNEL, FigureGroup.KIND}]
    texts = [
        gauge.render_value(value)
        for row in figures
        if row.by is FigureGroup.ALL
        for gauge, value in (
            (QUESTIONS, row.questions),
            (JOBS, row.jobs),
            (ANSWERS, row.answers),
            (PINGS, row.pings),
            (QUESTIONS_PER_JOB, row.questions_per_job),
            (PINGS_PER_ANSWER, row.pings_per_answer),
            (QUIET_PINGS, row.quiet_pings),
        )
    ]
    texts.append(SEEN.render(_quantiles((row, row.seen_p50, row.seen_p95) for row in rows)))
    texts.append(ANSWERED.render(_quantiles((row, row.answer_p50, row.answer_p95) for row in rows)))
    return "".join(texts)


def _quantiles(
    rows: Iterable[tuple[AttentionFigures, float | None, float | None]],
) -> Iterator[tuple[Mapping[str, str], float]]:
    """Yield the samples of a time: the figures of each group, its median and 95th percentile."""
    for row, p50, p95 in rows:
        for quantile, value in (("0.5", p50), ("0.95", p95)):
            if value is not None:
                yield {str(row.by): str(row.value), "quantile": quantile}, value
