"""The PostgreSQL that draftsman starts itself where no URL is given.

    ensure ── lock ── answers? ── yes ─────────────────────────── touch the lock ── watcher ── URL
                         └─ no ── initdb on first need ── pg_ctl start ──┘

A thin supervisor over `initdb` and `pg_ctl`. The server is detached: it outlives who started it,
serves every process of its user, and stops `idle_stop` seconds after its last connection (`watch`).
Everything here blocks; call it through `asyncio.to_thread` once a loop runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn

from draftsman.embedded import binaries, cluster, idle_watcher, password, server_process
from draftsman.embedded.layout import MAJOR, ROLE, ClusterLayout, locate, prepare
from draftsman.errors import EmbeddedServerError

__all__ = ["EmbeddedServer", "ServerStatus", "StopMode"]

StopMode = Literal["smart", "fast", "immediate"]


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is known about the server; `version` is None and `connections` 0 unless it answers.

    `data_dir` and `socket_dir` are the server's own, below the `data_dir` of the settings.
    """

    running: bool
    pid: int | None
    version: str | None
    major: int
    connections: int
    data_dir: Path
    socket_dir: Path


UNUSABLE: Final = re.compile(r"[\x00-\x1f\x7f\"'`$\\]")
"""What a shell reads in a path: initdb and pg_ctl start their programs through one."""


class EmbeddedServer:
    """The server of one data directory, shared by all processes of its user."""

    def __init__(self, data_dir: Path, idle_stop: float) -> None:
        """Take `settings.data_dir` and `settings.embedded.idle_stop` (seconds; 0 is never)."""
        self._data_dir = data_dir.expanduser().resolve()
        self._idle_stop = idle_stop
        self._given_up = threading.Event()

    def cancel_start(self) -> None:
        """Let an `ensure` of another thread raise at its next step, instead of waiting or starting.

        A server that is on its way comes up, with its watcher, and stops when it is idle.
        """
        self._given_up.set()

    def ensure(self) -> str:
        """Return the URL of the database `draftsman` on a server that answers.

        Creates the data on first need, starts the server when it is down or was killed, waits for
        another process that is doing so. It then stays for `idle_stop` seconds at least. Raises
        EmbeddedServerError.
        """
        return self._ensure()

    def revive(self) -> bool:
        """Start a server that was killed, and return True; one that was stopped stays stopped.

        A server that stops takes its pid file away; one that is killed leaves it behind.
        """
        place = self._locate()
        if not place.pid_file.exists() or server_process.postmaster(place) is not None:
            return False
        self._ensure()
        return True

    def stop(self, mode: StopMode = "fast") -> bool:
        """Stop the server; return False when it was not running. `mode` is that of `pg_ctl`."""
        place = self._locate()
        if not place.cluster.exists():
            return False
        with self._explained(), server_process.lock_file(place.lock):
            if server_process.postmaster(place) is None:
                return False
            cluster.pg_ctl(place, "stop", "-m", mode)
        return True

    def status(self) -> ServerStatus:
        """Return what is known about the server; change and start nothing."""
        place = self._locate()
        pid = server_process.postmaster(place)
        version, connections = cluster.activity(place) if pid else (None, 0)
        return ServerStatus(
            running=pid is not None,
            pid=pid,
            version=version,
            major=MAJOR,
            connections=connections,
            data_dir=place.data,
            socket_dir=place.socket_dir,
        )

    def url(self, database: str = "draftsman") -> str:
        """Return the URL of a database, whether or not the server runs."""
        return self._locate().url(database)

    def secret_url(self) -> str:
        """Return the URL with the password in it, for programs that read no password file.

        Raises EmbeddedServerError before the first start, which sets the password.
        """
        place = self._locate()
        plain = place.url().partition("&passfile=")[0]
        return plain.replace(f"//{ROLE}@", f"//{ROLE}:{password.required(place)}@")

    def binary(self, name: str) -> Path:
        """Return the path of a client program, like psql, pg_dump or pgbench."""
        return binaries.program(name)

    def psql(self, args: tuple[str, ...] = ()) -> NoReturn:
        """Become psql on the database; `args` are added to its command line."""
        psql = str(self.binary("psql"))
        command = [psql, f"--dbname={self.ensure()}", *args]
        os.execv(psql, command)  # noqa: S606 (the terminal and its signals are psql's now)

    def dump(self, path: Path) -> None:
        """Write the database to a file that `restore` of this or a later major version reads."""
        url, part = self.ensure(), path.with_name(f"{path.name}.part").absolute()
        try:
            server_process.run([self.binary("pg_dump"), "--format=custom", f"--file={part}", url])
            part.replace(path)
        except OSError as error:
            raise EmbeddedServerError(f"{path} cannot be written: {error.strerror}") from None
        finally:
            with contextlib.suppress(OSError):
                part.unlink()

    def restore(self, path: Path) -> None:
        """Replace the database by what `dump` wrote: all of it, or nothing when that fails."""
        pg_restore, source = self.binary("pg_restore"), path.absolute()
        server_process.run(
            [pg_restore, "--list", source]
        )  # a dump at all, before anything is made for it
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
        if found := UNUSABLE.search(str(self._data_dir.absolute())):
            raise EmbeddedServerError(
                f"PostgreSQL cannot run in a folder with {found[0]!r} in its path:"
                f" {str(self._data_dir)!r}; choose another (DRAFTSMAN_DATA_DIR)"
            )
        with self._explained():
            place = prepare(self._data_dir)
            with server_process.lock_file(place.lock, given_up=self._given_up) as lock:
                if not self._asks_for_a_password(place):
                    if not beside_other_major:
                        cluster.refuse_other_major(self._data_dir, place)
                    cluster.start(place, self._given_up)
                os.utime(lock)  # tells the watcher that somebody is about to connect
                self._watch(place)
        return place.url()

    def _asks_for_a_password(self, place: ClusterLayout) -> bool:
        """Return whether a server runs whose password we have; stop any other one.

        That is one of a version without passwords, or one whose file was lost or exposed.
        """
        if not cluster.accepts_connections(place):
            return False
        if password.read(place) is not None:
            return True
        cluster.pg_ctl(place, "stop", "-m", "fast")
        return False

    def _watch(self, place: ClusterLayout) -> None:
        """Start the watcher unless there is one: it inherits a lock and holds it all its life."""
        if self._idle_stop == 0:
            return
        with server_process.open_lock_file(place.watch_lock) as guard:
            if server_process.try_lock(guard):
                order = json.dumps(self._order(place, guard))
                # It forks before it watches: this returns at once, and leaves us no child.
                subprocess.run(
                    [sys.executable, "-I", "-S", "-B", idle_watcher.__file__, order],
                    pass_fds=[guard],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,
                    check=False,
                )

    def _order(self, place: ClusterLayout, guard: int) -> idle_watcher.WatchOptions:
        psql = (str(self.binary("psql")), "-XAtqf", str(cluster.ACTIVITY), place.url("postgres"))
        pg_ctl = str(binaries.server_program("pg_ctl", place))
        return {
            "idle_stop": self._idle_stop,
            "pid_file": str(place.pid_file),
            "lock": str(place.lock),
            "guard": guard,
            "ask": psql,
            "stop": (pg_ctl, "stop", "-D", str(place.cluster), "-m", "fast"),
            "switch": place.account.switch,
            "env": server_process.ENVIRONMENT,
        }

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EmbeddedServerError(
                f"the embedded PostgreSQL cannot use {self._data_dir}: {error.filename}:"
                f" {error.strerror}; give it a directory that you can write to, with 100 MB free"
                " (DRAFTSMAN_DATA_DIR)"
            ) from None
