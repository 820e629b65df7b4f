"""Replaces the embedded server by another installation with its default configuration.

Python imports this module at startup if its folder is on `PYTHONPATH`: every process of `draftsman
soak` then finds, breaks and starts the same server. Of our configuration only the location of the
server remains.
"""

from __future__ import annotations

import os
from pathlib import Path

from draftsman.database.embedded import binaries, cluster, password, server_config, server_process
from draftsman.database.embedded.layout import ROLE, ClusterLayout

PROGRAMS = Path(os.environ["SERVERS_PROGRAMS"])
SETTINGS = """\
include {initdb}
data_directory = {data}
cluster_name = '{name}'
listen_addresses = ''
unix_socket_directories = {socket_dir}
port = {port}
"""


def server_program(name: str, layout: ClusterLayout) -> Path:
    return PROGRAMS / name


def fill(new: Path, layout: ClusterLayout, lock: int, secret: str) -> None:
    initdb = ("-D", str(new), "-U", ROLE, "-A", "reject", "-E", "UTF8", "--no-locale")
    server_process.run([PROGRAMS / "initdb", *initdb], layout.account, inherit=[lock])
    single = ("--single", "-c", "exit_on_error=on", "-D", str(new), "postgres")
    statements = cluster.CREATE.read_text() + password.statement(secret)
    server_process.run(
        [PROGRAMS / "postgres", *single], layout.account, text=statements, inherit=[lock]
    )


def accept_any_major(data_dir: Path, layout: ClusterLayout) -> None:
    return


binaries.server_program = server_program
cluster._fill = fill
cluster.refuse_other_major = accept_any_major
server_config.SETTINGS = SETTINGS
