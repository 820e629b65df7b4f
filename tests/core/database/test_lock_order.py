"""Every statement locks its rows in an order, so that two of them cannot wait for each other.

A statement may lock a single row, by the columns of a unique index; rows in an order (`ORDER BY`);
only free rows (`SKIP LOCKED`); or rows that a part of it has locked in one of these ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from draftsman.database.database import Connection
from draftsman.database.migration_files import available
from tests.support.queries import FILES
from tests.support.statements import rows

FUNCTION: Final = re.compile(
    r"CREATE (?:OR REPLACE )?FUNCTION draftsman\.(\w+)\("
    r"(?:(?!CREATE )[\s\S])*?(\$\w*\$)([\s\S]*?)\2"
)
LOCK: Final = re.compile(r"\bFOR (?:NO KEY )?UPDATE\b(?: OF \w+)?(?P<skip> SKIP LOCKED)?")
CHANGE: Final = re.compile(r"\bUPDATE draftsman\.(?P<table>\w+)(?: (?:AS )?\w+)?")
TABLE: Final = re.compile(r"\b(?:FROM|JOIN|UPDATE) draftsman\.(\w+)")
CONDITION: Final = re.compile(r"(?:\b\w+\.)?\b(\w+) = (?!ANY)[%$(\w]")
LOCKED_JOBS: Final = "its callers have locked these jobs, in the order of their numbers"
EXCEPTIONS: Final[dict[str, str]] = {
    "repos.clear_default": "an index allows a single default",
    "schedules.lock": "the name of a schedule is unique",
    "raise_epoch": "the table has one row",
    "count_repo_change": "the table has one row",
    "enqueue_target_deliveries": "targets are added to jobs of this transaction, or to one job",
    "end_canceled_job": "a job has one running run, and its questions change with its lock",
    "resolve_jobs": LOCKED_JOBS,
    "cancel_batch": LOCKED_JOBS,
    "skip_members": LOCKED_JOBS,
    "release_keys": LOCKED_JOBS,
    "do_due_work": "`lock_due_work` has locked these rows",
    "close_others": "questions change only with the lock of their job, which the caller holds",
    "follow_transitions": "this transaction has changed these jobs",
    "try_places": "the jobs arrive in this transaction, and `lock_buckets` locks in one order",
    "record_usage": "a lease token has one run, and `lock_budgets` locks in one order",
    "raise_budget": "name and day are the key",
    "revoke_denied_rules": "`lock_rules` admits one transaction for a repository",
}
"""Why other statements cannot wait for each other, by the name of the query or function."""


def _units() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each query and function."""
    for family, file in FILES.items():
        parts = re.split(r"-- name: (\w+)\n", file.read_text("utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            yield f"{family}.{name}", text
    for item in available():
        for function in FUNCTION.finditer(item.sql if item.has_functions else ""):
            yield function[1], function[3]


def _statement(text: str, place: int) -> str:
    """Return the statement or subquery at a place, without its own subqueries."""
    begin = place
    depth = 0
    while begin and not (depth == 0 and text[begin - 1] in "(;"):
        begin -= 1
        depth += (text[begin] == ")") - (text[begin] == "(")
    flat = ""
    depth = 0
    for letter in text[begin:]:
        depth += letter == "("
        if depth == 0 and letter in ");":
            break
        flat += letter if depth == 0 else ""
        depth -= letter == ")"
    return flat


async def test_every_statement_locks_its_rows_in_an_order(conn: Connection) -> None:
    keys: dict[str, list[set[str]]] = {}
    indexes = await rows(
        conn,
        "SELECT c.relname, array_agg(a.attname::text) FROM pg_index i"
        " JOIN pg_class c ON c.oid = i.indrelid"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)"
        " WHERE i.indisunique AND c.relnamespace = 'draftsman'::regnamespace"
        " GROUP BY i.indexrelid, c.relname",
    )
    for table, columns in indexes:
        keys.setdefault(table, []).append({*columns})

    def is_single(tables: list[str], statement: str) -> bool:
        fixed = {*CONDITION.findall(statement.partition("WHERE")[2])}
        known = [key for table in tables for key in keys.get(table, [])]
        return any(key <= fixed for key in known)

    unordered: dict[str, list[str]] = {}
    for name, commented in _units():
        text = re.sub(r"--[^\n]*", "", commented)
        locks = [*LOCK.finditer(text)]
        for lock in locks:
            statement = _statement(text, lock.start())
            ordered = lock["skip"] or "ORDER BY" in statement
            if not ordered and not is_single(TABLE.findall(statement), statement):
                unordered.setdefault(name, []).append(" ".join(statement.split()))
        for change in CHANGE.finditer(text):
            statement = _statement(text, change.start())
            statement = statement[statement.index(change[0]) :]
            end = text.find(";", change.start())
            locked = any(lock.start() < (end if end > 0 else len(text)) for lock in locks)
            if not locked and not is_single([change["table"]], statement):
                unordered.setdefault(name, []).append(" ".join(statement.split()))
    found = {name: texts for name, texts in unordered.items() if name not in EXCEPTIONS}
    assert not found, "\n".join(
        f"{name}: {text}" for name, texts in found.items() for text in texts
    )
    assert unordered.keys() == EXCEPTIONS.keys(), "exceptions that are needed no more"
