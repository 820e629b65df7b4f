"""The named queries: each matches the schema, has a function of its name, and uses its index."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from uuid import UUID

import pytest

import draftsman
import draftsman_bots
from bench.history import Backlog, seed_draftsman
from draftsman.database.database import Connection
from tests.soak.calls import CALLS, query_of
from tests.support.cases import cases
from tests.support.planner import planned
from tests.support.queries import MODULES, QUERIES, TEXTS, explain, plan
from tests.support.statements import rows

OTHER_NAMES = {
    "claim.exchange_after": "exchange",
    "submissions.submit_new": "_insert_new",
    "questions.open": "open_questions",
    "questions.lock_job": "lock",
    "checkpoints.clear_chunks": "artifact",
    "checkpoints.chunk": "artifact",
    "checkpoints.chunks": "content",
    "registry.list": "all_workers",
    "details.in_order": "events",
    "schema.enums": "_load_enums",
    "schema.lock_timeout": "limit_lock_waits",
    "schema.forget_functions": "drop_vanished",
    "schema.set_local": "PoolerConnection",
    "schema.wake": "receives_notifications",
    "worker.next_due": "next_due_query",
}
"""Queries whose function has another name: theirs is a builtin, or they are part of a whole."""
INDEXES = {
    "job_requests": {"job_requests_pkey", "job_requests_id", "job_requests_key"},
    "job_states": {
        "job_states_pkey",
        "job_states_claim",
        "job_states_by_type",
        "job_states_held",
        "job_states_limited",
        "job_states_key",
        "job_states_status",
        "job_states_due",
        "job_states_subject",
    },
    "job_runs": {"job_runs_pkey"},
    "job_questions": {
        "job_questions_pkey",
        "job_questions_open",
        "job_questions_asked",
        "job_questions_expiry",
    },
    "job_events": {"job_events_job", "job_events_cursor", "job_events_kind"},
    "job_targets": {
        "job_targets_pkey",
        "job_targets_unique",
        "job_targets_thread",
        "job_targets_place",
    },
    "deliveries": {
        "deliveries_pkey",
        "deliveries_id",
        "deliveries_job",
        "deliveries_thread",
        "deliveries_head",
        "deliveries_due",
        "deliveries_urgent",
        "deliveries_status",
        "deliveries_pending",
        "deliveries_dedupe",
        "deliveries_message",
    },
}


@cases("family", TEXTS)
async def test_postgresql_can_plan_every_query_and_compiles_none(
    conn: Connection, family: str
) -> None:
    wrong = await _wrong_plans(conn, family)
    if wrong:  # the planner counts the rows that earlier tests deleted
        await conn.execute("VACUUM")
        wrong = await _wrong_plans(conn, family)
    assert wrong == []


async def _wrong_plans(conn: Connection, family: str) -> list[str]:
    async with planned(conn) as plans:
        for name in TEXTS[family]:
            await plan(conn, family, name)
    return plans.wrong()


@cache
def _users(family: str) -> list[ModuleType]:
    """Return the modules of the store that run queries of a family."""
    packages = [
        *walk_packages(draftsman.__path__, "draftsman."),
        *walk_packages(draftsman_bots.__path__, "draftsman_bots."),
    ]
    names = [m.name for m in packages if ".store" in m.name or ".database." in m.name]
    own = MODULES[family]
    return [
        candidate
        for candidate in map(import_module, names)
        if candidate.__name__ == own or f'load("{own}")' in inspect.getsource(candidate)
    ]


@cases(
    ("family", "name"),
    [(family, name) for family, name in QUERIES if family != "invariants"],
)
def test_a_query_is_run_by_the_function_of_its_name(family: str, name: str) -> None:
    function = OTHER_NAMES.get(f"{family}.{name}", name)
    callers = [getattr(module, function, None) for module in _users(family)]
    assert any(caller and f'_Q["{name}"]' in inspect.getsource(caller) for caller in callers)


def test_every_query_has_a_case_over_a_long_history() -> None:
    covered = {query_of(key) for key in CALLS}
    assert covered == {f"{family}.{name}" for family, name in QUERIES}


def test_only_invariants_and_archives_may_read_whole_tables() -> None:
    free = {query_of(key) for key, call in CALLS.items() if call.everything}
    month = {f"events.{name}" for name in ("count", "holders", "copy_out", "drop", "forget")}
    assert free == month | {f"invariants.{name}" for name in TEXTS["invariants"]}


@cases("family", sorted({*TEXTS} - {"invariants"}))
def test_every_executed_query_is_in_its_file(family: str) -> None:
    used = {
        part.split('"')[0]
        for module in _users(family)
        for part in inspect.getsource(module).split('_Q["')[1:]
    }
    assert used == set(TEXTS[family])


@pytest.mark.parametrize("table", INDEXES)
async def test_a_table_has_the_listed_indexes_and_no_more(conn: Connection, table: str) -> None:
    indexes = await rows(
        conn,
        "SELECT indexname FROM pg_indexes WHERE schemaname = 'draftsman' AND tablename = %s",
        (table,),
    )
    assert {name for (name,) in indexes} == INDEXES[table]


async def test_the_claim_reads_its_index_in_order_and_sorts_nothing(conn: Connection) -> None:
    await conn.execute("SET enable_seqscan = off")
    plan = await explain(
        conn,
        "SELECT number FROM draftsman.claimable WHERE queue = 'q' AND NOT by_type"
        " ORDER BY priority DESC, position, number LIMIT 10",
        {},
    )
    assert "Scan using job_states_claim" in plan
    assert "Sort" not in plan


@pytest.mark.parametrize(
    ("family", "name", "index"),
    [
        ("jobs", "promote", "job_states_due"),
        ("questions", "expire", "job_questions_expiry"),
        ("worker", "next_due", "job_states_due"),
        ("details", "events", "_epoch_txid_id_idx"),
        ("details", "job_events", "_job_id_idx"),
        ("details", "find", "job_requests_id"),
        ("attention", "figures", "job_questions_asked"),
        ("attention", "interruptions", "job_questions_asked"),
        ("submissions", "submit_one", "job_requests_key"),
        ("submissions", "submit_one", "job_states_subject"),
        ("submissions", "submit_keyed", "job_requests_key"),
        ("submissions", "submit_keyed", "job_states_subject"),
        ("submissions", "existing", "job_requests_key"),
        ("submissions", "existing", "job_states_subject"),
    ],
)
async def test_a_hot_query_uses_its_index(
    conn: Connection, family: str, name: str, index: str
) -> None:
    await conn.execute("SET enable_seqscan = off")
    await conn.execute("SET enable_bitmapscan = off")
    counts = ("job", "id", "after", "epoch", "txid", "limit", "seconds", "until")
    numbers = dict.fromkeys(counts, 1)
    ids = {"lowest": UUID(int=1), "highest": UUID(int=2)}
    values = {**numbers, **ids}
    if family == "submissions":
        texts = dict.fromkeys(("type", "idempotency_key", "subject_key"), "text")
        values = {**texts, "rows": "[{}]", "types": ["t"], "keys": ["k"], "subjects": ["s"]}
    assert index in await explain(conn, TEXTS[family][name], values)


async def test_a_page_of_jobs_is_read_by_status_with_any_statistics(
    conn: Connection,
) -> None:
    await seed_draftsman(conn, Backlog(2000, 200))
    await conn.execute("ANALYZE draftsman.job_states")
    values = {"statuses": ["failed"], "lowest": 0, "before": 2**40, "limit": 200}
    async with conn.transaction():
        await conn.execute(TEXTS["details"]["in_order"])
        planned = await explain(conn, TEXTS["details"]["page"], values)
    assert "using job_states_status " in planned, planned


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("delivery_claims.claim", "deliveries_due"),
        ("delivery_claims.claim", "deliveries_urgent"),
        ("delivery_claims.rescue", "deliveries_status"),
        ("delivery_claims.next_due", "deliveries_due"),
        ("deliveries.of_job", "deliveries_job"),
        ("deliveries.dead_letter_count", "deliveries_status"),
        ("deliveries.page", "deliveries_status"),
    ],
)
async def test_the_outbox_is_read_by_its_indexes(conn: Connection, query: str, index: str) -> None:
    await conn.execute("SET enable_seqscan = off")
    await conn.execute("SET enable_bitmapscan = off")
    numbers = dict.fromkeys(("job", "limit", "most", "free", "share", "lease", "head_start"), 1)
    params = {"channel": "slack", "after": "", "statuses": ["dead_letter"]}
    params |= {"busy": [], "reserved": [], "channels": ["slack"]}
    family, name = query.split(".")
    plan = await explain(conn, TEXTS[family][name], numbers | params)
    assert f"using {index} " in plan, plan
