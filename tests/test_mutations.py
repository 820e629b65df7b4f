"""Mutants of the claim path: the operators find what must never go unnoticed."""

from __future__ import annotations

from tests.mutations import targets
from tests.mutations.mutant import ROOT
from tests.mutations.python_operators import mutants_of_functions
from tests.mutations.sql_operators import mutants_of_queries
from tests.support.cases import cases

SQL = """-- name: take
UPDATE states s
   SET status = CASE WHEN s.asked IS NULL THEN 'done' END, version = s.version + 1
  FROM mine m
 WHERE s.lease_token = m.token AND s.status = 'running'
 ORDER BY s.number DESC
   FOR UPDATE SKIP LOCKED
"""
PYTHON = '''class Loop:
    async def turn(self) -> int:
        """Take a turn."""
        if self.stop or not self.jobs:
            return 0
        _log.info("a turn")
        await self.settle(done=True)
        return min(len(self.jobs), 9)
'''


def test_operators_change_conditions_locks_orders_and_assignments() -> None:
    changes = {mutant.change for mutant in mutants_of_queries("take.sql", SQL)}
    assert changes == {
        "drop SET status",
        "never s.asked IS NULL",
        "true for s.asked IS NULL",
        "drop SET version",
        "- in s.version + 1 FROM mine",
        "2 in .version + 1 FROM mine m",
        "true for s.lease_token = m.token",
        "job instead of token in s.lease_token = m.token",
        "true for s.status = 'running'",
        "drop ORDER BY s.number DESC",
        "ascending s.number DESC",
        "drop FOR UPDATE SKIP LOCKED",
        "drop SKIP LOCKED",
    }


def test_operators_change_statements_and_leave_messages() -> None:
    changes = {mutant.change for mutant in mutants_of_functions("loop.py", PYTHON)}
    assert changes == {
        "always self.stop or not self.jobs",
        "never self.stop or not self.jobs",
        "drop self.stop of self.stop or not self.jobs",
        "drop not self.jobs of self.stop or not self.jobs",
        "1 for 0",
        "drop await self.settle(done=True)",
        "drop argument done=True of self.settle",
        "False for True",
        "max for min",
        "10 for 9",
    }


@cases(
    "unit, change",
    [
        ("exchange", "job instead of token in "),
        ("exchange", "drop SKIP LOCKED"),
        ("exchange", "true for lease_token = d.token"),
        ("exchange", "true for type = ANY (%(types)s::text[])"),
        ("settle", "true for j.lease_token = %(token)s"),
        ("ClaimLoop._start_all", "drop self._done.pop("),
    ],
)
def test_what_broke_a_guarantee_before_is_among_the_mutants(unit: str, change: str) -> None:
    assert [m for m in targets.mutants() if m.unit == unit and m.change.startswith(change)]


def test_mutants_are_distinct_and_every_equivalent_one_exists() -> None:
    mutants = targets.mutants()
    names = {mutant.name for mutant in mutants}
    assert len(names) == len(mutants)
    assert targets.equivalent().keys() <= names


def test_the_tests_of_mutants_exist() -> None:
    missing = []
    for test in targets.TESTS:
        path, _, name = test.partition("::")
        file = ROOT / path
        if not file.exists() or (name and f"def {name}(" not in file.read_text("utf-8")):
            missing.append(test)
    assert missing == []
