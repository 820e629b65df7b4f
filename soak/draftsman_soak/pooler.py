"""PgBouncer in transaction mode, through which a worker sends its short statements."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Final

from draftsman.database.embedded import EmbeddedServer
from draftsman_soak.silent_network import LOOPBACK, SilentNetwork

PROGRAM: Final = "/usr/sbin/pgbouncer"
"""Where distributions install it, outside of an ordinary user's path."""
END: Final = 10.0
"""Seconds within which a killed pooler ends."""
CONFIGURATION: Final = """\
[databases]
draftsman = host={host} port={server_port} user=draftsman password='{password}'
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
"""


def find_pgbouncer() -> str | None:
    """Return the path of PgBouncer, or None if it is not installed."""
    return shutil.which("pgbouncer") or (PROGRAM if os.access(PROGRAM, os.X_OK) else None)


class Pooler:
    """A pooler whose few sessions with the server serve all of its clients, through a network."""

    def __init__(
        self, program: str, server: EmbeddedServer, network: SilentNetwork, folder: Path
    ) -> None:
        """`folder` is created for the configuration, which has the password of the server."""
        self._program = program
        self._server = server
        self._network = network
        self._folder = folder
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of the database through the pooler."""
        return f"postgresql://anyone@{LOOPBACK}:{self._port}/draftsman"

    def start(self) -> None:
        """Start the pooler; it keeps its port."""
        config = self._folder / "pgbouncer.ini"
        if not config.exists():
            self._write(config)
        owner = config.stat().st_uid
        self._process = subprocess.Popen(
            [self._program, "-q", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user=owner if os.geteuid() == 0 else None,
        )

    def kill(self) -> None:
        """Kill the pooler, with the connections of all its clients."""
        if self._process is not None:
            process = self._process
            self._process = None
            process.kill()
            process.wait(END)

    def refill(self) -> None:
        """Restart a pooler that ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            self.start()

    def _write(self, config: Path) -> None:
        """Write the configuration for the owner of the server, since PgBouncer refuses root."""
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            self._port = probe.getsockname()[1]
        password = self._server.secret_url().partition("://draftsman:")[2].partition("@")[0]
        self._folder.mkdir(mode=0o700)
        config.touch(mode=0o600)
        config.write_text(
            CONFIGURATION.format(
                host=LOOPBACK,
                port=self._port,
                server_port=self._network.port,
                password=password,
            )
        )
        if os.geteuid() == 0:
            owner = pwd.getpwuid(self._server.status().data_dir.stat().st_uid).pw_name
            for path in (self._folder, config):
                shutil.chown(path, owner)
