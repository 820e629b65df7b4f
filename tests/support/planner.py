"""The plans of a session, also for statements inside functions."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from psycopg.errors import Diagnostic

from draftsman.database.database import Connection

DISABLED_COST = 1e9
"""Until PostgreSQL 17, a disabled node adds 1e10 to the cost of its plan; 18 counts such nodes."""
_COST = re.compile(r"[:.]total_cost ([\d.e+]+)")
_COUNT = re.compile(r"[:.]disabled_nodes (\d+)")
_JIT = re.compile(r":jitFlags (\d+)")
_LINEAR = re.compile(r"\{(?:HASHJOIN|MERGEJOIN)\b")
_TABLE = re.compile(r":(?:aliasname|enrname) (\w+)")


@dataclass(slots=True)
class Planned:
    """The plans of a session, as node trees."""

    trees: list[str] = field(default_factory=list)

    def wrong(self) -> list[str]:
        """Return each plan with a disabled node, or that the server would compile, by its tables.

        The server sets `jitFlags` by the estimated cost, also where it cannot compile.
        """
        return [problem for tree in self.trees if (problem := _bad_nodes(tree))]

    def linear(self, table: str) -> bool:
        """Return whether each plan that reads a table joins it with a hash or merge join."""
        trees = [tree for tree in self.trees if table in plan_tables(tree)]
        return bool(trees) and all(_LINEAR.search(tree) for tree in trees)


def _bad_nodes(tree: str) -> str:
    disabled = max((int(count) for count in _COUNT.findall(tree)), default=0)
    cost = max((float(cost) for cost in _COST.findall(tree)), default=0.0)
    jit = max((int(flags) for flags in _JIT.findall(tree)), default=0)
    if not disabled and cost < DISABLED_COST and not jit:
        return ""
    tables = ", ".join(sorted(plan_tables(tree)))
    return f"{tables}: cost {cost:g}, {disabled} disabled, jitFlags {jit}"


def plan_tables(tree: str) -> set[str]:
    """Return the names, or aliases, of the tables of a plan."""
    return set(_TABLE.findall(tree))


@asynccontextmanager
async def planned(conn: Connection) -> AsyncIterator[Planned]:
    """Collect the plans of a session, with the default just-in-time compilation of servers.

    Earlier plans are discarded: the backend may be that of another test.
    """
    plans = Planned()

    def note(diagnostic: Diagnostic) -> None:
        if diagnostic.message_primary == "plan:":
            plans.trees.append(diagnostic.message_detail or "")

    conn.add_notice_handler(note)
    await conn.execute("DISCARD PLANS")
    await _set(conn, jit="on", debug_print_plan="on", client_min_messages="log")
    try:
        yield plans
    finally:
        await _set(conn, client_min_messages="notice", debug_print_plan="off", jit="off")
        conn.remove_notice_handler(note)


async def _set(conn: Connection, **settings: str) -> None:
    for name, value in settings.items():
        await conn.execute("SELECT set_config(%s, %s, false)", (name, value))
