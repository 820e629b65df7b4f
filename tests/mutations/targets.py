"""The claim path: its code, and the tests that may notice a change of it.

Each mutant runs those of the tests of its kind that reach its unit (`reach.py`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.mutations.mutant import ROOT, Mutant
from tests.mutations.python_operators import mutants_of_functions
from tests.mutations.sql_operators import mutants_of_objects, mutants_of_queries

QUERIES: Final = (
    "core/draftsman/jobs/runs/store/claim.sql",
    "core/draftsman/jobs/runs/store/run_state.sql",
)
OBJECTS: Final = frozenset(
    {
        "active_reservations",
        "check_runs",
        "check_transition",
        "claim_reserving_jobs",
        "claimable",
        "claimable_by_type",
        "hand_over",
        "record_transitions",
    }
)
"""Views and functions of migrations that the claim reads, and those that guard its transitions."""
GUARDS: Final = {"record_transitions": "SELECT bit_or("}
"""Functions of which only the part before this text guards transitions. Their constants are flags
of the rest."""
REQUIRED: Final = re.compile(
    "job instead of token|SKIP LOCKED|(true|false) for .*token.* = |true for .*type = ANY"
)
"""Names of mutants that each run contains: the token, the locks that others hold, and the types."""
FUNCTIONS: Final = (
    "core/draftsman/worker/claim_cursor.py",
    "core/draftsman/worker/claim_loop.py",
    "core/draftsman/worker/execution.py",
    "core/draftsman/jobs/runs/service/claim.py",
    "core/draftsman/handlers/handler_errors.py",
    "core/draftsman/jobs/requests/service/batching.py",
)
TYPES: Final = "tests/core/services/test_types.py"
QUERY_TESTS: Final = (
    "tests/core/jobs/runs/test_exchange.py",
    "tests/core/jobs/runs/test_claim.py",
    "tests/core/jobs/runs/test_claim_apart.py",
    "tests/core/jobs/runs/test_settlement.py",
    "tests/core/jobs/runs/test_rescue.py",
    "tests/core/worker/registry/test_worker_registry.py",
    "tests/core/jobs/runs/test_written_times.py",
    "tests/core/queues/test_claim_order.py",
    "tests/core/queues/test_queues.py",
    TYPES,
    "tests/core/queues/test_reservations.py",
    "tests/core/queues/limits/test_handover.py",
    "tests/core/races/test_claim_cursor.py",
    "tests/core/races/test_stale_claims.py",
    "tests/core/races/test_fencing.py",
    "tests/core/races/test_runs.py",
    "tests/core/races/test_queues.py",
    "tests/core/races/test_lock_order.py",
    "tests/core/races/test_order.py",
    "tests/core/races/test_pauses.py",
    "tests/core/races/test_concurrency_keys.py",
    "tests/core/races/test_limits.py",
    "tests/core/races/test_reservations.py",
    "tests/core/races/test_grace_periods.py",
    "tests/core/stateful/test_late_results.py",
)
"""Tests of a change of a query: those of its service, and of two sessions."""
RULE_TESTS: Final = (
    "tests/core/jobs/test_transitions.py",
    "tests/core/database/test_guards.py",
    "tests/core/events/test_events.py",
    "tests/core/jobs/test_state_rules.py",
    "tests/core/rights/test_events.py",
    f"{TYPES}::test_the_first_jobs_of_each_type_are_found_in_the_order_of_claims",
)
"""Tests that reach the rules and functions of the database without a query of the claim path."""
OBJECT_TESTS: Final = (
    "tests/core/jobs/runs/test_exchange.py",
    "tests/core/jobs/runs/test_claim.py",
    "tests/core/jobs/runs/test_settlement.py",
    TYPES,
    "tests/core/queues/test_claim_order.py",
    "tests/core/queues/test_queues.py",
    "tests/core/queues/test_reservations.py",
    "tests/core/queues/limits/test_handover.py",
    "tests/core/races/test_queues.py",
    "tests/core/races/test_lock_order.py",
    "tests/core/races/test_order.py",
    "tests/core/races/test_pauses.py",
    "tests/core/races/test_concurrency_keys.py",
    "tests/core/races/test_limits.py",
    "tests/core/races/test_reservations.py",
    *RULE_TESTS,
)
"""Tests of a change of a view or a function of the database."""
PYTHON_TESTS: Final = (
    "tests/core/jobs/runs",
    "tests/core/queues/limits/test_handover.py",
    "tests/core/races/test_fencing.py",
    "tests/core/races/test_runs.py",
    "tests/core/races/test_grace_periods.py",
    "tests/core/races/test_limits.py",
    "tests/core/worker/test_claim_cursor.py",
    "tests/core/worker/test_claim_loop.py",
    "tests/core/worker/test_claim_loop_rules.py",
    "tests/core/worker/test_grace_waits.py",
    "tests/core/worker/test_execution_rules.py",
    "tests/core/worker/test_claiming.py",
    "tests/core/worker/test_deadlines.py",
    "tests/core/worker/test_outcomes.py",
    "tests/core/worker/test_cancel.py",
    "tests/core/worker/test_heartbeat.py",
    "tests/core/worker/test_outages.py",
    "tests/core/worker/test_database_errors.py",
    "tests/core/worker/test_refused_claims.py",
    "tests/core/worker/test_refused_ends.py",
    "tests/core/worker/test_caught_pauses.py",
    "tests/core/worker/test_questions_at_once.py",
    "tests/core/worker/test_print_capture.py",
    "tests/core/worker/test_shutdown.py",
    "tests/core/handlers/test_handler_errors.py",
    "tests/core/handlers/test_context.py",
    "tests/core/jobs/requests/test_batching.py",
    "tests/core/races/test_submit_batches.py",
)
"""Tests of a change in Python: those of whole workers."""
TESTS: Final = tuple(dict.fromkeys((*QUERY_TESTS, *OBJECT_TESTS, *PYTHON_TESTS)))
_EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")


def mutants() -> list[Mutant]:
    """Return all mutants of the claim path, in the order of its files."""
    found = []
    for path in QUERIES:
        found += mutants_of_queries(path, _read(path))
    for file in sorted((ROOT / "migrations" / "functions").glob("*.sql")):
        path = str(file.relative_to(ROOT))
        source = _read(path)
        found += [
            mutant
            for mutant in mutants_of_objects(path, source, OBJECTS)
            if (end := GUARDS.get(mutant.unit)) is None
            or (
                end in source[mutant.end : source.index("END $$;", mutant.end)]
                and " CONSTANT " not in source.splitlines()[mutant.line - 1]
            )
        ]
    for path in FUNCTIONS:
        found += mutants_of_functions(path, _read(path))
    return found


def without_mutants(found: Iterable[Mutant]) -> set[str]:
    """Return the files and objects that have no mutant, such as one that was renamed."""
    found = [*found]
    changed = {mutant.path for mutant in found} | {mutant.unit for mutant in found}
    return {*QUERIES, *OBJECTS, *FUNCTIONS} - changed


def is_test_of(mutant: Mutant, test: str) -> bool:
    """Return whether a test may notice a mutant; it runs if it also reaches its unit."""
    if mutant.path.endswith(".py"):
        return test.startswith(PYTHON_TESTS)
    return test.startswith(QUERY_TESTS if mutant.path in QUERIES else OBJECT_TESTS)


def equivalent() -> dict[str, str]:
    """Return the mutants that behave like the original, by name, each with the reason."""
    entries = tomllib.loads(_EQUIVALENT.read_text("utf-8")).get("mutants", [])
    return {entry["name"]: entry["reason"] for entry in entries}


def _read(path: str) -> str:
    return (ROOT / path).read_text("utf-8")
