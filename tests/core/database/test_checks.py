"""CHECK constraints: each refuses a statement."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from psycopg.types.json import Jsonb

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman_testing.factories import GATE, Factory
from tests.support.cases import cases
from tests.support.raw_jobs import insert_job
from tests.support.statements import CHECK, FOREIGN_KEY, refused, rows, run

S = Status
THEMES = (
    *(
        "activity",
        "attention",
        "budget",
        "dependency",
        "forge",
        "group",
        "job_type",
        "limit",
        "message",
    ),
    *("pending_decision", "people", "queue", "repo", "rule", "schedule"),
)
MODULES = [import_module(f"tests.core.database.test_{theme}_checks") for theme in THEMES]
MODULES += [
    import_module(f"tests.bots.{name}.test_checks") for name in ("pagers", "trello.records")
]
JOBS = [
    (S.QUEUED, "finished_at = now()", "job_states_finished"),
    (S.QUEUED, "next_retry_at = now()", "job_states_retry_time"),
    (S.RETRYING, "next_retry_at = NULL", "job_states_retry_time"),
    (S.SCHEDULED, "run_at = NULL", "job_states_run_time"),
    (S.QUEUED, "claimed_from = 'queued'", "job_states_claimed_from"),
    (S.CLAIMED, "claimed_from = NULL", "job_states_claimed_from"),
    (S.CLAIMED, "claimed_from = 'running'", "job_states_claimed_from_check"),
    (S.QUEUED, "worker_id = gen_random_uuid()", "job_states_worker"),
    (S.RUNNING, "worker_id = NULL", "job_states_worker"),
    (S.QUEUED, "cancel_requested_at = now()", "job_states_cancel"),
    (S.QUEUED, "cancel_requested_by = 'ben'", "job_states_cancel"),
    (S.QUEUED, "attempts = -1", "job_states_attempts"),
    (S.QUEUED, "attempts = max_attempts + 1", "job_states_attempts"),
    (S.QUEUED, "retry_count = -1", "job_states_retries"),
    (S.QUEUED, "retry_count = max_retries + 1", "job_states_retries"),
    (S.QUEUED, "run_count = -1", "job_states_run_count_check"),
    (S.QUEUED, "queue = ''", "job_states_queue_check"),
    (S.RUNNING, "result_token = lease_token", "job_states_result_token"),
    (S.RETRYING, "hold = 'paused'", "job_states_hold"),
    (S.QUEUED, "hold = 'key'", "job_states_hold"),
    (S.SCHEDULED, "hold = 'paused'", "job_states_hold"),
]
RUNNING_TO = "version = version + 1, worker_id = NULL, lease_token = NULL"
ENDS = [
    (f"{RUNNING_TO}, status = 'completed'", "job_states_finished"),
    (f"{RUNNING_TO}, status = 'failed', finished_at = now()", "job_states_error"),
    (f"{RUNNING_TO}, status = 'dead_letter', finished_at = now()", "job_states_error"),
    ("version = version + 1, worker_id = NULL, status = 'resumed'", "job_states_lease"),
    ("version = version + 1, lease_token = NULL, status = 'resumed'", "job_states_worker"),
]
INSERTS = [
    ("max_attempts", "101", "job_states_attempts"),
    ("max_attempts", "-1", "job_states_attempts"),
    ("max_attempts", "0", "job_states_attempts"),
    ("max_retries", "101", "job_states_retries"),
    ("chain_length", "-1", "job_requests_chain_length_check"),
    ("chain_length", "1001", "job_requests_chain_length_check"),
    ("agent", "'x'", "job_requests_mode"),
    ("template", "'x'", "job_requests_template"),
    ("template_version", "1", "job_requests_template"),
    ("type", "''", "job_requests_type_check"),
    ("idempotency_key", "''", "job_requests_idempotency_key_check"),
]
RUNS = [
    ("finished_at = now()", "job_runs_finished"),
    ("status = 'completed'", "job_runs_finished"),
    ("ordinal = 0", "job_runs_ordinal_check"),
    ("error_class = 'DENIED'", "job_runs_never_denied"),
]
QUESTIONS = [
    ("choices = '[]'", "job_questions_answerable"),
    ("choices = '{}'", "job_questions_choices_check"),
    ("on_expire = 'default'", "job_questions_default"),
    ("default_value = 'red'", "job_questions_default"),
    ("status = 'expired'", "job_questions_resolved"),
    ("resolution = '{}'", "job_questions_resolved"),
    ("status = 'answered', resolution = '{}'", "job_questions_answered"),
    ("quorum = 0", "job_questions_quorum_check"),
    ("text = ''", "job_questions_text_check"),
    ("key = ''", "job_questions_key_check"),
    ("alternative_of = ordinal + 1", "job_questions_check"),
    ("on_changes = 'tell'", "job_questions_changes"),
    ("ordinal = 0", "job_questions_ordinal_check"),
]
TIMES = [
    ("patch_sha256 = 'abc'", "question_times_patch"),
    ("reminders = 4, remind_at = NULL", "question_times_reminders"),
    ("reminders = 3, remind_at = now()", "question_times_reminders"),
    ("reminders = -1", "question_times_reminders"),
    ("escalated_at = now()", "question_times_escalated"),
    ("escalate_to = ''", "question_times_escalate_to_check"),
]
COMMENTS: list[Any] = [
    {},
    [],
    ["a"],
    [[{"path": "a", "text": "b"}]],
    [{"path": "a"}],
    [{"path": "", "text": "b"}],
    [{"path": "a", "text": ""}],
    [{"path": "a", "text": 1}],
    [{"path": "a", "text": "b", "line": 0}],
    [{"path": "a", "text": "b", "line": 1.5}],
    [{"path": "a", "text": "b", "line": "1"}],
    [{"path": "a", "text": "b", "other": 1}],
    [{"path": "a", "text": "b"}] * 51,
]
REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({}, "job_answers_changes"),
    ({"reason": ""}, "job_answers_changes"),
    ({"decision": "deny", "comments": [{"path": "a", "text": "b"}]}, "job_answers_comments"),
    *(({"comments": comments}, "job_answers_comments") for comments in COMMENTS),
]
"""Payloads of requests for changes that say nothing, or have no valid comments."""
GATES = ["choices = '[{}]'", "freeform_allowed = true", "on_expire = 'continue'"]
ROWS = [
    (
        """job_answers (job, question, kind, source, source_event_id, responder_id, voter, payload,
           accepted) VALUES (%s, 1, 'input', 'cli', 'e', 'b', 'b', '{}', false)""",
        "job_answers_refused",
    ),
    (
        (
            "job_steps (job, key, owner, status, invocation_id, run)"
            " VALUES (%s, 'k', 'handler', 'done', '', 1)"
        ),
        "job_steps_finished",
    ),
    (
        "job_steps (job, key, owner, invocation_id, run) VALUES (%s, '', 'handler', '', 1)",
        "job_steps_key_check",
    ),
    (
        "job_checkpoints (job, run, data) VALUES (%s, 1, to_jsonb(repeat('x', 8388609)))",
        "job_checkpoints_data_check",
    ),
    (
        """job_events (job, kind, actor, payload)
           VALUES (%s, 'k', 'a', to_jsonb(repeat('x', 65537)))""",
        "job_events_payload_check",
    ),
    (
        "event_archives (events, month, sha256, host, path) VALUES (%s, '2026-01-02', '', '', '')",
        "event_archives_month_check",
    ),
    (
        "event_archives (events, month, sha256, host, path) VALUES (-%s, '2026-01-01', '', '', '')",
        "event_archives_events_check",
    ),
    (
        "archived_jobs (job, month, events, transitions) VALUES (%s, '2026-01-01', 0, 0)",
        "archived_jobs_events_check",
    ),
    (
        "archived_jobs (job, month, events, transitions) VALUES (%s, '2026-01-01', 1, 2)",
        "archived_jobs_check",
    ),
    (
        "run_log_chunks (job, run, seq, text) VALUES (%s, 1, 1, repeat('x', 262145))",
        "run_log_chunks_text_check",
    ),
    *(
        (
            (
                "artifacts (job, run, sha256, name, kind, size, added, removed)"
                f" VALUES (%s, 1, '', {values})"
            ),
            f"artifacts_{column}_check",
        )
        for column, values in (
            ("size", "'n', 'file', 26214401, 0, 0"),
            ("kind", "'n', 'other', 1, 0, 0"),
            ("name", "'', 'file', 1, 0, 0"),
            ("added", "'n', 'file', 1, -1, 0"),
            ("removed", "'n', 'file', 1, 0, -1"),
        )
    ),
    *(
        (
            f"artifacts (job, run, name, kind, size, sha256) VALUES (%s, 1, {name}, {kind}, 1, '')",
            "artifacts_reserved",
        )
        for name, kind in (
            ("'changes.patch'", "'file'"),
            ("'my.patch'", "'patch'"),
            ("'checkpoint.bundle'", "'report'"),
            ("'my.bundle'", "'bundle'"),
        )
    ),
    *(
        (
            f"job_steps (job, key, owner, invocation_id, run) VALUES (%s, '{key}', {owner}, '', 1)",
            "job_steps_owner",
        )
        for key, owner in (
            ("agent:publish", "'handler'"),
            ("sleep:nap", "'handler'"),
            ("now:1", "'handler'"),
            ("mine", "'worker'"),
            ("mine", "'nobody'"),
        )
    ),
    ("unique_keys (job, key) VALUES (%s, '')", "unique_keys_key_check"),
    ("unique_keys (job, key, replaces) VALUES (%s, 'k', 2147483647)", "unique_keys_check"),
    ("job_quotas (job, quota, count, bytes) VALUES (%s, 'x', 1, 1)", "job_quotas_quota_check"),
    ("job_quotas (job, quota, count, bytes) VALUES (%s, 'log', -1, 1)", "job_quotas_count_check"),
    ("job_quotas (job, quota, count, bytes) VALUES (%s, 'log', 1, -1)", "job_quotas_bytes_check"),
]
TARGETS = [
    ({"ordinal": "0"}, "job_targets_ordinal_check"),
    ({"target": "''"}, "job_targets_target_check"),
    ({"thread": "''"}, "job_targets_thread_check"),
    ({"thread_key": "''"}, "job_targets_thread_key_check"),
]
LINKS = [
    ({"external_id": "''"}, "identity_links_external_id_check"),
    ({"person": "''", "linked_by": "'x'", "linked_at": "now()"}, "identity_links_person_check"),
    ({"code_hash": "'x'"}, "identity_links_expires"),
    ({"code_expires_at": "now()"}, "identity_links_expires"),
    ({"person": "'anna'"}, "identity_links_linked"),
    ({"linked_at": "now()"}, "identity_links_linked"),
    ({"linked_by": "'cli:anna'"}, "identity_links_linked"),
]
DELIVERIES = [
    ({"payload": "to_jsonb(repeat('x', 1048577))"}, "deliveries_payload_check"),
    ({"attempts": "-1"}, "deliveries_attempts_check"),
    ({"status": "'sending'", "next_attempt_at": "now()"}, "deliveries_lease"),
    ({"status": "'sending'", "lease_token": "1"}, "deliveries_lease"),
    ({"lease_token": "1"}, "deliveries_lease"),
    ({"status": "'superseded'", "next_attempt_at": "now()"}, "deliveries_next_attempt"),
    ({"status": "'sent'", "external_ref": "'r'"}, "deliveries_sent"),
    ({"status": "'sent'", "sent_at": "now()"}, "deliveries_sent"),
    ({"sent_at": "now()"}, "deliveries_sent"),
    ({"status": "'unconfirmed'"}, "deliveries_in_doubt"),
    ({"status": "'dead_letter'"}, "deliveries_dead_letter"),
    ({"kind": "'question'"}, "deliveries_question"),
    ({"kind": "'question_closed'", "question": "1"}, "deliveries_question_closed"),
    ({"kind": "'status'"}, "deliveries_version"),
    ({"version": "1"}, "deliveries_version"),
]


@cases(("status", "change", "constraint"), JOBS)
async def test_a_job_has_the_columns_of_its_status(
    make: Factory, conn: Connection, status: Status, change: str, constraint: str
) -> None:
    number = await make.job_in(status)
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"UPDATE draftsman.job_states SET {change} WHERE number = {number}")


@cases(("change", "constraint"), ENDS)
async def test_a_finished_job_has_the_columns_of_its_outcome(
    make: Factory, conn: Connection, change: str, constraint: str
) -> None:
    work = await make.running()
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"UPDATE draftsman.job_states SET {change} WHERE number = {work.number}")


@cases(("column", "wrong", "constraint"), INSERTS)
async def test_a_job_is_inserted_within_the_limits(
    make: Factory, conn: Connection, column: str, wrong: str, constraint: str
) -> None:
    columns = {
        "id": "gen_random_uuid()",
        "type": "'noop'",
        "idempotency_key": "'key'",
        "request_digest": "''",
        "source": "'cli'",
        "invoker_id": "'ben'",
    } | {column: wrong}
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, insert_job(columns))


async def _insert_refused(
    conn: Connection, table: str, columns: dict[str, str], constraint: str
) -> None:
    names = ", ".join(columns)
    values = ", ".join(columns.values())
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"INSERT INTO draftsman.{table} ({names}) VALUES ({values})")


@cases(("wrong", "constraint"), TARGETS)
async def test_a_target_has_valid_columns(
    make: Factory, conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    columns = {
        "job": str(await make.queued()),
        "ordinal": "1",
        "channel": "'slack'",
        "target": "'C1'",
        "thread_key": "'k'",
    }
    await _insert_refused(conn, "job_targets", columns | wrong, constraint)


@cases(("wrong", "constraint"), LINKS)
async def test_an_identity_link_is_complete(
    conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    columns = {"channel": "'slack'", "external_id": "'U1'"}
    await _insert_refused(conn, "identity_links", columns | wrong, constraint)


@cases(("wrong", "constraint"), DELIVERIES)
async def test_a_delivery_has_the_columns_of_its_status_and_kind(
    make: Factory, conn: Connection, wrong: dict[str, str], constraint: str
) -> None:
    columns = {
        "job": str((await make.asked()).number),
        "channel": "'slack'",
        "target": "'C1'",
        "thread_key": "'k'",
        "kind": "'notice'",
    }
    await _insert_refused(conn, "deliveries", columns | wrong, constraint)


async def test_a_bucket_has_a_name(conn: Connection) -> None:
    await _insert_refused(conn, "channel_limits", {"bucket": "''"}, "channel_limits_bucket_check")


@cases(("change", "constraint"), RUNS)
async def test_a_run_has_the_columns_of_its_status(
    make: Factory, conn: Connection, change: str, constraint: str
) -> None:
    await make.running()
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"UPDATE draftsman.job_runs SET {change}")


@cases(("change", "constraint"), QUESTIONS)
async def test_a_question_has_the_columns_of_its_status(
    make: Factory, conn: Connection, change: str, constraint: str
) -> None:
    await make.asked()
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"UPDATE draftsman.job_questions SET {change}")


@cases(("change", "constraint"), TIMES)
async def test_a_question_has_at_most_three_reminders_and_an_escalation_target(
    make: Factory, conn: Connection, change: str, constraint: str
) -> None:
    await make.asked()
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"UPDATE draftsman.question_times SET {change}")


@cases("change", GATES)
async def test_an_approval_takes_a_decision_and_can_only_expire_or_escalate(
    make: Factory, conn: Connection, change: str
) -> None:
    await make.asked(GATE)
    async with refused(CHECK, '"job_questions_approval"'):
        await run(conn, f"UPDATE draftsman.job_questions SET {change}")


@cases(("payload", "constraint"), REQUESTS)
async def test_a_request_for_changes_says_what_to_change(
    make: Factory, conn: Connection, payload: dict[str, Any], constraint: str
) -> None:
    work = await make.asked(GATE)
    insert = """INSERT INTO draftsman.job_answers
        (job, question, kind, source, source_event_id, responder_id, voter, payload, accepted)
        VALUES (%s, 1, 'approval', 'cli', 'e', 'b', 'b', %s, true)"""
    async with refused(CHECK, f'"{constraint}"'):
        await conn.execute(insert, (work.number, Jsonb({"decision": "request_changes"} | payload)))


@cases(("insert", "constraint"), ROWS)
async def test_data_of_a_run_is_bounded_and_complete(
    make: Factory, conn: Connection, insert: str, constraint: str
) -> None:
    work = await make.asked()
    async with refused(CHECK, f'"{constraint}"'):
        await run(conn, f"INSERT INTO draftsman.{insert}", (work.number,))


@cases(
    ("table", "columns", "values"),
    [
        (
            "job_questions",
            "job, ordinal, run, key, kind, text, digest",
            "77, 1, 1, 'k', 'approval', 't', ''",
        ),
        ("approval_tokens", "token_hash, job, question, approver", "'h', 77, 1, 'carol'"),
        ("job_checkpoints", "job, run, data", "77, 1, '{}'"),
        (
            "job_steps",
            "job, key, owner, invocation_id, run",
            "77, 'k', 'handler', gen_random_uuid(), 1",
        ),
    ],
)
async def test_no_row_refers_to_a_job_that_does_not_exist(
    conn: Connection, table: str, columns: str, values: str
) -> None:
    async with refused(FOREIGN_KEY):
        await run(conn, f"INSERT INTO draftsman.{table} ({columns}) VALUES ({values})")


async def test_workers_have_slots_and_leases_have_a_term(conn: Connection) -> None:
    async with refused(CHECK, '"workers_slots_check"'):
        await run(
            conn,
            "INSERT INTO draftsman.workers (id, host, host_id, pid, pid_started, version, types,"
            " queues, slots) VALUES (gen_random_uuid(), '', '', 1, 0, '', '{}', '{}', 0)",
        )
    async with refused(CHECK, '"leases_term_check"'):
        await run(
            conn,
            "INSERT INTO draftsman.leases (name, owner, term, expires_at)"
            " VALUES ('leader', gen_random_uuid(), 0, now())",
        )


async def test_suspects_have_a_duration_and_losses(make: Factory, conn: Connection) -> None:
    number = await make.queued()
    for name, seconds, losses in (("seconds", 0, 1), ("losses", 1, 0)):
        async with refused(CHECK, f'"suspects_{name}_check"'):
            await run(
                conn,
                "INSERT INTO draftsman.suspects"
                " (job, crash, worker_id, run, seconds, losses, status) VALUES"
                " (%s, gen_random_uuid(), gen_random_uuid(), 1, %s, %s, 'waiting')",
                (number, seconds, losses),
            )


async def test_every_check_of_the_schema_is_tested(conn: Connection) -> None:
    known = await rows(
        conn,
        "SELECT DISTINCT conname FROM pg_constraint"
        " WHERE contype = 'c' AND connamespace = 'draftsman'::regnamespace",
    )
    known += await rows(
        conn,
        "SELECT rule[1] FROM unnest(ARRAY['draftsman.violated_rule',"
        " 'draftsman.violated_request_rule']::regproc[]) AS function, regexp_matches("
        "pg_get_function_sqlbody(function), '''(job_[a-z]+s_[a-z_]+)''', 'g') AS rule",
    )
    tables = (JOBS, ENDS, INSERTS, RUNS, QUESTIONS, TIMES, ROWS, TARGETS, LINKS, DELIVERIES)
    others = [table for module in MODULES for table in module.TABLES]
    tried = {entry[-1] for table in (*tables, *others) for entry in table}
    tried |= {"job_questions_approval", "workers_slots_check", "leases_term_check"}
    tried |= {name for _, name in REQUESTS}
    tried |= {"suspects_seconds_check", "suspects_losses_check"}
    tried |= {"event_epoch_single_check", "channel_limits_bucket_check"}
    names = {name for (name,) in known if not name.endswith("_sizes")}  # see test_size_checks.py
    assert names == tried
