"""Cost, changes and progress of jobs in rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.entities.entity import Column
from draftsman.entities.jobs import JOBS, RUNNING_SIGN, changes_text, cost_text, live_text
from draftsman.jobs.job import Status
from draftsman.jobs.job_summary import JobFigures, JobSummary
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_tui.dashboard.jobs.view import JobsResource
from tests.tui.dashboard.fixtures_data import NOW, PATCH, ROWS


def test_figures_are_short_and_unknown_figures_are_empty() -> None:
    job = ROWS["jobs"][0]
    assert isinstance(job, JobSummary)
    figures = JobFigures(1, 1.236, 55, 3, "3 of 7 steps: write\ntests")
    full = replace(job, figures=figures, started_at=NOW - timedelta(seconds=192))
    assert (changes_text(full), cost_text(full)) == ("+55 -3", "$1.24")
    assert live_text(full, NOW) == "▸ 3 min 3 of 7 steps: write tests"
    small = replace(job, figures=replace(figures, cost_usd=0.001, added=None, removed=None))
    assert (changes_text(small), cost_text(small)) == ("", "<$0.01")
    unknown = replace(job, figures=None)
    assert (changes_text(unknown), cost_text(unknown)) == ("", "")


def test_a_job_says_that_its_question_expires_soon() -> None:
    def next_of(minutes: int | None) -> str:
        until = None if minutes is None else NOW + timedelta(minutes=minutes)
        figures = JobFigures(1, None, None, None, asks="Go on?", asks_until=until)
        row = replace(ROWS["jobs"][0], status=Status.WAITING_FOR_INPUT, figures=figures)
        return next(column for column in JOBS.columns if column.head == "NEXT").cell(row, NOW).text

    assert next_of(2) == "expires in 2 min: Go on?"
    assert [next_of(minutes) for minutes in (61, None)] == ["Go on?"] * 2


def test_only_the_table_of_the_dashboard_has_a_moving_sign() -> None:
    running = replace(ROWS["jobs"][0], status=Status.RUNNING, started_at=NOW)

    def signs(columns: Sequence[Column[JobSummary]]) -> set[str]:
        cell = next(column.cell for column in columns if column.head == "NEXT")
        return {cell(running, NOW + timedelta(seconds=second)).text[0] for second in range(3)}

    assert signs(JOBS.columns) == {RUNNING_SIGN}
    assert len(signs(JobsResource.entity.columns)) == 3


async def test_rows_have_the_figures_of_their_jobs(make: Factory, rt: Runtime) -> None:
    work = await make.running(type="run_agent", agent="tidy")
    await rt.changes.store(work.lease, PATCH.encode())
    await rt.model_calls.record(work.lease, {"cost_usd": 1.5}, "model-1")
    plan = {"entries": [{"text": "read", "state": "completed"}, {"text": "write"}]}
    activity = [
        Activity(ActivityKind.PLAN, "", detail=plan),
        Activity(ActivityKind.MESSAGE, "I read the code."),
        Activity(ActivityKind.THOUGHT, "hm"),
    ]
    await rt.activity.append(work.lease, 1, activity, QuotaLimit(100, 1 << 20))
    queued = await make.queued()
    page = await rt.read_model.page()
    figures = {job.number: job.figures for job in await rt.read_model.with_figures(page.jobs)}
    assert figures[queued] is None
    found = figures[work.number]
    assert found is not None
    assert (found.cost_usd, found.added, found.removed) == (1.5, 1, 2)
    assert found.progress.endswith("I read the code.")
    assert "1 of 2" in found.progress
    about = QUESTION.model_copy(update={"action": {"day": "-infinity"}})  # of no approval
    await rt.asking.ask(work.lease, about)
    (question,) = await rt.questions.open_of([work.number])
    assert (question.added, question.removed) == (1, 2)
    jobs = await rt.read_model.with_figures((await rt.read_model.page()).jobs)
    assert [job.figures and job.figures.asks_until for job in jobs] == [None, question.expires_at]
    assert [job.figures and job.figures.asks for job in jobs] == [None, QUESTION.text]
    statuses = [job.status for job in jobs]
    assert statuses == [Status.QUEUED, Status.WAITING_FOR_INPUT]
