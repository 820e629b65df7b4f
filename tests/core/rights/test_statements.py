"""Which of our statements each role may run: PostgreSQL checks it when it plans one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import psycopg
import pytest

from draftsman.store import queries
from draftsman.store.db import Connection
from tests.support.queries import FAMILIES, plan

SCHEMA: Final = {"schema.record", "schema.grant_roles", "schema.new_epoch", "people.save"}
PEOPLE: Final = {"people.offer", "people.link", "people.unlink"}
BOARDS: Final = {
    f"boards.{name}"
    for name in (
        "save", "remove", "webhook", "appeared", "vanished", "taken_off", "baseline", "advance",
        "settle", "swapped",
    )
}  # fmt: skip
REPOS: Final = {
    f"repos.{name}"
    for name in (
        "add", "remove", "clear_default", "set_default", "map_id", "map_name", "unmap",
        "save_profile", "checked",
    )
}  # fmt: skip
WORK: Final = {
    "archives.hold", "archives.drop", "archives.make_partition", "archives.forget",
    "archives.prune_logs", "claim.exchange", "claim.start", "claim.give_back",
    "claim.return_unknown", "progress.checkpoint", "progress.begin_step", "progress.finish_step",
    "progress.artifact", "progress.clear_chunks", "progress.chunk", "progress.log",
    "progress.spend",
    "questions.ask", "reminders.remind", "repos.assign", "settle.settle", "settle.heartbeat",
    "settle.usage", "sweeps.escalate", "sweeps.expire", "sweeps.notify", "sweeps.promote",
    "sweeps.rescue", "sweeps.watch_locks", "sweeps.reap", "sweeps.partitions", "workers.register",
    "workers.remove",
}  # fmt: skip
LEASES: Final = {"workers.acquire", "workers.renew", "workers.resign"}
SENDING: Final = {
    f"deliveries.{name}"
    for name in (
        "say", "notify", "finish", "attach", "copy_to", "make_buckets", "take", "pause", "let_go",
    )
} | {"dispatch.claim", "dispatch.reclaim", "dispatch.begin_call"}  # fmt: skip
TALKING: Final = {
    "deliveries.add_targets", "deliveries.inherit_targets", "deliveries.lock",
    "deliveries.lock_jobs",
    "deliveries.redeliver", "intake.join", "intake.submit", "operate.cancel_now",
    "operate.inherit", "operate.lock", "operate.refuse", "operate.request_cancel",
    "progress.event", "questions.count_refused", "questions.extend", "questions.lock",
    "questions.lock_job", "questions.note", "questions.record", "questions.resolve",
    "sweeps.not_followed", "threads.remark", "tokens.mint", "tokens.use",
}  # fmt: skip
REFUSED: Final = {
    "worker": SCHEMA | PEOPLE | BOARDS | REPOS | {"archives.forget", "tokens.mint"},
    "bot": SCHEMA | WORK | REPOS | {"people.link", "people.unlink", "tokens.mint"},
    "anna": SCHEMA | WORK | LEASES | SENDING | {"people.offer"},
    "reader": SCHEMA | PEOPLE | BOARDS | REPOS | WORK | LEASES | SENDING | TALKING,
}


@pytest.mark.parametrize("who", REFUSED)
async def test_a_role_may_run_its_own_statements_alone(
    session: Callable[[str], Awaitable[Connection]], who: str
) -> None:
    conn, refused = await session(who), set()
    for family in FAMILIES:
        for name in queries.load(family):
            try:
                await plan(conn, family, name)
            except psycopg.errors.InsufficientPrivilege:
                refused.add(f"{family}.{name}")
    assert refused == REFUSED[who]
