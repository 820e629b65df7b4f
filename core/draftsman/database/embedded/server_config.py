"""Configuration of the server, written at every start.

It is beside the data directory, not in it, because the server's user could place a link where root
writes. `data/postgresql.conf` has initdb's settings of the machine; `ALTER SYSTEM` overrides both.
"""

from __future__ import annotations

from pathlib import Path

from draftsman.database.embedded.layout import PORT, ClusterLayout

SETTINGS = """\
# Written by draftsman at every start; use ALTER SYSTEM for settings of your own.
include {initdb}
data_directory = {data}
cluster_name = '{name}'

# Reachable only through a socket in a private directory; the command line repeats the first
# setting, so that it cannot be overridden.
listen_addresses = ''
unix_socket_directories = {socket_dir}
unix_socket_permissions = 0700
port = {port}
max_connections = 100

# Committed transactions survive a power failure.
fsync = on
synchronous_commit = on
full_page_writes = on

shared_buffers = 128MB
max_wal_size = 1GB
jit = off
# Vacuum keeps up with thousands of jobs a second, which claims would otherwise pass.
autovacuum_naptime = 5s
timezone = 'UTC'
lc_messages = 'C'

# A file for each day of the week. Statements are not logged, because they contain personal data.
logging_collector = on
log_directory = {log}
log_filename = 'server-%a.log'
log_rotation_age = 1d
log_rotation_size = 0
log_truncate_on_rotation = on
log_timezone = 'UTC'
log_checkpoints = off
log_min_error_statement = panic
"""


def write(layout: ClusterLayout) -> None:
    """Write postgresql.conf, pg_hba.conf and pg_ident.conf to the cluster's folder.

    Every connection requires the password, because a file sandbox does not restrict Unix sockets.
    """
    settings = SETTINGS.format(
        initdb=_quoted(layout.data / "postgresql.conf"),
        data=_quoted(layout.data),
        name=layout.name,
        socket_dir=_quoted(f'"{layout.socket_dir}"'),
        port=PORT,
        log=_quoted(layout.log),
    )
    _write(layout.cluster / "postgresql.conf", settings)
    _write(layout.cluster / "pg_hba.conf", "local all all scram-sha-256\n")
    _write(layout.cluster / "pg_ident.conf", "# No mappings: a password is required.\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


def _quoted(value: Path | str) -> str:
    return "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"
