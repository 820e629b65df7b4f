"""Released states: their data put into a database, their code into a folder."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import psycopg

FOLDER: Final = Path(__file__).with_name("releases")


@dataclass(frozen=True)
class Release:
    """What `tests.upgrade.freeze` wrote."""

    folder: Path

    @property
    def version(self) -> str:
        return self.folder.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text("utf-8"))
        return found

    @cached_property
    def tables(self) -> dict[str, bytes]:
        """Return the rows of each table but that of the migrations, the columns first."""
        with tarfile.open(self.folder / "data.tar.xz") as tar:
            files = {entry.name: tar.extractfile(entry) for entry in tar}
            found = {name.partition(".")[0]: file.read() for name, file in files.items() if file}
        del found["schema_migrations"]
        return found

    def unpack(self, folder: Path) -> Path:
        """Write the released code into a folder; return the root of its packages."""
        with tarfile.open(self.folder / "code.tar.xz") as tar:
            tar.extractall(folder, filter="data")
        return folder / "core"

    def load(self, url: str) -> None:
        """Bring an empty database to the state of this release, data included."""
        with tarfile.open(self.folder / "code.tar.xz") as tar, psycopg.connect(url) as conn:
            for name, checksum in self.manifest["migrations"].items():
                file = tar.extractfile(f"migrations/{name}.sql")
                assert file is not None
                conn.execute(file.read())
                record = "UPDATE draftsman.schema_migrations SET checksum = %s WHERE name = %s"
                conn.execute(record, (checksum, name))
            conn.execute("SET LOCAL session_replication_role = replica")
            for table, rows in self.tables.items():
                conn.execute(f"DELETE FROM draftsman.{table}".encode())
                statement = f"COPY draftsman.{table} ({columns(rows)}) FROM STDIN (HEADER)"
                with conn.cursor().copy(statement.encode()) as copy:
                    copy.write(rows)
            for name, last in self.manifest["sequences"].items():
                conn.execute("SELECT setval(%s::regclass, %s)", (f"draftsman.{name}", last))

    def rows(self, url: str, table: str) -> list[bytes]:
        """Return the rows of a table, in the columns that this release had."""
        statement = f"COPY (SELECT {columns(self.tables[table])} FROM draftsman.{table}) TO STDOUT"
        with psycopg.connect(url) as conn, conn.cursor().copy(statement.encode()) as copy:
            return sorted(bytes(row) for row in copy)


def columns(rows: bytes) -> str:
    """Return the columns that the first line names, as a list of SQL."""
    return ", ".join(f'"{name}"' for name in rows.split(b"\n", 1)[0].decode().split("\t"))


def releases() -> list[Release]:
    """Return every frozen release, oldest first."""
    return [Release(path.parent) for path in sorted(FOLDER.glob("*/manifest.json"))]
