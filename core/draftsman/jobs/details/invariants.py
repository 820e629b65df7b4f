"""Data invariants, and the sentences of `doctor --invariants` about jobs that violate them."""

from __future__ import annotations

from typing import Any, Final

from draftsman.database.database import Connection, fetch_all
from draftsman.database.named_queries import load

_INVARIANTS = load(__name__)
SENTENCES: Final = {
    "no_state": "no state",
    "no_request": "no request",
    "type_of_state": "type {type}, but {type_of_state} in its state",
    "state_breaks_rule": "status {status}, against {rule}",
    "request_breaks_rule": "request against {rule}",
    "running_has_one_open_run": "{status} with {runs} open runs",
    "open_run_belongs_to_running_job": "run {run} is open, the job is {status}",
    "job_did_not_complete": "run {run} completed, but the job is {status}",
    "newest_run_did_not_complete": "completed, but its newest run did not complete",
    "earlier_run_completed": "run {run} of {newest} completed",
    "result_of_another_run": "its result is not that of run {run}, which completed",
    "waiting_has_open_questions": "{status} without an open question",
    "open_question_belongs_to_waiting_job": "question {question} is open, the job is {status}",
    "open_questions_are_of_the_last_run": (
        "question {question} of run {run} is open, the last run is {newest}"
    ),
    "alternatives_close_together": (
        "{open} open and {closed} closed alternatives of question {question}"
    ),
    "answered_has_an_accepted_answer": (
        "question {question} was answered without an accepted answer"
    ),
    "accepted_answer_resolved_its_question": (
        "an accepted answer to question {question} had no effect"
    ),
    "concurrency_key_is_held_once": (
        "concurrency key {key} is held by {holding} jobs, and {waiting} wait for it"
    ),
    "bucket_counts_its_jobs": "bucket {bucket} counts {counted} places, taken: {taken}",
    "parent_excludes": "waits for parents, but one of them excludes it",
    "parents_ended": "waits for parents, but all of them have ended",
    "jobs_start_after_their_parents": "{status}, but D-{parent} is {status_of_parent}",
    "dependencies_agree_with_their_parents": (
        "the dependency on D-{parent} is {met}, but D-{parent} is {status}"
    ),
    "stopped_groups_start_no_job": "{status}, but its group {group} stopped at D-{failed}",
    "sequential_groups_run_one_job": (
        "{status}, but D-{previous} before it in its group is {status_of_previous}"
    ),
    "run_count_is_the_newest_run": "run_count {run_count}, newest run {newest}",
    "version_counts_the_events": "version {version}, {events} status events",
    "last_event_is_the_status": "the job is {status}, its last event is {event}",
    "status_events_are_contiguous": "event {event} starts at {status} after {before}",
    "events_belong_to_jobs": "event {event} has no job",
    "event_rows_are_of_a_block": "event {event} is in a row of jobs with other numbers",
    "archived_months_are_empty": "{month} was archived, but has events of this job",
    "closed_failure": "{status}, neither retried nor dismissed, but not an open failure",
    "open_failure": "{status} and retried, dismissed or denied, but an open failure",
    "only_failures_are_dismissed": "an open failure or dismissed, but {status}",
    "retries_have_one_successor": "{retries} retries",
    "has_targets_is_set": "target {target} exists, but has_targets is false",
    "newest_status_is_queued": "{thread_key} received version {received} of {version}",
    "open_question_is_queued": "question {question} was not sent to {thread_key}",
    "closed_question_is_not_posted": (
        "delivery {delivery} is due for question {question}, which is {status}"
    ),
    "copies_of_a_closed_question_are_settled": (
        "delivery {delivery} shows question {question}, which is {status}"
    ),
    "each_thread_has_a_due_delivery": (
        "delivery {delivery} waits, but nothing of {thread_key} is due"
    ),
    "sent_has_a_reference": "delivery {delivery} was sent without a reference",
    "question_is_escalated_once": "{escalations} escalations of question {question}",
    "escalating_question_has_a_target": "question {question} has no escalation target",
    "reminders_are_limited": "question {question} has {reminders} reminders",
    "reminders_are_counted": (
        "{thread_key} has {sent} reminders of question {question}, of {reminders}"
    ),
    "closed_question_has_no_reminder": "question {question} is {status}, but a reminder is due",
    "answer_of_role": "answer {answer} of {source}:{account} was recorded by {role}",
    "answer_of_unknown_role": (
        "answer {answer} of {source}:{account} was recorded by an unknown role"
    ),
    "decision_of_person": (
        "question {question} was {outcome} by {by}, which its answers do not support"
    ),
    "decision_of_unknown_person": (
        "question {question} was {outcome} by an unknown person, which its answers do not support"
    ),
    "approvals_were_decided": "{passed} passed approvals, {decided} decided",
    "jobs_have_their_template": "there is no template {template}@{version}",
    "occurrences_have_their_job": "is not the job of the occurrence {schedule} at {due_at}",
    "reserving_job": (
        "has the reservation of the queue {queue}, but is {status} in the queue {queue_of_job}"
    ),
    "held_reserving_job": (
        "has the reservation of the queue {queue}, but is {status} and held"
        " in the queue {queue_of_job}"
    ),
    "decisions_were_made_by_their_actor": (
        "event {event} says {kind} of {actor}, without an answer"
    ),
}
"""By the name of the invariant, or of the sentence that its query chooses."""


async def violations(conn: Connection) -> dict[str, list[tuple[int, str]]]:
    """Return, for each invariant, at most a hundred (job, problem) pairs that violate it."""
    async with conn.transaction():
        return {name: await problems(conn, name) for name in _INVARIANTS}


async def problems(conn: Connection, name: str) -> list[tuple[int, str]]:
    """Return the jobs that violate an invariant, each with the problem."""
    rows: list[dict[str, Any]] = await fetch_all(conn, _INVARIANTS[name], None, dict)
    return [(row["job"], SENTENCES[row.get("sentence", name)].format_map(row)) for row in rows]
