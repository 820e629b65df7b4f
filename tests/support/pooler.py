"""PgBouncer in transaction mode, in front of the server of a test."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from draftsman_soak.pooler import find_pgbouncer
from draftsman_testing.waits import DEADLINE
from tests.support.server import open_folder


@contextmanager
def pooled(url: str, *settings: str) -> Iterator[str]:
    """Run PgBouncer in front of a database; give its URL. `settings` are lines of its section.

    A single session with the server shows a setting of any client to all others.
    """
    if (program := find_pgbouncer()) is None:
        pytest.skip("no pgbouncer")
    parameters = conninfo_to_dict(url)
    passfile = parameters.get("passfile")
    password = Path(str(passfile)).read_text("utf-8").strip().rpartition(":")[2] if passfile else ""
    owner = pwd.getpwuid(Path(str(parameters["host"])).stat().st_uid).pw_name
    with open_folder() as folder:
        port = _free_port()
        config = folder / "pgbouncer.ini"
        server = (
            f"host={parameters['host']} port={parameters['port']} user={parameters['user']}"
            f" dbname={parameters['dbname']} password='{password}'"
        )
        lines = [
            "[databases]",
            f"pooled = {server}",
            "[pgbouncer]",
            "listen_addr = 127.0.0.1",
            f"listen_port = {port}",
            "unix_socket_dir =",
            "auth_type = any",
            "pool_mode = transaction",
            "default_pool_size = 1",
            "max_client_conn = 200",
            *settings,
        ]
        config.write_text("\n".join(lines), encoding="utf-8")
        if os.geteuid() == 0:
            shutil.chown(folder, owner)
            shutil.chown(config, owner)
        as_owner = {"user": owner} if os.geteuid() == 0 else {}
        process = subprocess.Popen(
            [program, "-q", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_owner,  # type: ignore[call-overload]
        )
        try:
            with socket.socket() as probe:
                probe.settimeout(DEADLINE)
                while probe.connect_ex(("127.0.0.1", port)):
                    assert process.poll() is None, "pgbouncer has ended"
            yield make_conninfo("", host="127.0.0.1", port=port, dbname="pooled", user="anyone")
        finally:
            process.terminate()
            process.wait(DEADLINE)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
