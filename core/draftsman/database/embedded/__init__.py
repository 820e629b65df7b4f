"""The embedded PostgreSQL server, which runs when no URL is configured.

    ensure ── lock ── ready? ──── yes ─────────────────────────── touch the lock ── watcher ── URL
                         └─ no ── initdb on first need ── pg_ctl start ──┘

A thin layer over `initdb` and `pg_ctl`. The server is detached from the process that started it,
serves all processes of its user, and stops `idle_timeout` seconds after its last connection
(`idle_watcher`). All functions but `start` block: call them with `asyncio.to_thread` in an event
loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn

from draftsman.database.embedded import binaries, cluster, idle_watcher, password, server_process
from draftsman.database.embedded.layout import MAJOR, ROLE, ClusterLayout, locate, prepare
from draftsman.errors import DraftsmanError, EmbeddedServerError

__all__ = ["EmbeddedServer", "ServerStatus", "StopMode"]

StopMode = Literal["smart", "fast", "immediate"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """Status of the server; `version` is None and there are no `clients` unless it is ready.

    `data_dir` and `socket_dir` are those of the server, below the `data_dir` of the settings.
    """

    running: bool
    pid: int | None
    version: str | None
    major: int
    clients: Mapping[str, int]
    """The number of connections of each program."""
    data_dir: Path
    socket_dir: Path

    @property
    def connections(self) -> int:
        """The number of connections."""
        return sum(self.clients.values())


UNUSABLE: Final = re.compile(r"[\x00-\x1f\x7f\"'`$\\]")
"""Shell metacharacters: initdb and pg_ctl start their programs through a shell."""


class EmbeddedServer:
    """The server of a data directory, shared by all processes of its user."""

    def __init__(self, data_dir: Path, idle_timeout: float) -> None:
        """Take `settings.data_dir` and `settings.embedded.idle_timeout` (seconds; 0: never)."""
        self._data_dir = data_dir.expanduser().resolve()
        self._idle_stop = idle_timeout
        self._canceled = threading.Event()

    def cancel_start(self) -> None:
        """Make `ensure` in another thread raise at its next step.

        A server that is already starting continues, with its watcher, and stops when it is idle.
        """
        self._canceled.set()

    async def start(self) -> str:
        """Call `ensure` in a thread; a cancellation waits for the thread."""
        starting = asyncio.create_task(asyncio.to_thread(self.ensure))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            self.cancel_start()
            await asyncio.wait([starting])
            with contextlib.suppress(DraftsmanError):
                starting.result()
            raise

    def ensure(self) -> str:
        """Start the server if necessary; return the URL of the database `draftsman`.

        Creates the data on first use, and waits for another process that starts the server. The
        server then runs for at least `idle_timeout` seconds. Raises EmbeddedServerError.
        """
        return self._ensure()

    def revive(self) -> bool:
        """Restart a killed server and return True; a stopped server stays stopped.

        A killed server leaves its pid file behind, a stopped server removes it.
        """
        layout = self._locate()
        if not layout.pid_file.exists() or server_process.postmaster(layout) is not None:
            return False
        self._ensure()
        return True

    def stop(self, mode: StopMode = "fast") -> bool:
        """Stop the server with a mode of `pg_ctl`; return False if it was not running."""
        layout = self._locate()
        if not layout.cluster.exists():
            return False
        with self._explained(), server_process.lock_file(layout.lock):
            if server_process.postmaster(layout) is None:
                return False
            cluster.pg_ctl(layout, "stop", "-m", mode)
        return True

    def status(self) -> ServerStatus:
        """Return the status of the server, without starting it."""
        layout = self._locate()
        pid = server_process.postmaster(layout)
        version, clients = cluster.activity(layout) if pid else (None, {})
        return ServerStatus(
            running=pid is not None,
            pid=pid,
            version=version,
            major=MAJOR,
            clients=clients,
            data_dir=layout.data,
            socket_dir=layout.socket_dir,
        )

    def url(self, database: str = "draftsman") -> str:
        """Return the URL of a database, also when the server is stopped."""
        return self._locate().url(database)

    def secret_url(self) -> str:
        """Return the URL with the password, for programs that do not support password files.

        Raises EmbeddedServerError before the first start, which sets the password.
        """
        layout = self._locate()
        plain = layout.url().partition("&passfile=")[0]
        return plain.replace(f"//{ROLE}@", f"//{ROLE}:{password.required(layout)}@")

    def binary(self, name: str) -> Path:
        """Return the path of a client program such as psql, pg_dump or pgbench."""
        return binaries.program(name)

    def psql(self, args: tuple[str, ...] = ()) -> NoReturn:
        """Replace this process by psql on the database, with additional `args`."""
        psql = str(self.binary("psql"))
        command = [psql, f"--dbname={self.ensure()}", *args]
        os.execv(psql, command)  # noqa: S606 (psql takes over the terminal and its signals)

    def dump(self, path: Path) -> None:
        """Dump the database to a file for `restore` of this or a later major version."""
        url = self.ensure()
        part = path.with_name(f"{path.name}.part").absolute()
        try:
            server_process.run([self.binary("pg_dump"), "--format=custom", f"--file={part}", url])
            part.replace(path)
        except OSError as error:
            raise EmbeddedServerError(f"cannot write {path}: {error.strerror}") from None
        finally:
            with contextlib.suppress(OSError):
                part.unlink()

    def restore(self, path: Path) -> None:
        """Replace the database by a dump, in one transaction."""
        pg_restore = self.binary("pg_restore")
        source = path.absolute()
        server_process.run(
            [pg_restore, "--list", source]
        )  # check that it is a dump before creating a database
        options = (
            "--clean",
            "--if-exists",
            "--no-owner",
            "--no-privileges",
            "--single-transaction",
        )
        url = self._ensure(beside_other_major=True)
        server_process.run(
            [pg_restore, *options, "--single-transaction", f"--dbname={url}", source]
        )

    def _locate(self) -> ClusterLayout:
        with self._explained():
            return locate(self._data_dir)

    def _ensure(self, *, beside_other_major: bool = False) -> str:
        if match := UNUSABLE.search(str(self._data_dir.absolute())):
            raise EmbeddedServerError(
                f"PostgreSQL cannot run in a directory with {match[0]!r} in its path:"
                f" {str(self._data_dir)!r}; set DRAFTSMAN_DATA_DIR to another directory"
            )
        with self._explained():
            layout = prepare(self._data_dir)
            with server_process.lock_file(layout.lock, canceled=self._canceled) as lock:
                if not self._accepts_password(layout):
                    if not beside_other_major:
                        cluster.refuse_other_major(self._data_dir, layout)
                    cluster.start(layout, self._canceled)
                os.utime(lock)  # tells the watcher that a client is about to connect
                self._watch(layout)
        return layout.url()

    def _accepts_password(self, layout: ClusterLayout) -> bool:
        """Return whether a server with the known password runs; stop any other server.

        The other server has no password, or its password file was lost or exposed.
        """
        if not cluster.accepts_connections(layout):
            return False
        if password.read(layout) is not None:
            return True
        cluster.pg_ctl(layout, "stop", "-m", "fast")
        return False

    def _watch(self, layout: ClusterLayout) -> None:
        """Start the watcher, unless another watcher holds the inherited lock."""
        if self._idle_stop == 0:
            return
        with server_process.open_lock_file(layout.watch_lock) as lock_descriptor:
            if server_process.try_lock(lock_descriptor):
                order = json.dumps(self._order(layout, lock_descriptor))
                # the watcher forks, so this returns at once and leaves no child process
                subprocess.run(
                    [sys.executable, "-I", "-S", "-B", idle_watcher.__file__, order],
                    pass_fds=[lock_descriptor],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,
                    check=False,
                )

    def _order(self, layout: ClusterLayout, lock_descriptor: int) -> idle_watcher.WatchOptions:
        psql = (str(self.binary("psql")), "-XAtqf", str(cluster.ACTIVITY), layout.url("postgres"))
        pg_ctl = str(binaries.server_program("pg_ctl", layout))
        return {
            "idle_timeout": self._idle_stop,
            "pid_file": str(layout.pid_file),
            "lock": str(layout.lock),
            "guard": lock_descriptor,
            "ask": psql,
            "stop": (pg_ctl, "stop", "-D", str(layout.cluster), "-m", "fast"),
            "switch": layout.account.switch,
            "env": server_process.ENVIRONMENT,
        }

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EmbeddedServerError(
                f"the embedded PostgreSQL cannot use {self._data_dir}: {error.filename}:"
                f" {error.strerror}; set DRAFTSMAN_DATA_DIR to a writable directory with 100 MB"
                " free"
            ) from None
