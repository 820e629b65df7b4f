"""Conditions under which the embedded server is refused, and its owner."""

from __future__ import annotations

import os
import pwd
import signal
import stat
from pathlib import Path

import psutil
import pytest

from draftsman.database.embedded import EmbeddedServer, binaries, layout, server_process
from draftsman.errors import EmbeddedServerError
from tests.core.database.embedded.embedded_support import (
    DEADLINE,
    ENSURE,
    copy_python,
    modes,
    read_report,
    report,
    stop_server,
    value,
)

AS_ROOT = os.geteuid() == 0


@pytest.mark.usefixtures("copied_initdb")
def test_a_path_too_long_for_a_socket_is_replaced_by_a_short_private_path(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "SYSTEM_DIR", empty / "system")
    monkeypatch.setattr(layout, "SHORT_DIR", empty)
    server = EmbeddedServer(empty / ("x" * 100), 0)
    assert value(server.ensure(), "SELECT 1") == 1
    socket_dir = server.status().socket_dir
    assert len(os.fsencode(socket_dir / ".s.PGSQL.5432")) <= layout.SOCKET_PATH_MAX
    assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
    server.stop()
    if not AS_ROOT:
        socket_dir.chmod(0o755)
        with pytest.raises(EmbeddedServerError, match="not your private directory"):
            server.ensure()


def test_an_unwritable_data_directory_is_refused_in_one_line(empty: Path) -> None:
    (empty / "file").write_text("")
    with pytest.raises(
        EmbeddedServerError, match=r"Not a directory.*DRAFTSMAN_DATA_DIR"
    ) as refused:
        EmbeddedServer(empty / "file", 0).ensure()
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("copied_initdb")
def test_a_data_directory_that_the_group_can_write_is_refused_with_the_command(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "SYSTEM_DIR", empty / "system")
    server = EmbeddedServer(empty / "data", 0)
    value(server.ensure(), "SELECT 1")
    stop_server(server)
    data = server.status().data_dir
    data.chmod(0o770)
    with pytest.raises(EmbeddedServerError, match=rf"mode 0770.*run chmod 700 {data}$"):
        server.ensure()
    data.chmod(0o750)  # PostgreSQL allows the group to read
    assert value(server.ensure(), "SELECT 1") == 1
    stop_server(server)


def test_a_platform_without_binaries_is_refused_with_an_alternative(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "PACKAGE", "no_such_package")
    with pytest.raises(EmbeddedServerError, match="DRAFTSMAN_DATABASE_URL to a PostgreSQL 15"):
        EmbeddedServer(empty / "data", 0).ensure()


@pytest.mark.skipif(not AS_ROOT, reason="only root can be another user")
@pytest.mark.slow(fast="test_root_opens_no_existing_directory")
def test_an_ordinary_user_gets_a_separate_server(empty: Path) -> None:
    account = pwd.getpwnam("nobody")
    python, environment = copy_python(empty / "copy")
    data_dir = empty / "data"
    data_dir.mkdir()
    os.chown(data_dir, account.pw_uid, account.pw_gid)
    user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    options = {
        "command": [python, "-c", ENSURE.read_text()],
        "env": environment,
        "cwd": "/",
        **user,
    }
    url, pid = read_report(report(data_dir, 6, **options))
    assert (url, pid) == read_report(report(data_dir, 6, **options))
    postmaster = psutil.Process(pid)
    assert postmaster.uids().effective == account.pw_uid
    assert postmaster.cmdline()[0].startswith(str(empty / "copy"))
    os.kill(pid, signal.SIGKILL)
    assert read_report(report(data_dir, 1, **options))[1] != pid
    with pytest.raises(EmbeddedServerError, match="belongs to nobody"):
        EmbeddedServer(data_dir, 0).ensure()
    with server_process.lock_file(data_dir / "postgres18" / "server.lock", DEADLINE):
        pass  # idle, it stopped


@pytest.mark.skipif(not AS_ROOT, reason="only root runs the server as another user")
@pytest.mark.usefixtures("copied_initdb")
def test_root_opens_no_existing_directory(
    tmp_path: Path, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "SYSTEM_DIR", empty / "system")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    before = modes(closed), modes(empty)
    server = EmbeddedServer(closed / "data", 0)
    assert value(server.ensure(), "SELECT 1") == 1
    assert (modes(closed), modes(empty)) == before
    status = server.status()
    assert status.data_dir.is_relative_to(empty / "system")
    assert status.data_dir.owner() in layout.SERVER_USERS
    assert status.data_dir.parent.owner() == "root"
    assert (closed / "data" / "postgres18").resolve() == status.data_dir.parent
    stop_server(server)
