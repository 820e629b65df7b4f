"""The checks of `doctor --invariants`: sound data passes, and every violation is found."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.jobs.details.invariants import SENTENCES, problems
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.support.cases import cases
from tests.support.queries import TEXTS, explain
from tests.support.statements import rows, run

INVARIANTS = TEXTS["invariants"]
CHOICES = re.compile(r"(CASE(?:(?!CASE).)*END|'\w+') AS sentence", re.DOTALL)

BREAK = {
    "request_has_a_state": "UPDATE draftsman.job_states SET type = 'other' WHERE number = %(run)s",
    "states_follow_their_rules": "UPDATE draftsman.job_states SET finished_at = draftsman.now()",
    "running_has_one_open_run": (
        "UPDATE draftsman.job_runs"
        " SET status = 'failed', finished_at = draftsman.now() WHERE job = %(run)s"
    ),
    "open_run_belongs_to_running_job": (
        "UPDATE draftsman.job_runs SET lease_token = 99 WHERE job = %(run)s"
    ),
    "result_is_that_of_the_completed_run": (
        "UPDATE draftsman.job_states SET result_token = result_token - 1 WHERE status = 'completed'"
    ),
    "waiting_has_open_questions": (
        "UPDATE draftsman.job_questions SET status = 'canceled', resolution = '{}'"
        " WHERE status = 'open'"
    ),
    "open_question_belongs_to_waiting_job": (
        "UPDATE draftsman.job_states SET status = 'waiting_for_approval' WHERE number = %(ask)s"
    ),
    "open_questions_are_of_the_last_run": (
        "UPDATE draftsman.job_questions SET run = 7 WHERE status = 'open'"
    ),
    "alternatives_close_together": (
        "WITH other AS (INSERT INTO draftsman.job_questions (job, ordinal, run, key, kind, status,"
        " text, freeform_allowed, digest, resolution, alternative_of) SELECT %(ask)s, 9, 1,"
        " 'other', 'input', 'expired', 'Well?', true, 'd', '{}', 1) UPDATE draftsman.job_questions"
        " SET alternative_of = 1 WHERE job = %(ask)s AND ordinal = 1"
    ),
    "answered_has_an_accepted_answer": "DELETE FROM draftsman.job_answers",
    "accepted_answer_resolved_its_question": (
        "UPDATE draftsman.job_questions SET status = 'open', resolution = NULL"
        " WHERE status = 'answered'"
    ),
    "concurrency_key_is_held_once": (
        "UPDATE draftsman.job_states SET concurrency_key = 'k', hold = 'key', status = 'queued',"
        " finished_at = NULL"
    ),
    "bucket_counts_its_jobs": (
        "UPDATE draftsman.job_states SET limits = '{repo:shop}' WHERE number = %(run)s"
    ),
    "waiting_jobs_have_a_parent": (
        "UPDATE draftsman.job_states SET hold = 'parents' WHERE number = %(run)s"
    ),
    "jobs_start_after_their_parents": (
        "INSERT INTO draftsman.job_dependencies (job, parent, ordinal, condition)"
        " VALUES (%(ask)s, %(run)s, 1, 'success')"
    ),
    "dependencies_agree_with_their_parents": (
        "INSERT INTO draftsman.job_dependencies (job, parent, ordinal, condition, met)"
        " VALUES (%(ask)s, %(run)s, 1, 'success', true)"
    ),
    "stopped_groups_start_no_job": (
        "UPDATE draftsman.job_states SET status = 'queued', finished_at = NULL, run_count = 0"
        " WHERE number = %(skipped)s"
    ),
    "sequential_groups_run_one_job": (
        "UPDATE draftsman.job_states SET status = 'running', hold = NULL WHERE number = %(next)s"
    ),
    "run_count_is_the_newest_run": "UPDATE draftsman.job_states SET run_count = run_count + 1",
    "version_counts_the_events": "UPDATE draftsman.job_states SET version = version + 1",
    "last_event_is_the_status": (
        "UPDATE draftsman.job_events SET to_status = 'expired' WHERE kind = 'job_started'"
    ),
    "status_events_are_contiguous": (
        "UPDATE draftsman.job_events SET from_status = 'expired' WHERE kind = 'job_started'"
    ),
    "events_belong_to_jobs": (
        "INSERT INTO draftsman.job_events (job, kind, actor) VALUES (999, 'k', 'a')"
    ),
    "event_rows_are_of_a_block": (
        "INSERT INTO draftsman.job_events (job, jobs, kind, actor) VALUES (128, '{1}', 'k', 'a')"
    ),
    "archived_months_are_empty": (
        "WITH m AS (INSERT INTO draftsman.event_archives (month, events, sha256, host, path)"
        " SELECT date_trunc('month', now(), 'UTC') AT TIME ZONE 'UTC', 1, '', '', ''"
        " RETURNING month)"
        " INSERT INTO draftsman.archived_jobs SELECT %(run)s, month, 1, 1 FROM m"
    ),
    "failures_are_open": "UPDATE draftsman.job_states SET status = 'failed' WHERE number = %(run)s",
    "only_failures_are_dismissed": "INSERT INTO draftsman.open_failures VALUES (%(run)s, 'failed')",
    "retries_have_one_successor": "UPDATE draftsman.job_requests SET retry_of = %(run)s",
    "has_targets_is_set": "UPDATE draftsman.job_states SET has_targets = false",
    "newest_status_is_queued": "UPDATE draftsman.deliveries SET version = 1 WHERE kind = 'status'",
    "open_question_is_queued": "DELETE FROM draftsman.deliveries WHERE kind = 'question'",
    "closed_question_is_not_posted": (
        "UPDATE draftsman.deliveries SET status = 'pending' WHERE status = 'superseded'"
    ),
    "copies_of_a_closed_question_are_settled": (
        "UPDATE draftsman.deliveries"
        " SET status = 'sent', external_ref = 'r', sent_at = draftsman.now()"
        " WHERE status = 'superseded'"
    ),
    "each_thread_has_a_due_delivery": "UPDATE draftsman.deliveries SET next_attempt_at = NULL",
    "question_is_escalated_once": (
        "INSERT INTO draftsman.job_events (job, kind, actor, payload)"
        " VALUES (%(ask)s, 'question_escalated', 'a', '{\"question\": 1}')"
    ),
    "escalating_question_has_a_target": (
        "UPDATE draftsman.job_questions SET on_expire = 'escalate' WHERE job = %(ask)s"
    ),
    "reminders_are_limited": "UPDATE draftsman.question_times SET reminders = 4, remind_at = NULL",
    "reminders_are_counted": (
        "UPDATE draftsman.deliveries SET kind = 'reminder' WHERE kind = 'question'"
    ),
    "closed_question_has_no_reminder": (
        "UPDATE draftsman.question_times SET remind_at = draftsman.now() WHERE remind_at IS NULL"
    ),
    "answers_are_attested": "UPDATE draftsman.job_answers SET session_role = 'bot:slack'",
    "approvals_have_their_votes": "UPDATE draftsman.job_questions SET quorum = 2",
    "approvals_were_decided": "DELETE FROM draftsman.job_answers WHERE kind = 'approval'",
    "decisions_were_made_by_their_actor": (
        "INSERT INTO draftsman.job_events (job, kind, actor, payload)"
        " VALUES (%(ask)s, 'vote_received', 'cli:mallory', '{}')"
    ),
    "jobs_have_their_template": (
        "UPDATE draftsman.job_requests SET template = 'none', template_version = 1"
    ),
    "occurrences_have_their_job": (
        "WITH s AS (INSERT INTO draftsman.schedules (name, rule, timezone, template, created_by)"
        " VALUES ('s', '@daily', 'UTC', 't', 'a') RETURNING id)"
        " INSERT INTO draftsman.schedule_fires (schedule, due_at, status, job)"
        " SELECT id, draftsman.now(), 'fired', %(run)s FROM s"
    ),
    "reservations_have_their_job": (
        "INSERT INTO draftsman.queue_reservations (queue, job, actor, seconds, expires_at)"
        " VALUES ('another', %(ask)s, 'cli:root', 600, draftsman.now() + interval '1 h')"
    ),
    "sent_has_a_reference": "UPDATE draftsman.deliveries SET status = 'sent'",
}


@cases("status", Status)
async def test_data_of_the_transitions_satisfies_the_invariants(
    make: Factory, rt: Runtime, status: Status
) -> None:
    await make.job_in(status)
    assert {
        name: violations
        for name, violations in (await rt.read_model.invariants()).items()
        if violations
    } == {}


async def test_every_violation_is_found_and_names_its_job(
    make: Factory, conn: Connection, people: People
) -> None:
    ran = await make.running()
    asked = await make.asked()
    answered = await make.asked()
    await make.answer(answered.number, "red")
    gate = await make.asked(GATE)
    await make.decide(gate.number, True, people.carol)
    closed = await make.asked(notify=("log",))
    await make.answer(closed.number, "red")
    await make.asked(notify=("log",))
    await make.completed()
    jobs = {"run": ran.number, "ask": asked.number, **await _groups(make)}
    assert BREAK.keys() == INVARIANTS.keys()
    async with conn.transaction(force_rollback=True):
        await _without_guards(conn)
        for name in INVARIANTS:
            async with conn.transaction(force_rollback=True):
                await run(conn, BREAK[name], jobs)
                found = await problems(conn, name)
            assert found, name
            assert all(isinstance(job, int) for job, _ in found)


async def test_each_problem_has_a_sentence_with_the_values_of_its_query(conn: Connection) -> None:
    used = set[str]()
    for name, query in INVARIANTS.items():
        columns = {column.name for column in (await conn.execute(query)).description or ()}
        choices = ";".join(CHOICES.findall(query))
        sentences = set(re.findall(r"(?:\b(?:THEN|ELSE) +|^|;)'(\w+)'", choices)) or {name}
        values = {
            value
            for sentence in sentences
            for _, value, _, _ in Formatter().parse(SENTENCES[sentence])
            if value
        }
        assert columns - {"job", "sentence"} == values, name
        used |= sentences
    assert used == SENTENCES.keys()


async def _groups(make: Factory) -> dict[str, int]:
    """Create a job that a failure in its group skipped, and one that waits in its group."""
    failing = await make.running(group={"name": "checks", "kind": "parallel"})
    skipped = await make.queued(group="checks")
    await make.rt.settlement.failure(failing, Failure("no such thing", declared="PERMANENT"))
    await make.running(group={"name": "release", "kind": "sequential"})
    return {"skipped": skipped, "next": await make.queued(group="release")}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("stopped_groups_start_no_job",
         "SET started_at = draftsman.now() WHERE number = %(skipped)s"),
        ("sequential_groups_run_one_job",
         "SET started_at = draftsman.now() - interval '1 min' WHERE number = %(next)s"),
        ("jobs_start_after_their_parents",
         "SET started_at = draftsman.now() - interval '1 min' WHERE number = %(next)s"),
    ],
)  # fmt: skip
async def test_a_job_of_a_group_that_started_and_ended_is_found(
    make: Factory, conn: Connection, name: str, change: str
) -> None:
    jobs = await _groups(make)
    await make.rt.job_control.cancel(jobs["next"] - 1, make.owner, force=True)
    async with conn.transaction(force_rollback=True):
        assert await rows(conn, INVARIANTS[name]) == []
        await _without_guards(conn)
        await run(conn, f"UPDATE draftsman.job_states {change}", jobs)
        assert len(await rows(conn, INVARIANTS[name])) == 1


async def test_a_retry_in_a_group_satisfies_the_invariants(make: Factory) -> None:
    jobs = await _groups(make)
    await make.rt.job_control.retry(jobs["skipped"], make.owner)
    await make.rt.job_control.cancel(jobs["next"] - 1, make.owner, force=True)
    await make.rt.job_control.retry(jobs["next"] - 1, make.owner)
    assert not any((await make.rt.read_model.invariants()).values())


async def _without_guards(conn: Connection) -> None:
    """Disable the guards of the data, as with psql, or by a bug."""
    await conn.execute("SET session_replication_role = replica")
    for table in ("job_requests", "job_states", "job_questions", "question_times", "deliveries"):
        checks = await conn.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = %s::regclass",
            (f"draftsman.{table}",),
        )
        for (check,) in await checks.fetchall():
            await run(conn, f'ALTER TABLE draftsman.{table} DROP CONSTRAINT "{check}"')
    await run(conn, "DROP INDEX draftsman.job_questions_open")


async def test_no_more_than_a_hundred_rows_are_fetched(conn: Connection) -> None:
    plans = {name: await explain(conn, query, {}) for name, query in INVARIANTS.items()}
    assert [name for name, plan in plans.items() if not plan.startswith("Limit ")] == []


async def test_a_hundred_rows_are_shown(rt: Runtime, conn: Connection) -> None:
    await conn.execute(
        "INSERT INTO draftsman.job_events (job, kind, actor)"
        " SELECT 1000 + n, 'k', 'a' FROM generate_series(1, 150) n"
    )
    assert len((await rt.read_model.invariants())["events_belong_to_jobs"]) == 100
