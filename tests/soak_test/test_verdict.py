"""Violations: each broken guarantee in a valid final state gives a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import click
import pytest

from draftsman.questions import answer
from draftsman_soak.external_effects import EffectRequest, Effects
from draftsman_soak.figures import Figures
from draftsman_soak.final_state import (
    FinalState,
    JobRecord,
    RecordedAnswer,
    RecordedEvent,
    RecordedQuestion,
    RecordedStep,
    Violations,
    find_violations,
)
from draftsman_soak.handlers import MARK
from draftsman_soak.ledger import Ledger, SubmittedAnswer
from draftsman_soak.simulated_users import is_decided
from draftsman_tui.cli.processes.soak import print_figures
from draftsman_tui.terminal.output import CommandOutput
from tests.support.cases import cases

SEED = 7
TRAIL = (
    RecordedEvent("job_created", 1, to="queued"),
    RecordedEvent("job_claimed", 2, "worker:a", to="claimed"),
    RecordedEvent("job_started", 2, "worker:a", to="running"),
    RecordedEvent(MARK, 3, "worker:a", run=1),
    RecordedEvent("needs_input", 4, "worker:a", to="waiting_for_input"),
    RecordedEvent("job_resumed", 5, "cli:ben", to="resumed"),
    RecordedEvent("job_claimed", 6, "worker:b", to="claimed"),
    RecordedEvent("job_started", 6, "worker:b", to="running"),
    RecordedEvent(MARK, 7, "worker:b", run=2),
    RecordedEvent("job_completed", 8, "worker:b", to="completed"),
)
ASKED = JobRecord(
    1,
    "soak:ask",
    "completed",
    {"effects": {"before": "v1", "after-0": "v2"}, "answers": {"go-0": "yes"}},
    steps=(RecordedStep("before", "done", "i1", "v1"), RecordedStep("after-0", "done", "i2", "v2")),
    questions=(RecordedQuestion(1, "go-0", "answered", "answered", "yes", ("ben",)),),
    answers=(
        RecordedAnswer(1, "ben:D-1/1:yes", "yes", True),
        RecordedAnswer(1, "cleo:D-1/1:no", "no", False),
    ),
    job_events=TRAIL,
    effects=Effects(
        {"i1": ("before", "v1"), "i2": ("after-0", "v2")},
        (
            EffectRequest(1, "before", recorded=False),
            EffectRequest(1, "before", recorded=True),
            EffectRequest(2, "before", recorded=True),
            EffectRequest(2, "after-0", recorded=False),
            EffectRequest(1, "after-0", recorded=False),  # a run that was suspended, and wakes
            EffectRequest(2, "after-0", recorded=True),
        ),
    ),
)
GATED = JobRecord(
    2,
    "soak:gate",
    "completed",
    {"answers": {"gate": "approved"}},
    questions=(RecordedQuestion(1, "gate", "answered", "approved", by=("ben", "cleo")),),
    answers=(RecordedAnswer(1, "ben:D-2/1:True", "approve", True),),
)
DOOMED = JobRecord(3, "soak:doomed", "dead_letter", error="the other side is down")
CANCELED = JobRecord(4, "soak:steps", "canceled")
SLEPT = JobRecord(
    5, "soak:rest", "completed", steps=(RecordedStep("sleep:nap", "done", "i5", "2026-01-01"),)
)
AGENT = JobRecord(6, "run_agent", "completed", {"summary": "tidy"})


@pytest.fixture
def ledger() -> Ledger:
    """Return the ledger of a valid final state."""
    built = Ledger(
        requests={f"request-{job}": {job} for job in (1, 2, 3, 4, 5, 6)},
        jobs={job.number: job.type for job in (ASKED, GATED, DOOMED, CANCELED, SLEPT, AGENT)},
        cancels={4},
        cancel_tries={4, 5},
    )
    built.submitted_answers = [
        SubmittedAnswer(1, 1, "ben:D-1/1:yes", "ben", "yes", accepted=True, resolved=True),
        SubmittedAnswer(1, 1, "cleo:D-1/1:no", "cleo", "no", accepted=False, resolved=True),
        SubmittedAnswer(2, 1, "ben:D-2/1:True", "ben", "approve", accepted=True, resolved=False),
    ]
    return built


def world(**changes: JobRecord | None) -> FinalState:
    """Return the valid final state, with jobs replaced or removed: `D1=…`."""
    jobs = {job.number: job for job in (ASKED, GATED, DOOMED, CANCELED, SLEPT, AGENT)}
    for name, job in changes.items():
        number = int(name.removeprefix("D"))
        jobs.pop(number)
        if job is not None:
            jobs[number] = job
    return FinalState(jobs)


def finish(verdict: Violations, ledger: Ledger, state: FinalState) -> int:
    """Conclude as the command does; return its exit code."""
    figures = Figures()
    figures.add(SEED, state, ledger, verdict)
    try:
        print_figures(CommandOutput(), figures)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0


def test_valid_data_passes(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    state = world()
    verdict = find_violations(state, ledger)
    assert verdict.findings == ()
    assert finish(verdict, ledger, state) == 0
    assert "duplicate effects                  0" in capsys.readouterr().out


def job_with(**changes: object) -> FinalState:
    """Return the final state with changed fields of D-1."""
    return world(D1=replace(ASKED, **changes))  # type: ignore[arg-type]


def effects_with(**also: tuple[str, str]) -> Effects:
    """Return the effects of D-1 with added or replaced effects."""
    return replace(ASKED.effects, created={**ASKED.effects.created, **also})


def requests(*also: EffectRequest) -> Effects:
    """Return the effects of D-1 with added requests."""
    return replace(ASKED.effects, requests=(*ASKED.effects.requests, *also))


def result_with(**result: dict[str, str]) -> FinalState:
    """Return the final state with another result of D-1."""
    return job_with(result={**ASKED.result, **result})


def events_in_order(*order: int) -> FinalState:
    """Return the final state with the events of D-1 in another order."""
    return job_with(job_events=tuple(TRAIL[place] for place in order))


STEPS = ASKED.steps
OPEN = replace(GATED.questions[0], status="open", outcome=None, by=())


@pytest.mark.parametrize(
    ("field", "state", "message"),
    [
        (
            "doubled",
            job_with(effects=effects_with(i9=("before", "v9"))),
            "D-1: effect before was created 2 times",
        ),
        (
            "doubled",
            job_with(effects=effects_with(i1=("before", "v9"))),
            "recorded as 'v1', but was created as 'v9'",
        ),
        (
            "doubled",
            job_with(effects=effects_with(i9=("other", "v9"))),
            "other was created, but no step recorded",
        ),
        ("doubled", job_with(steps=STEPS[:1]), "after-0 was created, but no step recorded it"),
        (
            "doubled",
            result_with(effects={"before": "v2"}),
            "effect before has another value than the handler",
        ),
        (
            "doubled",
            job_with(effects=requests(EffectRequest(3, "before", recorded=False))),
            "run 3 requested effect before, which run 1 had recorded",
        ),
        ("answers_lost", job_with(answers=ASKED.answers[1:]), "the answer 'yes' of ben is missing"),
        (
            "answers_lost",
            job_with(answers=(replace(ASKED.answers[0], value="no"),)),
            "the answer 'yes' of ben is missing",
        ),
        (
            "answers_lost",
            job_with(questions=(replace(ASKED.questions[0], value="no"),)),
            "did not resolve it: answered 'no'",
        ),
        (
            "answers_lost",
            job_with(questions=(replace(ASKED.questions[0], status="expired"),)),
            "did not resolve it: expired",
        ),
        ("answers_lost", result_with(answers={"go-0": "later"}), "the handler received later"),
        ("answers_lost", result_with(answers={}), "the handler received nothing"),
        ("answers_lost", job_with(questions=()), "no longer has a question"),
        ("answers_lost", world(D2=replace(GATED, answers=())), "'approve' of ben is missing"),
        (
            "answers_lost",
            world(D2=replace(GATED, questions=(replace(GATED.questions[0], by=("cleo",)),))),
            "did not count: approved by cleo",
        ),
        (
            "answers_lost",
            world(D2=replace(GATED, result={"answers": {"gate": "denied"}})),
            "the handler received denied",
        ),
        ("jobs_lost", world(D6=None), "D-6 (run_agent) was acknowledged but does not exist"),
        ("stuck", world(D2=replace(GATED, status="resumed")), "D-2 (soak:gate) is resumed"),
        (
            "overlapping",
            events_in_order(0, 1, 2, 4, 5, 6, 7, 3, 8, 9),
            "run 1 wrote while run 2 was active",
        ),
        (
            "overlapping",
            events_in_order(0, 1, 2, 4, 3, 5, 6, 7, 8, 9),
            "run 1 wrote while no run was active",
        ),
        (
            "wrongly_ended",
            world(D4=replace(CANCELED, status="completed")),
            "is completed, not canceled",
        ),
        (
            "wrongly_ended",
            world(D6=replace(AGENT, status="failed", error="no such agent")),
            "D-6 (run_agent) is failed, not completed: no such agent",
        ),
        (
            "wrongly_ended",
            world(D3=replace(DOOMED, status="completed")),
            "is completed, not dead_letter",
        ),
        ("broken", FinalState(world().jobs, ("budgets_hold: D-1: attempts 4/3",)), "attempts 4/3"),
    ],
)
def test_a_violated_guarantee_is_detected(
    field: str, state: FinalState, message: str, ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = find_violations(state, ledger)
    assert message in "\n".join(getattr(verdict, field)), verdict
    assert set(verdict.findings) == set(getattr(verdict, field)), "one cause violates one guarantee"
    assert finish(verdict, ledger, state) == 1
    output = capsys.readouterr().out
    assert f"seed {SEED}: " in output
    assert message in output


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda ledger: ledger.requests["request-1"].add(9), "request-1 created 2 jobs: [1, 9]"),
        (lambda ledger: ledger.retries.update({3: {7, 8}}), "D-3 was retried 2 times: [7, 8]"),
    ],
)
def test_a_request_with_two_jobs_is_detected(
    break_it: Callable[[Ledger], object], message: str, ledger: Ledger
) -> None:
    break_it(ledger)
    assert message in find_violations(world(), ledger).jobs_lost


def test_an_undecided_approval_keeps_its_votes(ledger: Ledger) -> None:
    state = world(D2=replace(GATED, status="canceled", questions=(OPEN,), result={}))
    ledger.cancel_tries.add(2)
    assert find_violations(state, ledger).findings == ()
    decided = replace(ledger.submitted_answers[2], resolved=True)
    ledger.submitted_answers[2] = decided
    assert "did not decide it: open" in find_violations(state, ledger).answers_lost[0]


def test_an_unexpected_error_fails_the_soak(ledger: Ledger) -> None:
    ledger.unexpected_errors.append("unexpected Refused: no")
    assert find_violations(world(), ledger).findings == ("unexpected Refused: no",)


@cases(
    ("outcome", "resolved", "counts"),
    [("approved", True, True), ("canceled", True, False), (None, False, False)],
)
def test_a_vote_repeated_after_a_cancel_decides_nothing(
    outcome: str | None, resolved: bool, counts: bool
) -> None:
    resolution = None if outcome is None else {"outcome": outcome}
    verdict = answer.Verdict(
        1, 1, accepted=True, resolved=resolved, duplicate=True, resolution=resolution
    )
    assert is_decided(verdict) is counts


def test_an_open_transaction_that_stops_all_jobs_is_found(ledger: Ledger) -> None:
    ledger.stalls = [1.0, 4.0]
    verdict = find_violations(world(), ledger)
    assert verdict.stalled == (
        "no job made progress for 1.0 s, while a transaction was open",
        "no job made progress for 4.0 s, while a transaction was open",
    )
    assert finish(verdict, ledger, world()) == 1
