"""Where a cluster lies, and who owns it.

    <data_dir>/postgres18/            made by us; root: 0755, anybody else: 0700
        postgresql.conf pg_*.conf     written by us at every start
        lock                          held by whoever starts or stops the server
        server.lock                   held by every process that works on the data
        watch.lock                    held by the watcher
        password                      of the server's role, 0600; only its owner can connect
        data/                         PostgreSQL's own, 0700
        run/                          its socket, 0700
        log/                          its log, 0700
    <data_dir>/pgsql-<version>/       root only: programs that the server's user can reach

PostgreSQL refuses to run as root. There `data`, `run` and `log` belong to an unprivileged user and
all the rest to root, so that nothing which root reads or writes can be swapped by the server. Where
that user cannot enter `data_dir`, `postgres18` is a link to a folder in `/var/lib/draftsman`:
directories that we did not make keep their modes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pwd
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from draftsman.errors import EmbeddedServerError

MAJOR = 18
PORT = 5432
ROLE = "draftsman"
"""The server's only role; it owns everything."""
SYSTEM_DIR = Path("/var/lib/draftsman")
SHORT_DIR = Path("/tmp")  # noqa: S108 (what is made there is checked to be ours)
SERVER_USERS = ("draftsman", "postgres", "nobody")
SOCKET_PATH_MAX = 103
"""Bytes: `sun_path` holds 104 on macOS and 108 on Linux, both with the closing NUL."""


@dataclass(frozen=True, slots=True)
class SystemAccount:
    """The operating-system user that the server runs as."""

    name: str
    uid: int
    gid: int

    @property
    def switch(self) -> dict[str, Any]:
        """Arguments with which `subprocess` runs a program as this user."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """The folder of one cluster and what lies in it."""

    cluster: Path
    account: SystemAccount

    @property
    def data(self) -> Path:
        """What PostgreSQL calls its data directory."""
        return self.cluster / "data"

    @property
    def log(self) -> Path:
        """Where the server writes what happens to it."""
        return self.cluster / "log"

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops the server."""
        return self.cluster / "lock"

    @property
    def server_lock(self) -> Path:
        """Held by every process that works on the data."""
        return self.cluster / "server.lock"

    @property
    def watch_lock(self) -> Path:
        """Held by the watcher."""
        return self.cluster / "watch.lock"

    @property
    def password_file(self) -> Path:
        """The password of the server's role, in the format of libpq's password files."""
        return self.cluster / "password"

    @property
    def pid_file(self) -> Path:
        """Written by the server; a killed one leaves it behind."""
        return self.data / "postmaster.pid"

    @property
    def name(self) -> str:
        """The cluster's name, which its processes carry in their titles."""
        return "draftsman-" + hashlib.sha256(os.fsencode(self.cluster)).hexdigest()[:12]

    @property
    def socket_dir(self) -> Path:
        """`run`, or a short path in /tmp where that one is too long for a socket."""
        run = self.cluster / "run"
        return run if _fits(run) else SHORT_DIR / f"{self.name}-{self.account.uid}"

    @property
    def socket(self) -> Path:
        """Where the server listens."""
        return self.socket_dir / f".s.PGSQL.{PORT}"

    def url(self, database: str = "draftsman") -> str:
        """Return the libpq URL of a database; it names the password's file, not the password.

        It overrides PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSFILE and, by an empty password,
        PGPASSWORD.
        """
        host = quote(os.fsencode(self.socket_dir), safe="")
        file = quote(os.fsencode(self.password_file), safe="")
        return f"postgresql://{ROLE}@/{database}?host={host}&port={PORT}&passfile={file}&password="


def locate(data_dir: Path) -> ClusterLayout:
    """Return the place of a cluster that may not exist yet; change nothing.

    Raises EmbeddedServerError when it belongs to another user.
    """
    cluster = (data_dir / f"postgres{MAJOR}").resolve()
    if cluster.exists() and (owner := cluster.stat().st_uid) != os.geteuid():
        raise EmbeddedServerError(
            f"{cluster} belongs to {_name(owner)}: run draftsman as {_name(owner)},"
            " or set DRAFTSMAN_DATA_DIR to a directory of your own"
        )
    return ClusterLayout(cluster, _account(cluster / "data"))


def prepare(data_dir: Path) -> ClusterLayout:
    """Make what is missing of the folders, and return their place.

    Raises EmbeddedServerError where that is not possible or not safe.
    """
    link = data_dir / f"postgres{MAJOR}"
    if not link.exists():
        _make_cluster(link)
    place = locate(data_dir)
    if place.socket_dir.parent != place.cluster:
        _claim_short(place.socket_dir)
    return place


def programs_dir(place: ClusterLayout) -> Path:
    """Return where programs for the server go: beside the cluster, unless none may run there."""
    beside = place.cluster.parent
    if not os.statvfs(beside).f_flag & getattr(os, "ST_NOEXEC", 0):
        return beside
    _make_directory(SYSTEM_DIR)
    return SYSTEM_DIR


def make_server_folder(folder: Path, account: SystemAccount) -> None:
    """Make a folder inside a cluster that only the server's user may enter."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if account.switch:
        os.chown(folder, account.uid, account.gid)
    folder.chmod(0o700)


def _make_cluster(link: Path) -> None:
    if link.is_symlink():
        raise EmbeddedServerError(
            f"{link} points to {link.readlink()}, which is gone: bring it back, or remove the link"
            " to start with an empty database"
        )
    _make_directory(link.parent)
    account = _account(link / "data")
    if os.geteuid() != 0 or (_enters(account, link.parent) and _fits(link / "run")):
        _make_directory(link)
        return
    _make_directory(SYSTEM_DIR / "clusters")
    if not _enters(account, SYSTEM_DIR / "clusters"):
        raise EmbeddedServerError(
            f"the server's user {account.name} can enter neither {link.parent} nor {SYSTEM_DIR}:"
            " set DRAFTSMAN_DATA_DIR to a directory that other users may enter"
        )
    home = Path(tempfile.mkdtemp(prefix="cluster-", dir=SYSTEM_DIR / "clusters"))
    home.chmod(0o755)
    try:
        link.symlink_to(home)
    except OSError:
        home.rmdir()
        if not link.exists():  # else another process was first
            raise


def _make_directory(path: Path) -> None:
    """Make a directory and its parents: open to enter for root's server, private otherwise."""
    for missing in reversed([part for part in (path, *path.parents) if not part.exists()]):
        try:
            missing.mkdir(mode=0o700)
        except FileExistsError:
            continue
        if os.geteuid() == 0:
            missing.chmod(0o755)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def _claim_short(folder: Path) -> None:
    """Take a directory in /tmp, where anybody could have made one of that name before."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if not private or found.st_uid != os.geteuid():
        raise EmbeddedServerError(
            f"{folder} is not a private directory of yours: remove it,"
            " or set DRAFTSMAN_DATA_DIR to a shorter path"
        )


def _account(data: Path) -> SystemAccount:
    if os.geteuid() != 0:
        return _by_uid(os.geteuid())
    if data.exists():  # a user that appears later must not take over what another one owns
        return _by_uid(data.stat().st_uid)
    for name in SERVER_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return SystemAccount(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedServerError(
        f"PostgreSQL does not run as root, and there is no user {', '.join(SERVER_USERS)}"
        " to run it as: add one, or set DRAFTSMAN_DATABASE_URL"
    )


def _by_uid(uid: int) -> SystemAccount:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedServerError(
            f"user id {uid} has no name in the system's user list, which PostgreSQL needs:"
            " add one, or set DRAFTSMAN_DATABASE_URL"
        ) from None
    return SystemAccount(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"


def _enters(account: SystemAccount, folder: Path) -> bool:
    """Ask the kernel, because modes alone leave out groups and access lists."""
    return subprocess.run(["test", "-x", folder], cwd="/", **account.switch).returncode == 0


def _fits(socket_dir: Path) -> bool:
    return len(os.fsencode(socket_dir / f".s.PGSQL.{PORT}")) <= SOCKET_PATH_MAX
