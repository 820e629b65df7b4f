"""PostgreSQL installations of this machine, and throw-away clusters of them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.support.server import fast_folder

OLDEST = 15
PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
)
FLAGS = "-c fsync=off -c listen_addresses='' -c autovacuum=off"


@dataclass(frozen=True, slots=True)
class Installation:
    """The programs of one version of PostgreSQL."""

    binaries: Path
    version: str

    def __str__(self) -> str:
        return f"{self.version} in {self.binaries}"

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


@cache
def found() -> tuple[Installation, ...]:
    """Return every installation of PostgreSQL 15 or later, oldest first."""
    folders = [folder for place in PLACES for folder in Path("/").glob(place[1:])]
    known = [
        Installation(folder, _version(folder))
        for folder in folders
        if (folder / "initdb").exists() and (folder / "postgres").exists()
    ]
    return tuple(sorted((one for one in known if one.major >= OLDEST), key=lambda one: one.major))


@contextmanager
def cluster(installation: Installation) -> Iterator[str]:
    """Start a new server of this installation; yield the URL of its empty database."""
    with tempfile.TemporaryDirectory(prefix="draftsman-pg-", dir=fast_folder()) as name:
        folder, account = Path(name), _account()
        shutil.chown(folder, account.pw_uid, account.pw_gid)
        data = str(folder / "data")
        initdb = ["initdb", "-D", data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-locale"]
        _run(installation, account, initdb)
        options = f"{FLAGS} -k {folder}"
        log = str(folder / "log")
        _run(installation, account, ["pg_ctl", "start", "-w", "-D", data, "-l", log, "-o", options])
        try:
            yield f"postgresql://tests@/postgres?host={quote(name, safe='')}"
        finally:
            _run(installation, account, ["pg_ctl", "stop", "-D", data, "-m", "immediate"])


def _version(folder: Path) -> str:
    command = [str(folder / "postgres"), "--version"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.split()[2]


def _account() -> pwd.struct_passwd:
    """Return the user to run a server as, which must not be root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


def _run(installation: Installation, account: pwd.struct_passwd, command: list[str]) -> None:
    other: dict[str, Any] = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    done = subprocess.run(
        [str(installation.binaries / command[0]), *command[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C"},
        **(other if os.geteuid() == 0 else {}),
    )
    assert done.returncode == 0, f"{command[0]}: {done.stdout}"
