"""Statements that each role may run: PostgreSQL checks the rights at planning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import psycopg
import pytest

from draftsman.database import named_queries as queries
from draftsman.database.database import Connection
from tests.support.queries import FAMILIES, plan

SCHEMA: Final = {
    *("schema.record", "schema.record_functions", "schema.forget_functions"),
    *("schema.grant_roles", "schema.new_epoch", "people.save"),
}
PEOPLE: Final = {"people.create_link_code", "people.link", "people.unlink"}
BOARDS: Final = {
    f"trello_boards.{name}"
    for name in (
        "save", "remove", "webhook", "begin_episodes", "end_episodes", "end_removed_episode",
        "baseline", "advance",
        "settle", "end_swapped_episode",
    )
}  # fmt: skip
CARDS: Final = {
    f"trello_cards.{name}"
    for name in (
        "save_checklist",
        "close_checklist",
        "add_due_date",
        "change_due_date",
        "remove_due_date",
    )
}
REPOS: Final = {
    f"repos.{name}"
    for name in (
        "add",
        "remove",
        "clear_default",
        "set_default",
        "map_id",
        "map_name",
        "unmap",
        "save_profile",
        "save_check",
    )
} | {"templates.add"}  # fmt: skip
QUEUES: Final = {
    "limits.check",
    "limits.give",
    "postponed_work.do_cancels",
    "postponed_work.do_postponed",
    "queues.assign",
    "queues.hold",
    "queues.move",
    "queues.prioritize",
    "queues.pause",
    "queues.release",
    "queues.resume",
    "reservations.expire",
    "reservations.release",
    "reservations.reserve",
}
SCHEDULES: Final = {f"schedules.{name}" for name in ("add", "change", "pause", "resume", "remove")}
PLANNED: Final = {
    f"schedules.{name}" for name in ("advance", "due", "lock", "ready", "record", "set_next")
}
FIRING: Final = {"schedules.forget", "schedules.resolve"}
DECISIONS: Final = {f"pending_decisions.{name}" for name in ("hold", "undo")}
VIEWS: Final = {
    *("figures.record_views", "acknowledgments.acknowledge", "acknowledgments.snooze"),
    "ladders.delegate",
}
REFUSALS: Final = {"job_control.refuse", "threads.record_answer_change", "people.bind_account"}
EVENTS: Final = {"checkpoints.event", "follow_ups.event", "dead_workers.not_followed"}
APPLYING: Final = {f"pending_decisions.{name}" for name in ("take", "finish")}
RULES: Final = {"rules.ratify", "rules.revoke"}
DIGESTS: Final = {"digests.choose"}
LOCKING: Final = {
    "claim.keep_from_claims",
    "ladders.due",
    "pending_decisions.due",
    "reminders.due",
    "postponed_work.do_postponed_candidates",
    "expiry.escalate_candidates",
    "expiry.expire_candidates",
    "dead_workers.rescue_candidates",
    "dead_letters.notify_candidates",
    "promotion.promote_candidates",
}
WORK: Final = {
    "digests.candidates",
    "digests.take_due",
    "rules.decide",
    "archives.lock_month",
    "budgets.add",
    "budgets.configure",
    "budgets.record",
    "budgets.release",
    "budgets.release_lost",
    "budgets.reserve",
    "archives.drop",
    "archives.make_partition",
    "archives.forget",
    "activity.append",
    "activity.evict",
    "activity.transcript",
    "archives.prune_activity",
    "archives.prune_logs",
    "claim.end_grace",
    "claim.exchange",
    "limits.configure",
    "claim.start",
    "claim.release_claims",
    "claim.release_lost_claims",
    "checkpoints.checkpoint",
    "checkpoints.begin_step",
    "checkpoints.finish_step",
    "checkpoints.artifact",
    "checkpoints.clear_chunks",
    "checkpoints.chunk",
    "checkpoints.log",
    "checkpoints.log_parked",
    "checkpoints.consume_quota",
    "dependencies.await_jobs",
    "dependencies.record_spawn",
    "ladders.take",
    "job_messages.deliver",
    "job_messages.hand",
    "questions.ask",
    "reminders.remind",
    "repos.assign",
    "run_state.settle",
    "run_state.heartbeat",
    "run_state.assign_agent",
    "run_state.describe",
    "run_state.pull_request",
    "expiry.escalate",
    "expiry.expire",
    "dead_letters.notify",
    "promotion.promote",
    "dead_workers.rescue",
    "dead_workers.watch_locks",
    "dead_workers.deregister",
    "dead_workers.deregister_candidates",
    "archives.partitions",
    "queues.set_by_type",
    "queues.set_unhandled_types",
    "dead_workers.suspects",
    "workers.register",
    "workers.remove",
}
LEASES: Final = {"workers.acquire", "workers.renew", "workers.resign"}
SENDING: Final = {
    f"deliveries.{name}"
    for name in (
        "enqueue", "notify", "finish", "attach", "warn", "copy_to", "make_buckets",
        "consume_tokens", "pause", "resume",
    )
} | {"delivery_claims.claim", "delivery_claims.rescue", "delivery_claims.begin_call"} | {
    "activity.show", "deliveries.post",
}  # fmt: skip
TALKING: Final = {
    "rules.propose",
    "rules.propose_in_term",
    "deliveries.add_targets",
    "deliveries.inherit_targets",
    "jobs.lock",
    "jobs.lock_jobs",
    "deliveries.redeliver",
    "dependencies.cancel_tree",
    "dependencies.link",
    "jobs.lock_run",
    "groups.add",
    "groups.cancel",
    "groups.inherit",
    "groups.open_group",
    "submissions.join",
    "submissions.keep_unique_key",
    "submissions.submit_keyed",
    "submissions.submit_new",
    "submissions.submit_one",
    "submissions.submit_plain",
    "submissions.submit_with_targets",
    "locked_jobs.cancel_now",
    "job_control.copy_checkpoint",
    "locked_jobs.lock",
    "job_control.pause",
    "job_control.unpause",
    "attachments.inherit",
    "job_messages.inherit",
    "job_messages.send",
    "locked_jobs.request_cancel",
    "approval_tokens.refuse",
    "questions.count_refused",
    "questions.extend",
    "questions.lock",
    "questions.lock_job",
    "questions.record",
    "questions.resolve",
    "approval_tokens.mint",
    "approval_tokens.use",
}
TABLES: Final = REPOS | SCHEDULES
RECEIVING: Final = {
    *("forge_events.receive", "people_events.finish", "follow_ups.answered"),
    "acknowledgments.record_page",
    "follow_ups.branch_deleted",
}
FOLLOWING: Final = {
    f"follow_ups.{name}"
    for name in ("ignore", "ignore_others", "send", "reopen", "reopen_pull", "add", "end")
}
SIGNED_IN: Final = {f"web_sessions.{name}" for name in ("create_link", "end", "sessions")}
SHOWING: Final = {
    f"live_threads.{name}" for name in ("add", "claim", "begin_stream", "record", "remove")
}
BROWSERS: Final = SIGNED_IN - {"web_sessions.create_link"}
SERVING: Final = {
    f"web_sessions.{name}" for name in ("close", "find", "open_session", "person_of_link")
}
FILES: Final = {"attachments.claim", "attachments.end"}
REFUSED: Final = {
    "worker": FILES | {"attachments.add"} | REFUSALS
    | SCHEMA | PEOPLE | BOARDS | TABLES | DECISIONS | VIEWS | RULES | DIGESTS
    | SIGNED_IN | SERVING | SHOWING | CARDS
    | RECEIVING | {"follow_ups.request"} | {"archives.forget", "approval_tokens.mint"}
    | {"approval_tokens.refuse"},
    "bot": SCHEMA | BROWSERS | WORK | REPOS | FIRING | FOLLOWING
    | {"schedules.change", "schedules.advance", "schedules.record"}
    | {"people.link", "people.unlink", "approval_tokens.mint", "approval_tokens.refuse"}
    | {"rules.propose", "rules.propose_in_term", "checkpoints.event"},
    "anna": FILES | REFUSALS | EVENTS | SCHEMA | SERVING | SHOWING | WORK | FIRING | RECEIVING
    | FOLLOWING | LEASES | SENDING | CARDS | {"people.create_link_code", "follow_ups.lock"},
    "reader": FILES | REFUSALS | EVENTS | {"attachments.add"}
    | SCHEMA | PEOPLE | BOARDS | TABLES | PLANNED | FIRING | WORK | LEASES | SENDING
    | TALKING | QUEUES | DECISIONS | APPLYING | RECEIVING | FOLLOWING | VIEWS | RULES | DIGESTS
    | SIGNED_IN | SERVING | SHOWING | CARDS
    | LOCKING | {"follow_ups.request", "follow_ups.lock"},
}  # fmt: skip


@pytest.mark.parametrize("user", REFUSED)
async def test_a_role_can_run_only_its_own_statements(
    session: Callable[[str], Awaitable[Connection]], user: str
) -> None:
    conn = await session(user)
    refused = set()
    for family in FAMILIES:
        for name in queries.load(family):
            try:
                await plan(conn, family, name)
            except psycopg.errors.InsufficientPrivilege:
                refused.add(f"{family}.{name}")
    assert refused == REFUSED[user]
