"""Freezes a release: its code, and data that its own code made, for the tests of every later one.

python -m tests.upgrade.freeze VERSION

Run it in a clean checkout of the release. It writes tests/upgrade/releases/VERSION: `code.tar.xz`
(core, migrations, config), `data.tar.xz` (one file of COPY for each table) and `manifest.json`. The
code's archive is the same whenever it is made; the data has ids and times of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import lzma
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

from draftsman import resources
from draftsman.domain.job import Source, Status
from draftsman.domain.people.actor import Actor
from draftsman.runtime import Runtime, wire
from draftsman.settings import Settings
from draftsman.store.postgres.database import Connection, Database
from tests.factories import GATE, QUESTION, Factory
from tests.support.people import GROUPS, PEOPLE, People
from tests.support.server import Server, make_home

ROOT: Final = Path(__file__).resolve().parents[2]
CODE: Final = ("core", "migrations", "config", "pyproject.toml")
NO_EXPIRY: Final = {"expires_in": 0}
TABLES: Final = """
SELECT relname FROM pg_class
 WHERE relnamespace = 'draftsman'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
 ORDER BY relname"""
SEQUENCES: Final = """
SELECT sequencename, last_value FROM pg_sequences
 WHERE schemaname = 'draftsman' AND last_value IS NOT NULL ORDER BY sequencename"""


async def fill(rt: Runtime, make: Factory) -> None:
    """Leave a job in every status, and a row in every table.

    Questions of type `asks` and gates of type `gates` are what those handlers ask; every job that
    a worker holds is a dead one's.
    """
    people = People(rt.policy)
    dead = await make.worker_row(queues=["default"], version="the release")
    for status in Status:
        kind = {Status.WAITING_FOR_INPUT: "asks", Status.WAITING_FOR_APPROVAL: "gates"}
        fields: dict[str, Any] = {"type": kind.get(status, "noop"), "tags": ["upgrade", "ä\n\t\\"]}
        if status in (Status.CLAIMED, Status.RUNNING):
            fields["worker"] = dead
        await make.job_in(status, **fields)
    answered = await make.asked(QUESTION, type="asks")
    await make.answer(answered.number, "red")
    await make.answer(answered.number, "blue")  # refused: it is answered
    await make.asked(QUESTION.model_copy(update={"expires_in": 86_400.0}), type="asks")
    gate = await make.asked(GATE, type="gates")
    await rt.questions.mint_token(gate.number, 1, "carol", people.olga)
    await rt.job_control.retry(await make.failed(), make.owner)
    work = await make.running(type="works", worker=dead, on_lost="resume")
    await rt.checkpoints.save(work.lease, {"at": 7, "text": "ä\n\t\\"}, b"a bundle")
    await rt.checkpoints.begin_step(work.lease, "paid", "invocation-1")
    await rt.checkpoints.finish_step(work.lease, "paid", {"receipt": 1})
    await rt.checkpoints.begin_step(work.lease, "sent", "invocation-2")
    await rt.checkpoints.artifact(work.lease, "report.txt", "report", bytes(range(256)))
    await rt.checkpoints.event(work.lease, "note", {"text": "ä\n\t\\"})
    await rt.checkpoints.log(work.lease, 0, "a line\n")
    await rt.sweeps.acquire(dead, 30)


async def tables(conn: Connection) -> dict[str, bytes]:
    """Return every row of each table, as COPY writes it, with the columns in its first line."""
    found = {}
    for (table,) in await (await conn.execute(TABLES)).fetchall():
        statement = f"COPY (SELECT * FROM draftsman.{table}) TO STDOUT (FORMAT text, HEADER)"
        async with conn.cursor().copy(statement.encode()) as copy:
            found[f"{table}.copy"] = b"".join([bytes(part) async for part in copy])
    return found


def packed(files: dict[str, bytes]) -> bytes:
    """Return a .tar.xz that depends on nothing but its content."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            tar.addfile(entry, io.BytesIO(files[name]))
    return lzma.compress(plain.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def code() -> dict[str, bytes]:
    """Return the tracked files of the release that a worker of it needs."""
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", *CODE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name: (ROOT / name).read_bytes() for name in done.stdout.split("\0") if name}


async def freeze(folder: Path, url: str) -> None:
    """Write the three files, on a database that this version has migrated."""
    settings = Settings.model_validate(
        {"database_url": url, "people": PEOPLE, "groups": GROUPS, "questions": NO_EXPIRY}
    )
    db = Database(url, settings.database)
    await db.open()
    rt = wire(settings, db, False)
    await fill(rt, Factory(rt, Actor(Source.CLI, "root", "Root", person="root", owner=True)))
    async with db.connection() as conn:
        data = await tables(conn)
        sequences = dict(await (await conn.execute(SEQUENCES)).fetchall())
    await db.close()
    empty = [name for name, rows in data.items() if rows.count(b"\n") < 2]
    assert not empty, f"no row in {', '.join(empty)}"
    sums = {name: hashlib.sha256(sql.encode()).hexdigest() for name, sql in resources.migrations()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.tar.xz").write_bytes(packed(data))
    (folder / "code.tar.xz").write_bytes(packed(code()))
    manifest = {"version": folder.name, "migrations": sums, "sequences": sequences}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Freeze this checkout."""
    server = Server(make_home(), None)
    try:
        name = server.create()
        asyncio.run(freeze(ROOT / "tests" / "upgrade" / "releases" / sys.argv[1], server.url(name)))
    finally:
        server.end()


if __name__ == "__main__":
    main()
