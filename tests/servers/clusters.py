"""Temporary servers with the default configuration of their package.

Only the listen address is set, to a socket in the server's own folder. Everything else is written
by `initdb`: `max_connections` 100, `fsync` on, `jit` on.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from draftsman.database.embedded.layout import SERVER_USERS
from tests.servers.installations import Installation
from tests.servers.packages import Unavailable
from tests.support.server import fast_folder

USER: Final = "tests"
INITDB: Final = ("-U", USER, "-A", "trust", "-E", "UTF8", "--no-locale")


@contextmanager
def cluster(installation: Installation, folder: Path | None = None) -> Iterator[str]:
    """Start a new server of this installation; yield the URL of its empty database.

    Its data is in `folder`, or in memory if there is enough. Raises Unavailable.
    """
    account = _account()
    with tempfile.TemporaryDirectory(prefix="draftsman-pg-", dir=folder or fast_folder()) as name:
        home = Path(name)
        shutil.chown(home, account.pw_uid, account.pw_gid)
        home.chmod(0o755)
        installation = runnable(installation, home)
        data = str(home / "data")
        _run(installation, account, "initdb", "-D", data, *INITDB)
        listen = f"-k {home} -c listen_addresses=''"
        log = ("-l", str(home / "log"))
        _run(installation, account, "pg_ctl", "start", "-w", "-D", data, *log, "-o", listen)
        try:
            yield f"postgresql://{USER}@/postgres?host={quote(name, safe='')}"
        finally:
            _run(installation, account, "pg_ctl", "stop", "-D", data, "-m", "immediate")


def runnable(installation: Installation, home: Path) -> Installation:
    """Return an installation that the server's user can run, if necessary a copy in `home`.

    An open folder with a virtual environment needs no copy, a folder below /root does. Raises
    Unavailable.
    """
    account = _account()
    try:
        _run(installation, account, "postgres", "--version")
    except (Unavailable, OSError) as error:
        if not installation.packaged:
            text = f"{account.pw_name} cannot run {installation.programs}: {error}"
            raise Unavailable(text) from None
    else:
        return installation
    copy = home / "programs"
    shutil.copytree(installation.programs.parent, copy, symlinks=True)
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            path.chmod(
                path.stat().st_mode
                | (0o055 if path.is_dir() or path.parent == copy / "bin" else 0o044)
            )
    return replace(installation, programs=copy / "bin")


def _account() -> pwd.struct_passwd:
    """Return the user to run a server as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in SERVER_USERS:
        if name in known:
            return known[name]
    raise Unavailable(f"it does not run as root, and there is no user {', '.join(SERVER_USERS)}")


def _run(
    installation: Installation, account: pwd.struct_passwd, program: str, *arguments: str
) -> None:
    """Run a program of an installation as this user; raises Unavailable with its output."""
    other: dict[str, Any] = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    done = subprocess.run(
        [str(installation.programs / program), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C"},
        check=False,
        **(other if os.geteuid() == 0 else {}),
    )
    if done.returncode:
        lines = done.stdout.strip().splitlines() or ["it said nothing"]
        raise Unavailable(f"{program} failed: {lines[-1]}")
