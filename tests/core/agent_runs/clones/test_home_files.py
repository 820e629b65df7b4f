"""Files of an agent's home in the bundle of its work."""

from __future__ import annotations

import io
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.clones import home_files
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.errors import Failure
from tests.core.worker.agent_jobs import make_repository


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "source")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def prepare(data: Path, source: Path, **fields: Any) -> Workspace:
    return await Workspace.prepare(
        data, RepoSource.of(str(source)), **({"job": 7, "run": 1} | fields)
    )


async def test_files_of_the_home_travel_in_the_bundle(
    data: Path, source: Path, tmp_path: Path
) -> None:
    workspace = await prepare(data, source)
    state = workspace.home / ".local" / "state"
    (state / "empty").mkdir(parents=True)
    (state / "session.db").write_bytes(bytes(range(256)))
    (state / "run.sh").write_text("#!/bin/sh\n")
    (state / "run.sh").chmod(0o755)
    (state / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(state / "pipe")
    (workspace.home / "cache").write_text("stays behind")
    await workspace.store_home([".local/state", "missing", "cache/below-a-file"])
    snapshot = await workspace.snapshot("no changes")
    bundle = await workspace.bundle(snapshot)
    assert bundle is not None
    restored = await prepare(tmp_path / "elsewhere", source, run=2, bundle=bundle)
    names = {str(path.relative_to(restored.home)) for path in restored.home.rglob("*")}
    files = {f".local/state/{name}" for name in ("empty", "session.db", "run.sh")}
    assert names == {".local", ".local/state", *files}
    copy = restored.home / ".local" / "state"
    assert (copy / "session.db").read_bytes() == bytes(range(256))
    assert os.access(copy / "run.sh", os.X_OK)
    assert await restored.bundle_commit() is None
    (restored.path / "new.txt").write_text("work of the second run\n")
    later = await restored.bundle(await restored.snapshot("changes"))
    third = await prepare(data, source, run=3, bundle=later)  # files that no checkpoint replaced
    assert (third.path / "new.txt").exists()
    assert (third.home / ".local" / "state" / "session.db").exists()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../repo", "is not a path below $HOME"),
        ("/etc/passwd", "is not a path below $HOME"),
        (".", "is not a path below $HOME"),
        ("link/passwd", "Too many levels of symbolic links"),
        ("link", "Too many levels of symbolic links"),
        ("large", "a checkpoint has at most 4 bytes of $HOME"),
        ("many", "a checkpoint has at most 3 files of $HOME"),
    ],
)
async def test_other_files_are_not_stored_with_a_home(
    data: Path, source: Path, path: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home_files, "MAX_BYTES", 4)
    monkeypatch.setattr(home_files, "MAX_FILES", 3)
    workspace = await prepare(data, source)
    (workspace.home / "link").symlink_to("/etc")
    (workspace.home / "large").write_bytes(b"12345")
    (workspace.home / "many").mkdir()
    for name in "abc":
        (workspace.home / "many" / name).touch()
    with pytest.raises(Failure, match=re.escape(reason)) as caught:
        await workspace.store_home([path])
    assert caught.value.code == "home_files"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("../out", tarfile.REGTYPE), ("/tmp/out", tarfile.REGTYPE), ("link", tarfile.SYMTYPE)],
)
def test_an_archive_writes_nothing_outside_of_the_home(
    tmp_path: Path, name: str, kind: bytes
) -> None:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.linkname = "/etc/passwd"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(entry)
    home = tmp_path / "home"
    home.mkdir()
    with pytest.raises(Failure, match="is not a file or folder below"):
        home_files.unpack(buffer.getvalue(), home)
    assert list(tmp_path.rglob("*")) == [home]


def test_what_an_agent_left_at_the_name_of_a_file_is_replaced(tmp_path: Path) -> None:
    home = tmp_path / "home"
    outside = tmp_path / "outside"
    folder = home / "attachments"
    (folder / "folder" / "deep").mkdir(parents=True)
    (folder / "locked" / "deep").mkdir(parents=True)
    (folder / "locked").chmod(0)
    outside.write_text("kept")
    (folder / "link").symlink_to(outside)
    (folder / "file").write_text("old")
    files = dict.fromkeys(("folder", "locked", "link", "file"), b"new")
    home_files.write(home, "attachments", files)
    assert {name: (folder / name).read_bytes() for name in files} == files
    assert not any((folder / name).is_symlink() for name in files)
    assert outside.read_text() == "kept"
    renamed = [path for path in folder.iterdir() if path.is_dir()]
    assert len(renamed) == 2
    for path in renamed:
        path.chmod(0o700)
        assert path.name.startswith("replaced-")
        assert (path / "deep").is_dir()


def test_a_folder_of_a_home_that_is_none_is_replaced(tmp_path: Path) -> None:
    for left in (Path.touch, lambda path: path.symlink_to(tmp_path), Path.mkdir):
        home = tmp_path / f"home{len(list(tmp_path.iterdir()))}"
        home.mkdir()
        left(home / "attachments")
        home_files.write(home, "attachments", {"a": b"new"})
        assert not (home / "attachments").is_symlink()
        assert (home / "attachments" / "a").read_bytes() == b"new"
