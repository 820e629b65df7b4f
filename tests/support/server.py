"""The PostgreSQL of a test session: servers, a template, and a database for each test.

Each process of pytest has its own server, a copy of a server that was started before. On a common
server its transactions would delay the event feed in the tests of all other processes: the feed
stays behind the oldest transaction of the whole server.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from typing import LiteralString
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from draftsman.database import migrate
from draftsman.database.embedded import EmbeddedServer
from tests.support import shifted_clock

PREFIX = "draftsman-tests-"
ALIVE = "alive"
IDLE_STOP = 900.0
"""Seconds after which the server of a killed session stops by itself."""
ROOM = 2 * 1024**3
"""Free bytes in memory for a session: copying a database there takes 8 ms, not 400."""
LEFT = 3
"""Number of unused databases that are kept before they are dropped."""
UNSAFE: tuple[LiteralString, ...] = ("fsync", "full_page_writes", "autovacuum")
"""Settings without durability, which tests do not need."""
IN_MEMORY: tuple[LiteralString, ...] = ("io_method = sync", "shared_buffers = '32MB'")
"""Settings for little data in memory: no I/O processes, and fewer pages to unmap at an exit."""
PLAN_ONCE: LiteralString = "ALTER SYSTEM SET plan_cache_mode = force_generic_plan"
"""Plan a statement once instead of six times; the servers of `make servers` have the default."""


def make_home() -> Path:
    """Create the folder of a session, which the server's user may enter.

    The caller holds a lock on it until it exits, so that the next session can remove the folder of
    a killed session from memory.
    """
    home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=fast_folder()))
    home.chmod(0o755)
    mine = home / "new"
    fcntl.flock(os.open(mine, os.O_CREAT, 0o600), fcntl.LOCK_SH)
    mine.rename(home / ALIVE)
    for other in home.parent.glob(f"{PREFIX}*/{ALIVE}"):
        with contextlib.suppress(OSError), other.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            Server(other.parent, None).end()
    return home


def fast_folder() -> Path | None:
    """Return a folder in memory with enough space for a server, or None."""
    memory = Path("/dev/shm")
    fast = memory.is_dir() and shutil.disk_usage(memory).free > ROOM
    return memory if fast else None


@contextmanager
def open_folder() -> Iterator[Path]:
    """Create a folder that the server's user may enter, in memory if there is enough space.

    The folders of pytest are private, and on a disk a new cluster takes seconds to be durable.
    """
    with tempfile.TemporaryDirectory(prefix="draftsman-test-", dir=fast_folder()) as name:
        path = Path(name).resolve()
        path.chmod(0o755)
        yield path


class Server:
    """The embedded server of a process, in the session's folder, or the server of a given URL."""

    def __init__(self, home: Path, given: str | None, process: str = "main") -> None:
        self.home = home
        self.given = given
        self._folder = home / process
        self._embedded = EmbeddedServer(self._folder, IDLE_STOP)
        self._prefix = "test_" + home.name.rpartition("-")[2].lower()
        self._template_name = f"{self._prefix}_template"
        self._marker = home / "template"
        self._admin: psycopg.Connection[tuple[object, ...]] | None = None
        self._left: list[str] = []
        self._url: str | None = None

    @property
    def version(self) -> str:
        """Return the version of the server; the embedded server need not run for that."""
        if self.given is None:
            command = [self.psql, "--version"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            return f"{done.stdout.split()[-1]} (embedded)"
        return f"{self.admin.info.parameter_status('server_version')} (DRAFTSMAN_TEST_URL)"

    @property
    def psql(self) -> str:
        """Return the path of psql."""
        return str(self._embedded.binary("psql"))

    @property
    def admin(self) -> psycopg.Connection[tuple[object, ...]]:
        """Return this process's connection to the server; starts the server."""
        if self._admin is None or self._admin.closed:
            self._admin = psycopg.connect(self.given or self._start(), autocommit=True)
        return self._admin

    def url(self, database: str) -> str:
        """Return the URL of a database on this server."""
        base = self.given or self._url or self._embedded.url()
        if self._admin is not None:  # it runs, and stays where it is
            self._url = base
        return urlsplit(base)._replace(path=f"/{database}").geturl()

    def create(self, *, migrated: bool = True) -> str:
        """Create a database, a copy of the migrated template or empty; return its name."""
        for left in self._left[:-LEFT]:
            self.drop(left)
        del self._left[:-LEFT]
        name = f"{self._prefix}_{uuid4().hex[:12]}"
        template = self._template() if migrated else "template0"
        self._run("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", name, template)
        self.begin(name)
        return name

    def begin(self, database: str) -> None:
        """Set the clock of a database to the moment of `--clock`, if there is one."""
        if seconds := shifted_clock.offset():
            self.set(database, "draftsman.clock_offset", f"{seconds} seconds")

    def set(self, database: str, setting: str, value: str) -> None:
        """Set a parameter for all new sessions in a database."""
        parts = (sql.Identifier(database), sql.SQL(setting), value)
        self.admin.execute(sql.SQL("ALTER DATABASE {} SET {} = {}").format(*parts))

    def drop(self, name: str) -> None:
        """Drop a database with its connections."""
        self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def leave(self, name: str) -> None:
        """Drop a database later, because a drop waits for the end of its sessions."""
        self._left.append(name)

    def crash(self) -> None:
        """Crash and restart it; only for a server of a single test."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """Stop it immediately, like a crash."""
        self.disconnect()
        self._embedded.stop("immediate")

    def start(self) -> None:
        """Start it again."""
        self._embedded.ensure()

    def disconnect(self) -> None:
        """Close this process's connection."""
        if self._admin is not None:
            self._admin.close()

    def end(self) -> None:
        """Remove everything of all processes; called by the process that started the session."""
        if self.given is not None:
            pattern = self._prefix.replace("_", r"\_") + "%"
            databases = self.admin.execute(
                "SELECT datname FROM pg_database WHERE datname LIKE %s", (pattern,)
            ).fetchall()
            for (name,) in databases:
                self.drop(str(name))
        self.disconnect()
        for cluster in self.home.glob("*/postgres18"):
            EmbeddedServer(cluster.parent, IDLE_STOP).stop("immediate")
        shutil.rmtree(self.home, ignore_errors=True)

    def prepare(self) -> None:
        """Create the server that those of all processes are copies of."""
        original = self.home / "original"
        with self._locked():
            if original.exists():
                return
            try:
                server = Server(self.home, None, original.name)
                server._fill()
                server._embedded.stop()
            except BaseException:
                shutil.rmtree(original, ignore_errors=True)
                raise

    def _start(self) -> str:
        self.prepare()
        original = self.home / "original"
        if not self._folder.exists():
            self._folder.mkdir(mode=0o755)
            for programs in original.glob("pgsql-*"):
                copytree(programs, self._folder / programs.name, copy_function=os.link)
            subprocess.run(["cp", "-a", original / "postgres18", self._folder], check=True)
        return self._admin_url()

    def _admin_url(self) -> str:
        """Return the URL of the database for administration; starts the embedded server."""
        return urlsplit(self._embedded.ensure())._replace(path="/postgres").geturl()

    def _fill(self) -> None:
        """Create the embedded server, with the template."""
        with psycopg.connect(self._admin_url(), autocommit=True) as conn:
            for name in UNSAFE:
                conn.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(name)))
            for setting in IN_MEMORY:
                conn.execute(sql.SQL("ALTER SYSTEM SET ") + sql.SQL(setting))
            conn.execute(PLAN_ONCE)
            conn.execute("SELECT pg_reload_conf()")
            self._hash_password_once(conn)
            self._create_template(conn)

    def _hash_password_once(self, conn: psycopg.Connection[tuple[object, ...]]) -> None:
        """Store a verifier with a single iteration.

        With the default of 4096, authentication is most of the cost of a connection for both sides,
        and tests connect ten thousand times. The password is random and unchanged.
        """
        password = urlsplit(self._embedded.secret_url()).password
        assert password is not None
        conn.execute("SET scram_iterations = 1")
        conn.execute(sql.SQL("ALTER ROLE CURRENT_USER PASSWORD {}").format(sql.Literal(password)))

    def _template(self) -> str:
        """Return the migrated template; the first process of the session creates it."""
        admin = self.admin
        with self._locked():
            if not self._marker.exists():
                self._create_template(admin)
        return self._template_name

    def _create_template(self, admin: psycopg.Connection[tuple[object, ...]]) -> None:
        name = self._template_name
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        migrate_in_thread(self.url(name))
        # writes the relation cache's file, which is copied too
        psycopg.connect(self.url(name)).close()
        self._marker.touch()

    def _run(self, statement: LiteralString, *names: str) -> None:
        self.admin.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.home / "session.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def migrate_in_thread(url: str) -> None:
    """Migrate in a thread, for code that may run in an event loop."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(migrate.migrate(url))).result()
