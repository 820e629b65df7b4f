"""Hostile values for each column that a role may write, and valid rows to put them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_LONG: Final = 250_000
"""Characters of a text that no column takes."""
_LARGE: Final = 4_000_000
"""Bytes of a document that no column takes."""
_NUMBERS: Final = {"smallint": 15, "integer": 31, "bigint": 63}
_BIG_TEXT: Final = f"repeat('x', {_LONG})"
_BIG_DOCUMENT: Final = f"""'{{"x": "' || repeat('x', {_LARGE}) || '"}}'"""
_DEEP: Final = """'{"x": ' || repeat('[', 3000) || repeat(']', 3000) || '}'"""
_VALUES: Final[dict[str, list[str]]] = {
    "text": ["''", "'D-1/1'", _BIG_TEXT],
    "draftsman.channel": ["''", "'log'", "'cli'", "'gone'", _BIG_TEXT],
    "jsonb": ["'[1]'", "'5'", "'null'", "'{}'", _DEEP, _BIG_DOCUMENT],
    "json": ["'[1]'", "'5'", "'{}'", _DEEP, _BIG_DOCUMENT],
    "boolean": ["true", "false"],
    "double precision": ["'NaN'", "-1", "1e300"],
    "timestamp with time zone": ["'-infinity'", "'infinity'", "'200000-01-01Z'"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'"],
    "bytea": [f"convert_to({_BIG_TEXT}, 'UTF8')"],
}
"""By type; a column of another type needs values here."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a role may write, with its type and the labels of its enum."""

    table: str
    name: str
    type: str
    labels: tuple[str, ...]

    @property
    def values(self) -> list[str]:
        """Return hostile values as expressions of SQL."""
        return ["NULL", *(f"({value})::{self.type}" for value in self._values())]

    def _values(self) -> list[str]:
        if self.type.endswith("[]"):
            element = Column(self.table, self.name, self.type[:-2], self.labels)
            first = element.values[1]
            last = element.values[-1]
            return [
                "'{}'",
                "'{NULL}'",
                f"ARRAY[[{first}], [{first}]]",
                f"array_fill({first}, ARRAY[100000])",
                f"ARRAY[{last}]",
            ]
        if self.labels:
            return [f"'{label}'" for label in self.labels]
        if self.type in _NUMBERS:
            bits = _NUMBERS[self.type]
            return ["0", f"{2**bits - 1}", f"-{2**bits - 1}"]
        return _VALUES[self.type]


COLUMNS: Final = """
    SELECT c.relname, a.attname, format_type(a.atttypid, NULL),
           coalesce((SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e
                      WHERE e.enumtypid = CASE WHEN t.typelem <> 0 AND t.typcategory = 'A'
                                          THEN t.typelem ELSE t.oid END), '{}')
      FROM pg_class c
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      JOIN pg_type t ON t.oid = a.atttypid
     WHERE c.relnamespace = 'draftsman'::regnamespace AND c.relkind IN ('r', 'p', 'v')
       AND NOT c.relispartition
       AND has_column_privilege(%s, c.oid, a.attnum, %s)
     ORDER BY c.relname, a.attnum
"""
"""The columns that a role may insert or update, as the catalog of PostgreSQL has them."""


def insertion(table: str, row: Mapping[str, str]) -> str:
    """Return the statement that inserts a row."""
    return (
        f"INSERT INTO draftsman.{table} ({', '.join(row)})"
        f" OVERRIDING SYSTEM VALUE VALUES ({', '.join(row.values())})"
    )


def submission(request: Mapping[str, str], state: Mapping[str, str]) -> str:
    """Return the statement that inserts a request and its state."""
    number = state.get("number", "number")
    columns = {name: text for name, text in state.items() if name != "number"}
    return (
        f"WITH r AS ({insertion('job_requests', request)} RETURNING number)"
        f" INSERT INTO draftsman.job_states (number, {', '.join(columns)})"
        f" SELECT {number}, {', '.join(columns.values())} FROM r"
    )
