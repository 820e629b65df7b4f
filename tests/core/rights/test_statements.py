"""Statements that each role may run: PostgreSQL checks the rights at planning."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import psycopg
import pytest

from draftsman.database.database import Connection
from tests.support.queries import TEXTS, plan

SCHEMA: Final = {
    *("schema.record", "schema.record_functions", "schema.forget_functions"),
    "schema.record_versions",
    *("schema.grant_roles", "schema.new_epoch", "people.save"),
}
PEOPLE: Final = {"people.create_link_code", "people.link", "people.unlink"}
BOARDS: Final = {
    f"trello.{name}"
    for name in (
        "save", "remove", "webhook", "begin_episodes", "end_episodes", "end_removed_episode",
        "name_member", "baseline", "advance",
        "settle", "end_swapped_episode",
    )
}  # fmt: skip
CARDS: Final = {
    f"trello.{name}"
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
} | {"schedules.add_template"}  # fmt: skip
QUEUES: Final = {
    "queues.check_limits",
    "queues.give_places",
    "queues.do_cancels",
    "queues.do_postponed",
    "queues.assign",
    "queues.hold_jobs",
    "queues.move",
    "queues.prioritize",
    "queues.pause",
    "queues.release_jobs",
    "queues.resume",
    "queues.expire_reservations",
    "queues.release_reservation",
    "queues.reserve",
}
SCHEDULES: Final = {f"schedules.{name}" for name in ("add", "change", "pause", "resume", "remove")}
PLANNED: Final = {
    f"schedules.{name}" for name in ("advance", "due", "lock", "ready", "record", "set_next")
}
FIRING: Final = {"schedules.forget", "schedules.resolve"}
DECISIONS: Final = {f"pending_decisions.{name}" for name in ("hold", "undo")}
VIEWS: Final = {
    *("attention.record_views", "attention.acknowledge", "attention.snooze"),
    "attention.delegate",
}
REFUSALS: Final = {"control.refuse", "threads.record_answer_change", "people.bind_account"}
EVENTS: Final = {"checkpoints.event", "forges.event", "worker.not_followed"}
APPLYING: Final = {f"pending_decisions.{name}" for name in ("take", "finish")}
RULES: Final = {"permission_rules.ratify", "permission_rules.revoke"}
DIGESTS: Final = {"attention.choose_digest_hour"}
LOCKING: Final = {
    "claim.keep_from_claims",
    "attention.due_steps",
    "pending_decisions.due",
    "attention.due_reminders",
    "queues.do_postponed_candidates",
    "questions.escalate_candidates",
    "questions.expire_candidates",
    "worker.rescue_candidates",
    "deliveries.notify_dead_letters_candidates",
    "jobs.promote_candidates",
}
WORK: Final = {
    "attention.digest_candidates",
    "attention.take_due_digests",
    "permission_rules.decide",
    "events.lock_month",
    "costs.add",
    "costs.configure",
    "costs.record",
    "costs.release",
    "costs.release_lost",
    "costs.reserve",
    "events.drop",
    "events.make_partition",
    "events.forget",
    "activity.append",
    "activity.evict",
    "activity.transcript",
    "events.prune_activity",
    "events.prune_logs",
    "claim.end_grace",
    "claim.exchange",
    "claim.exchange_after",
    "queues.configure_limits",
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
    "workflows.await_jobs",
    "workflows.record_spawn",
    "attention.take_step",
    "control.deliver_messages",
    "control.hand_messages",
    "questions.ask",
    "attention.remind",
    "repos.assign",
    "run_state.settle",
    "run_state.heartbeat",
    "run_state.assign_agent",
    "run_state.describe",
    "run_state.pull_request",
    "questions.escalate",
    "questions.expire",
    "deliveries.notify_dead_letters",
    "jobs.promote",
    "worker.rescue",
    "worker.watch_locks",
    "worker.deregister",
    "worker.deregister_candidates",
    "events.partitions",
    "queues.set_by_type",
    "queues.set_unhandled_types",
    "worker.suspects",
    "registry.register",
    "registry.remove",
    "published.publish",
}
LEASES: Final = {"registry.acquire", "registry.renew", "registry.resign"}
SENDING: Final = {
    f"deliveries.{name}"
    for name in (
        "enqueue", "notify", "finish", "attach", "warn", "copy_to",
    )
} | {
    f"rate_limits.{name}" for name in ("make_buckets", "consume_tokens", "pause", "resume")
} | {"delivery_claims.claim", "delivery_claims.rescue", "delivery_claims.begin_call"} | {
    "activity.show", "deliveries.post",
}  # fmt: skip
TALKING: Final = {
    "permission_rules.propose",
    "permission_rules.propose_in_term",
    "deliveries.add_targets",
    "deliveries.inherit_targets",
    "jobs.lock",
    "jobs.lock_jobs",
    "deliveries.redeliver",
    "workflows.cancel_tree",
    "workflows.link",
    "jobs.lock_run",
    "workflows.add_members",
    "workflows.cancel_group",
    "workflows.inherit_group",
    "workflows.open_group",
    "submissions.join",
    "submissions.keep_unique_key",
    "submissions.submit_keyed",
    "submissions.submit_new",
    "submissions.submit_one",
    "submissions.submit_plain",
    "submissions.submit_with_targets",
    "jobs.cancel_now",
    "control.copy_checkpoint",
    "jobs.lock_to_cancel",
    "control.dismiss",
    "control.pause",
    "control.undismiss",
    "control.unpause",
    "attachments.inherit",
    "control.inherit_messages",
    "control.send_message",
    "jobs.request_cancel",
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
    *("forges.receive", "forges.finish", "forges.answered"),
    "pagers.record",
    "forges.branch_deleted",
    "forges.note_tip",
}
FOLLOWING: Final = {
    f"forges.{name}"
    for name in ("ignore", "ignore_others", "send", "reopen", "reopen_pull", "add", "end")
}
SIGNED_IN: Final = {f"browser_sessions.{name}" for name in ("create_link", "end", "sessions")}
SHOWING: Final = {
    f"live_threads.{name}" for name in ("add", "claim", "begin_stream", "record", "remove")
}
BROWSERS: Final = SIGNED_IN - {"browser_sessions.create_link"}
SERVING: Final = {
    f"browser_sessions.{name}" for name in ("close", "find", "open_session", "person_of_link")
}
FILES: Final = {"attachments.claim", "attachments.end"}
REFUSED: Final = {
    "worker": FILES | {"attachments.add"} | REFUSALS
    | SCHEMA | PEOPLE | BOARDS | REPOS | DECISIONS | VIEWS | RULES | DIGESTS
    | SIGNED_IN | SERVING | SHOWING | CARDS
    | RECEIVING | {"forges.request", "schedules.remove"} | {"events.forget", "approval_tokens.mint"}
    | {"approval_tokens.refuse"},
    "bot": SCHEMA | BROWSERS | WORK | REPOS | FIRING | FOLLOWING
    | {"schedules.change", "schedules.advance", "schedules.record"}
    | {"people.link", "people.unlink", "approval_tokens.mint", "approval_tokens.refuse"}
    | {"permission_rules.propose", "permission_rules.propose_in_term", "checkpoints.event"},
    "anna": FILES | REFUSALS | EVENTS | SCHEMA | SERVING | SHOWING | WORK | FIRING | RECEIVING
    | FOLLOWING | LEASES | SENDING | CARDS | {"people.create_link_code", "forges.lock_pull"},
    "reader": FILES | REFUSALS | EVENTS | {"attachments.add"}
    | SCHEMA | PEOPLE | BOARDS | TABLES | PLANNED | FIRING | WORK | LEASES | SENDING
    | TALKING | QUEUES | DECISIONS | APPLYING | RECEIVING | FOLLOWING | VIEWS | RULES | DIGESTS
    | SIGNED_IN | SERVING | SHOWING | CARDS
    | LOCKING | {"forges.request", "forges.lock_pull"},
}  # fmt: skip


@pytest.mark.parametrize("user", REFUSED)
async def test_a_role_can_run_only_its_own_statements(
    session: Callable[[str], Awaitable[Connection]], user: str
) -> None:
    conn = await session(user)
    refused = set()
    for family, texts in TEXTS.items():
        for name in texts:
            try:
                await plan(conn, family, name)
            except psycopg.errors.InsufficientPrivilege:
                refused.add(f"{family}.{name}")
    assert refused == REFUSED[user]
