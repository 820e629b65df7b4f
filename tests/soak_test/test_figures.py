"""Figures of the soak and their output."""

from __future__ import annotations

import json
from collections import Counter

import click
import pytest

from draftsman_soak.external_effects import EffectRequest, Effects
from draftsman_soak.figures import Figures
from draftsman_soak.final_state import FinalState, JobRecord, RecordedEvent, Violations
from draftsman_soak.ledger import Fault, Ledger, SubmittedAnswer
from draftsman_tui.cli.processes.soak import print_figures
from draftsman_tui.terminal.output import CommandOutput

RAN = JobRecord(
    1,
    "soak:steps",
    "completed",
    job_events=(
        RecordedEvent("job_started", 1, "worker:a", to="running"),
        RecordedEvent("job_started", 4, "worker:b", to="running"),
        RecordedEvent("job_completed", 5, "worker:b", to="completed"),
    ),
    effects=Effects(
        {"i1": ("step-0", "v")},
        (EffectRequest(1, "step-0", recorded=False), EffectRequest(2, "step-0", recorded=False)),
    ),
)


def _ledger() -> Ledger:
    submitted = SubmittedAnswer(1, 1, "e", "ben", "yes", accepted=True, resolved=True)
    return Ledger(
        jobs={1: "soak:steps", 2: "soak:ask"},
        submitted_answers=[
            submitted,
            SubmittedAnswer(1, 1, "f", "cleo", "no", accepted=False, resolved=True),
        ],
        faults=[Fault("worker killed", 2, worker="a"), Fault("connections cut", 9)],
        restarts=1,
        exits=Counter({6: 1}),
        unsupported={"time namespace: Operation not permitted"},
    )


def test_seeds_add_up() -> None:
    figures = Figures()
    for seed in (1, 2):
        figures.add(seed, FinalState({1: RAN}), _ledger(), Violations(stuck=("D-2 is queued",)))
    assert (figures.jobs, figures.runs, figures.finished) == (4, 4, Counter(completed=2))
    assert (figures.answers_given, figures.answers_accepted) == (4, 2)
    assert (figures.kills, figures.restarts) == (2, 2)
    assert figures.faults == {"worker killed": 2, "connections cut": 2}
    assert (figures.effects, figures.effects_rejected) == (2, 2)
    assert (figures.recovered, figures.recovery_p50, figures.recovery_p95) == (2, 2.0, 2.0)
    assert figures.recovery == {"worker killed": {"recovered": 2, "p50": 2.0, "p95": 2.0}}
    assert figures.unsupported_faults == ["time namespace: Operation not permitted"]
    assert figures.jobs_stuck == 2
    assert figures.findings == ["seed 1: D-2 is queued", "seed 2: D-2 is queued"]


def test_each_person_reads_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    figures = Figures()
    figures.add(1, FinalState({1: RAN}), _ledger(), Violations())
    print_figures(CommandOutput(), figures)
    output = capsys.readouterr().out
    for text in (
        "jobs                               2  completed 1",
        "answers                            2  1 accepted",
        "kills                              1",
        "unexpected exits                   1  exit code 6 1",
        (
            "effects                            1  1 requested twice and rejected by the external"
            " system"
        ),
        "recovery                           1  p50 2.0 s, p95 2.0 s",
        "  worker killed                    1  p50 2.0 s, p95 2.0 s",
        "not supported                      1  time namespace: Operation not permitted",
    ):
        assert text in output


def test_a_soak_without_a_fault_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    figures = Figures()
    figures.add(1, FinalState(), Ledger(), Violations())
    print_figures(CommandOutput(), figures)
    assert "no fault hit a running job; for a meaningful result" in capsys.readouterr().err
    figures.add(2, FinalState({1: RAN}), _ledger(), Violations())
    print_figures(CommandOutput(), figures)
    assert capsys.readouterr().err == ""


def test_json_report_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    figures = Figures(failed={1: "/tmp/soak/seed-1"})
    figures.add(1, FinalState({1: RAN}), _ledger(), Violations(doubled=("D-1: twice",)))
    with pytest.raises(click.exceptions.Exit) as end:
        print_figures(CommandOutput(json=True), figures)
    assert end.value.exit_code == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert (document["passed"], document["effects_duplicated"], document["jobs_stuck"]) == (
        False,
        1,
        0,
    )
    assert document["faults"] == {"worker killed": 1, "connections cut": 1}
    assert document["finished"] == {"completed": 1}
    assert document["findings"] == ["seed 1: D-1: twice"]
    assert "/tmp/soak/seed-1" in captured.err
    assert not [key for key in document if key.startswith("_")]
