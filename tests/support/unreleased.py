"""A database with the schema of the last development version before the first release.

`unreleased.sql.xz` is a dump of such a database by `pg_dump`: its schema, and the rows of
`schema_migrations`, 0001_core to 0020_dispatch.
"""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Final

import psycopg

DUMP: Final = Path(__file__).with_name("unreleased.sql.xz")


def load(url: str) -> None:
    """Restore the dump into an empty database."""
    with psycopg.connect(url) as conn:
        conn.execute(lzma.decompress(DUMP.read_bytes()))
