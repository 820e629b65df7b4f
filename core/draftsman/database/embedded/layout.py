"""File layout of a cluster, and its owner.

    <data_dir>/postgres18/            created by draftsman; root: 0755, other users: 0700
        postgresql.conf pg_*.conf     written at every start
        lock                          held during a start or stop of the server
        server.lock                   held by every process that uses the data
        watch.lock                    held by the watcher
        password                      of the server's role, 0600
        data/                         PostgreSQL's data directory, 0700
        run/                          socket, 0700
        log/                          logs, 0700
    <data_dir>/pgsql-<version>/       root only: programs that the server's user can run

PostgreSQL refuses to run as root. For root, `data`, `run` and `log` belong to an unprivileged user
and the rest to root, so that the server cannot replace files that root reads or writes. If that
user cannot enter `data_dir`, `postgres18` is a link to a folder in `/var/lib/draftsman`: the modes
of existing directories are not changed.
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
"""The server's only role, which owns the database."""
SYSTEM_DIR = Path("/var/lib/draftsman")
SHORT_DIR = Path("/tmp")  # noqa: S108 (ownership is checked)
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
        """Arguments of `subprocess` to run a program as this user."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """The folder of a cluster and its files."""

    cluster: Path
    account: SystemAccount

    @property
    def data(self) -> Path:
        """PostgreSQL's data directory."""
        return self.cluster / "data"

    @property
    def log(self) -> Path:
        """Folder of the server's logs."""
        return self.cluster / "log"

    @property
    def lock(self) -> Path:
        """Lock file, held during a start or stop of the server."""
        return self.cluster / "lock"

    @property
    def server_lock(self) -> Path:
        """Lock file, held by every process that uses the data."""
        return self.cluster / "server.lock"

    @property
    def watch_lock(self) -> Path:
        """Lock file, held by the watcher."""
        return self.cluster / "watch.lock"

    @property
    def password_file(self) -> Path:
        """Password of the server's role, in libpq's format."""
        return self.cluster / "password"

    @property
    def pid_file(self) -> Path:
        """Pid file of the server; a killed server leaves it behind."""
        return self.data / "postmaster.pid"

    @property
    def name(self) -> str:
        """The cluster's name, which is in the titles of its processes."""
        return "draftsman-" + hashlib.sha256(os.fsencode(self.cluster)).hexdigest()[:12]

    @property
    def socket_dir(self) -> Path:
        """`run`, or a short path in /tmp if `run` is too long for a socket."""
        run = self.cluster / "run"
        return run if _fits(run) else SHORT_DIR / f"{self.name}-{self.account.uid}"

    @property
    def socket(self) -> Path:
        """Socket of the server."""
        return self.socket_dir / f".s.PGSQL.{PORT}"

    def url(self, database: str = "draftsman") -> str:
        """Return the libpq URL of a database, with the password file instead of the password.

        It overrides PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSFILE and, by an empty password,
        PGPASSWORD.
        """
        host = quote(os.fsencode(self.socket_dir), safe="")
        file = quote(os.fsencode(self.password_file), safe="")
        return f"postgresql://{ROLE}@/{database}?host={host}&port={PORT}&passfile={file}&password="


def locate(data_dir: Path) -> ClusterLayout:
    """Return the layout of a cluster, which may not exist yet.

    Raises EmbeddedServerError if it belongs to another user.
    """
    cluster = (data_dir / f"postgres{MAJOR}").resolve()
    if cluster.exists() and (owner := cluster.stat().st_uid) != os.geteuid():
        raise EmbeddedServerError(
            f"{cluster} belongs to {_name(owner)}: run draftsman as {_name(owner)},"
            " or set DRAFTSMAN_DATA_DIR to a directory of your own"
        )
    return ClusterLayout(cluster, _account(cluster / "data"))


def prepare(data_dir: Path) -> ClusterLayout:
    """Create missing folders and return the layout.

    Raises EmbeddedServerError if that is not possible or not safe.
    """
    link = data_dir / f"postgres{MAJOR}"
    if not link.exists():
        _make_cluster(link)
    layout = locate(data_dir)
    if layout.socket_dir.parent != layout.cluster:
        _claim_short(layout.socket_dir)
    return layout


def programs_dir(layout: ClusterLayout) -> Path:
    """Return the folder for the server's programs: beside the cluster unless mounted noexec."""
    beside = layout.cluster.parent
    if not os.statvfs(beside).f_flag & getattr(os, "ST_NOEXEC", 0):
        return beside
    _make_directory(SYSTEM_DIR)
    return SYSTEM_DIR


def make_server_folder(folder: Path, account: SystemAccount) -> None:
    """Create a folder in a cluster that only the server's user may enter."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if account.switch:
        os.chown(folder, account.uid, account.gid)
    folder.chmod(0o700)


def _make_cluster(link: Path) -> None:
    if link.is_symlink():
        raise EmbeddedServerError(
            f"{link} points to {link.readlink()}, which does not exist: restore it, or remove the"
            " link to start with an empty database"
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
        if not link.exists():  # another process may have created it first
            raise


def _make_directory(path: Path) -> None:
    """Create a directory and its parents, accessible to the server's user of root, else private."""
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
    """Create a directory in /tmp, or check the owner of an existing directory."""
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    if not private or status.st_uid != os.geteuid():
        raise EmbeddedServerError(
            f"{folder} is not your private directory: remove it,"
            " or set DRAFTSMAN_DATA_DIR to a shorter path"
        )


def _account(data: Path) -> SystemAccount:
    if os.geteuid() != 0:
        return _by_uid(os.geteuid())
    if data.exists():  # keep the owner, also when a preferred user is added later
        return _by_uid(data.stat().st_uid)
    for name in SERVER_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return SystemAccount(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedServerError(
        "PostgreSQL does not run as root and needs one of the users"
        f" {', '.join(SERVER_USERS)}: add a user, or set DRAFTSMAN_DATABASE_URL"
    )


def _by_uid(uid: int) -> SystemAccount:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedServerError(
            f"user id {uid} has no entry in the user database, which PostgreSQL needs:"
            " add an entry, or set DRAFTSMAN_DATABASE_URL"
        ) from None
    return SystemAccount(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"


def _enters(account: SystemAccount, folder: Path) -> bool:
    """Test access as the user, since modes alone do not include groups and access lists."""
    return subprocess.run(["test", "-x", folder], cwd="/", **account.switch).returncode == 0


def _fits(socket_dir: Path) -> bool:
    return len(os.fsencode(socket_dir / f".s.PGSQL.{PORT}")) <= SOCKET_PATH_MAX
