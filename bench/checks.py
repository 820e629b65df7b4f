"""Checks of the database without which the figures do not count: guards, durability and rows."""

from __future__ import annotations

from typing import LiteralString

from bench.server import BenchError, Session, session

DURABLE: tuple[LiteralString, ...] = ("fsync", "synchronous_commit", "full_page_writes")
TRIGGERS = {
    "job_requests_immutable",
    "job_states_immutable",
    "job_requests_no_delete",
    "job_states_no_delete",
    "job_requests_inserted",
    "job_states_inserted",
    "job_states_updated",
    "job_runs_inserted",
    "job_runs_immutable",
    "job_questions_immutable",
    "job_answers_immutable",
    "job_events_append_only",
}
CONSTRAINTS = {
    "job_requests_pkey",
    "job_states_pkey",
    "job_runs_pkey",
    "job_runs_finished",
    "job_questions_pkey",
    "job_questions_job_fkey",
    "job_questions_resolved",
    "job_answers_event",
}
RULES = {
    "job_states_finished",
    "job_states_retry_time",
    "job_states_run_time",
    "job_states_error",
    "job_states_claimed_from",
    "job_states_worker",
    "job_states_lease",
    "job_states_attempts",
    "job_states_retries",
}
INDEXES = {
    "job_requests_id",
    "job_requests_key",
    "job_states_claim",
    "job_states_subject",
    "job_questions_open",
    "job_answers_input",
    "job_answers_vote",
}
"""Guards and indexes without which draftsman would be faster but incorrect."""

Found: dict[str, tuple[LiteralString, set[str]]] = {
    "triggers": (
        (
            "SELECT array_agg(tgname::text) FROM pg_trigger WHERE tgenabled IN ('O', 'A')"
            " AND tgrelid IN (SELECT oid FROM pg_class"
            " WHERE relnamespace = to_regnamespace('draftsman'))"
        ),
        TRIGGERS,
    ),
    "constraints": (
        (
            "SELECT array_agg(conname::text) FROM pg_constraint WHERE convalidated"
            " AND connamespace = to_regnamespace('draftsman')"
        ),
        CONSTRAINTS,
    ),
    "rules": (
        (
            "SELECT array_agg(rule[1]) FROM regexp_matches(pg_get_function_sqlbody("
            "to_regproc('draftsman.violated_rule')), '''(job_states_[a-z_]+)''', 'g') AS rule"
        ),
        RULES,
    ),
    "indexes": (
        (
            "SELECT array_agg(c.relname::text)"
            " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE i.indisvalid AND c.relnamespace = to_regnamespace('draftsman')"
        ),
        INDEXES,
    ),
}
CREATED = ["job_created"]
DRAINED = ["job_claimed", "job_completed", "job_created", "job_started"]


async def durable(admin: Session) -> dict[str, str]:
    """Return the server's settings for durable commits; raises BenchError if one is off."""
    settings = {name: await admin.value("SELECT current_setting(%s)", name) for name in DURABLE}
    if off := [name for name, value in settings.items() if value != "on"]:
        raise BenchError(f"the server has {', '.join(off)} off; figures count with durable commits")
    return settings


async def guarded(url: str) -> None:
    """Check that the guards of the schema exist and are active; raises BenchError."""
    async with session(url) as checked:
        for kind, (query, required) in Found.items():
            if missing := required - set(await checked.value(query) or ()):
                raise BenchError(
                    f"without the {kind} {', '.join(sorted(missing))} no figure counts"
                )
        role = await checked.value("SELECT current_setting('session_replication_role')")
        if role != "origin":
            raise BenchError(
                f"session_replication_role is {role}: no trigger fires, no figure counts"
            )


async def newest(url: str) -> int:
    """Return the number of the newest job, 0 without any."""
    async with session(url) as database:
        return int(
            await database.value("SELECT coalesce(max(number), 0) FROM draftsman.job_requests")
        )


async def submitted(url: str, after: int, jobs: int) -> None:
    """Check that `jobs` jobs were created after that job, with an event each; raises BenchError."""
    await _whole(url, after, jobs, "queued", CREATED, "NULL")


async def drained(url: str, after: int, jobs: int) -> None:
    """Check that each job completed with four events and one completed run; raises BenchError."""
    await _whole(url, after, jobs, "completed", DRAINED, "ARRAY['completed']")


async def loaded(url: str, after: int, jobs: int) -> None:
    """Check the totals of a load, whose jobs are too many for single checks; raises BenchError."""
    async with session(url) as database:
        totals = await database.value(
            """
            SELECT ARRAY[(SELECT count(*) FROM draftsman.job_states
                           WHERE number > %s AND status = 'completed'),
                         (SELECT count(*) FROM draftsman.job_requests WHERE number > %s),
                         (SELECT count(*) FROM draftsman.job_runs
                           WHERE job > %s AND status = 'completed'),
                         (SELECT count(*) FROM draftsman.events WHERE job > %s)]
            """,
            *[after] * 4,
        )
    if totals != (expected := [jobs, jobs, jobs, len(DRAINED) * jobs]):
        raise BenchError(f"completed jobs, requests, runs, events: {totals}, not {expected}")


async def answered(url: str, after: int, jobs: int) -> None:
    """Check that `jobs` questions have an accepted answer each; raises BenchError."""
    async with session(url) as database:
        whole = await database.value(
            """
            SELECT count(*) FROM draftsman.job_questions q
             WHERE q.job > %s AND q.status = 'answered'
               AND 1 = (SELECT count(*) FROM draftsman.job_answers a
                         WHERE (a.job, a.question) = (q.job, q.ordinal) AND a.accepted)
               AND 2 = (SELECT count(*) FROM draftsman.job_runs r WHERE r.job = q.job)
            """,
            after,
        )
    if whole != jobs:
        raise BenchError(f"of {jobs} answers {whole} were accepted and led to a second run")


async def _whole(
    url: str, after: int, jobs: int, status: str, kinds: list[str], runs: LiteralString
) -> None:
    async with session(url) as database:
        whole = await database.value(
            f"""
            SELECT count(*) FROM draftsman.jobs j
             WHERE j.number > %s AND j.status::text = %s
               AND (SELECT array_agg(e.kind ORDER BY e.kind) FROM draftsman.events e
                     WHERE e.job = j.number) = %s
               AND (SELECT array_agg(r.status::text) FROM draftsman.job_runs r
                     WHERE r.job = j.number) IS NOT DISTINCT FROM {runs}
            """,
            after,
            status,
            kinds,
        )
        total = await database.value("SELECT count(*) FROM draftsman.jobs WHERE number > %s", after)
    if not whole == total == jobs:
        raise BenchError(
            f"of {total} jobs {whole} are {status} with {len(kinds)} events, not {jobs}"
        )
