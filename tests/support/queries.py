"""Planning queries without running them."""

from __future__ import annotations

from typing import Any, Final

from psycopg import AsyncCursor

from draftsman.database import named_queries as queries
from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.questions.question import QuestionStatus

FAMILIES: Final = sorted(file.name.removesuffix(".sql") for file in queries.files_of_queries())
QUERIES: Final = [(family, name) for family in FAMILIES for name in queries.load(family)]
NAMES: Final = {queries.load(family)[name]: f"{family}.{name}" for family, name in QUERIES}
"""Name of a query, by its text."""
TYPED: Final[dict[str, dict[str, Any]]] = {
    "claim.exchange": {"free": 1, "ahead": 1},
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
    query = queries.load(family)[name]
    if query.startswith("LISTEN"):  # has no plan and no parameters
        await conn.execute(query)
    elif query.startswith("COPY ("):
        await explain(conn, query[len("COPY (") : query.rindex(")")], {})
    elif query.startswith("COPY"):
        table, columns = query.removeprefix("COPY ").rpartition(")")[0].split("(")
        await explain(conn, f"SELECT {columns} FROM {table}", {})
    else:
        await explain(conn, query, TYPED.get(f"{family}.{name}", {}))
