"""Frozen releases: their data for a database, their code for a folder."""

from __future__ import annotations

import json
import subprocess
import tarfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import psycopg

from draftsman.database.migration_files import Migration, available

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = Path(__file__).with_name("releases")
CODE: Final = ("core", "bots", "migrations", "config", "pyproject.toml")
CHANNELS: Final = "channels"
"""Folder with the SQL of the packages of channels, some of which is no file of the checkout."""
UNFILLED: Final = frozenset(
    {
        *("event_archives", "archived_jobs", "pending_decisions"),
        *("pull_requests", "follow_ups", "forge_events", "bound_accounts"),
        *("unlinked_jobs", "postponed_work", "pending_cancels", "unhandled_types"),
    }
)
"""Tables without rows in a frozen release: a month is archived long after it ended, a decision is
pending for seconds, there is no forge, and the leader soon does what a transaction left to it."""


@dataclass(frozen=True)
class Release:
    """A release that `tests.upgrade.freeze` wrote."""

    folder: Path

    @property
    def version(self) -> str:
        return self.folder.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text("utf-8"))
        return content

    @cached_property
    def tables(self) -> dict[str, bytes]:
        """Return the rows of each table except that of the migrations, the columns first."""
        with tarfile.open(self.folder / "data.tar.xz") as tar:
            files = {entry.name: tar.extractfile(entry) for entry in tar}
            rows = {name.partition(".")[0]: file.read() for name, file in files.items() if file}
        del rows["schema_migrations"], rows["schema_functions"]
        return rows

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Return the code of the release; of an unreleased version, that of the checkout."""
        archive = self.folder / "code.tar.xz"
        if not archive.exists():
            return checkout()
        with tarfile.open(archive) as tar:
            files = {entry.name: tar.extractfile(entry) for entry in tar}
            return {name: file.read() for name, file in files.items() if file}

    def load(self, url: str) -> None:
        """Bring an empty database to the state of this release, with its data."""
        with psycopg.connect(url) as conn:
            for name, checksum in self.manifest["migrations"].items():
                conn.execute(self._statements(name))
                record = "UPDATE draftsman.schema_migrations SET checksum = %s WHERE name = %s"
                conn.execute(record, (checksum, name))
            for name, checksum in self.manifest["functions"].items():
                conn.execute(self._statements(name))
                record = "UPDATE draftsman.schema_functions SET checksum = %s WHERE name = %s"
                conn.execute(record, (checksum, name.removeprefix("functions/")))
            conn.execute("SELECT draftsman.grant_roles()")
            conn.execute("SET LOCAL session_replication_role = replica")
            for table, rows in self.tables.items():
                conn.execute(f"DELETE FROM draftsman.{table}".encode())
                statement = f"COPY draftsman.{table} ({columns(rows)}) FROM STDIN (HEADER)"
                with conn.cursor().copy(statement.encode()) as copy:
                    copy.write(rows)
            for name, last in self.manifest["sequences"].items():
                conn.execute("SELECT setval(%s::regclass, %s)", (f"draftsman.{name}", last))

    def _statements(self, name: str) -> bytes:
        """Return the statements of a file, by its name in the manifest."""
        if (of_channel := f"{CHANNELS}/{name}.sql") in self.files:
            return self.files[of_channel]
        return Migration(name, self.files[f"migrations/{name}.sql"].decode()).statements.encode()

    def rows(self, url: str, table: str) -> list[bytes]:
        """Return the rows of a table, in the columns of this release."""
        statement = f"COPY (SELECT {columns(self.tables[table])} FROM draftsman.{table}) TO STDOUT"
        with psycopg.connect(url) as conn, conn.cursor().copy(statement.encode()) as copy:
            return sorted(bytes(row) for row in copy)


def checkout() -> dict[str, bytes]:
    """Return the tracked files that a worker needs, and the SQL of the channels."""
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", *CODE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    files = {name: (ROOT / name).read_bytes() for name in done.stdout.split("\0") if name}
    own = [item for item in available() if item.source is not None and item.is_own]
    return files | {f"{CHANNELS}/{item.name}.sql": item.statements.encode() for item in own}


def checksums(*, functions: bool) -> dict[str, str]:
    """Return the checksums of draftsman's numbered files, or of those of functions, in order."""
    files = [item for item in available() if item.is_own and item.has_functions == functions]
    return {item.name: item.checksum for item in files}


def unpack(files: dict[str, bytes], folder: Path) -> Path:
    """Write code into a folder; return the root of its packages."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "core"


def columns(rows: bytes) -> str:
    """Return the columns of the first line as a list in SQL."""
    return ", ".join(f'"{name}"' for name in rows.split(b"\n", 1)[0].decode().split("\t"))


def releases() -> list[Release]:
    """Return every frozen release, oldest first."""
    return [Release(path.parent) for path in sorted(FOLDER.glob("*/manifest.json"))]
