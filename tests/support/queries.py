"""Planning queries without running them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from psycopg import AsyncCursor

import draftsman
import draftsman_bots
from draftsman.database import named_queries as queries
from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.questions.question import QuestionStatus
from draftsman.worker.store import next_due_query
from tests.support.declared_sweeps import DUE_QUERIES

ROOTS: Final = [Path(next(iter(package.__path__))) for package in (draftsman, draftsman_bots)]


def _family(root: Path, file: Path) -> str:
    """Return the channel of a file of queries, or its package, or its own name in a package."""
    if root.name != "draftsman":
        return file.relative_to(root).parts[0]
    return file.parent.name if file.stem == "store" else file.stem


FILES: Final = {
    _family(root, file): file
    for root in ROOTS
    for file in sorted(root.rglob("*.sql"))
    if "-- name: " in file.read_text("utf-8")
}
"""Files of queries by the name of their package, or their own in a package with several."""
MODULES: Final = {
    family: ".".join((root.name, *file.relative_to(root).with_suffix("").parts))
    for family, file in FILES.items()
    for root in ROOTS
    if file.is_relative_to(root)
}
"""Modules that the files belong to, by the same names."""
TEXTS: Final = {family: queries.load(module) for family, module in MODULES.items()}
TEXTS["worker"] = TEXTS["worker"] | {"next_due": next_due_query(DUE_QUERIES)}
QUERIES: Final = [(family, name) for family, texts in TEXTS.items() for name in texts]
NAMES: Final = {TEXTS[family][name]: f"{family}.{name}" for family, name in QUERIES}
"""Name of a query, by its text."""
TYPED: Final[dict[str, dict[str, Any]]] = {
    "claim.exchange": {"free": 1, "ahead": 1},
    "claim.exchange_after": {"free": 1, "ahead": 1, "after": 1},
    "questions.resolve": {"status": QuestionStatus.ANSWERED, "job_status": Status.RESUMED},
}
"""Parameters whose type PostgreSQL cannot infer from the query."""


class _Nulls(dict[str, Any]):
    """Parameters without values, except given values."""

    def __getitem__(self, key: str) -> Any:
        return self.get(key)

    def __contains__(self, key: object) -> bool:
        return True


async def explain(conn: Connection, query: str, params: dict[str, Any]) -> str:
    """Return the plan of a query; parameters that are not given are NULL."""
    cursor: AsyncCursor[Any] = conn.cursor()
    await cursor.execute(f"EXPLAIN {query}", _Nulls(params))
    return "\n".join(line for (line,) in await cursor.fetchall())


async def plan(conn: Connection, family: str, name: str) -> None:
    """Plan a named query: a misspelled column raises an error."""
    query = TEXTS[family][name]
    if query.startswith("LISTEN"):  # has no plan and no parameters
        await conn.execute(query)
    elif query.startswith("COPY ("):
        await explain(conn, query[len("COPY (") : query.rindex(")")], {})
    elif query.startswith("COPY"):
        table, columns = query.removeprefix("COPY ").rpartition(")")[0].split("(")
        await explain(conn, f"SELECT {columns} FROM {table}", {})
    else:
        await explain(conn, query, TYPED.get(f"{family}.{name}", {}))
